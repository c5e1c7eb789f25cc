//! Which rule the kernel would take for another.

use std::collections::BTreeMap;
use std::ops::Bound;

use egret_hostmodel::Rule;
use ipnet::IpNet;

use crate::rule::{FoundRule, blurred};

/// Our rules as listed, with their places in the kernel's order.
#[derive(Debug, Default)]
pub(crate) struct RuleOrder(BTreeMap<Key, Vec<(usize, Rule)>>);

/// Family, priority, source.
type Key = (bool, u32, Option<IpNet>);

impl RuleOrder {
    pub(crate) fn new(rules: Vec<FoundRule>, protocol: u8) -> Self {
        let mut order = Self::default();
        let ours = rules.into_iter().filter(|found| found.protocol == protocol).filter_map(|found| found.rule);
        for (place, rule) in ours.enumerate() {
            order.0.entry((rule.v6, rule.priority, rule.from)).or_default().push((place, rule));
        }
        order
    }

    /// The rules that the kernel comes upon before `rule`, and would delete in its place; in its order, so that each that
    /// is deleted is itself the first that could be meant.
    pub(crate) fn before(&self, rule: &Rule) -> Vec<Rule> {
        let key = (rule.v6, rule.priority, rule.from);
        let Some((place, _)) = self.0.get(&key).into_iter().flatten().find(|(_, other)| other == rule) else {
            return Vec::new();
        };
        // A rule without a source may be taken for one of any source.
        let last = (rule.v6, rule.priority + 1, None);
        let end = if rule.from.is_some() { Bound::Included(key) } else { Bound::Excluded(last) };
        let like = self.0.range((Bound::Included(key), end)).flat_map(|(_, rules)| rules);
        let mut earlier: Vec<_> = like.filter(|(other, it)| other < place && blurred(rule, it)).collect();
        earlier.sort_by_key(|(place, _)| *place);
        earlier.into_iter().map(|(_, other)| other.clone()).collect()
    }

    pub(crate) fn contains(&self, rule: &Rule) -> bool {
        let same = self.0.get(&(rule.v6, rule.priority, rule.from));
        same.is_some_and(|rules| rules.iter().any(|(_, other)| other == rule))
    }

    pub(crate) fn remove(&mut self, rule: &Rule) {
        if let Some(rules) = self.0.get_mut(&(rule.v6, rule.priority, rule.from)) {
            rules.retain(|(_, other)| other != rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use egret_core::Family;
    use egret_hostmodel::RuleAction;

    use super::*;

    #[test]
    fn what_says_less_is_told_from_what_says_more_and_comes_before_it() {
        let plain = Rule::new(Family::V4, 5000, RuleAction::Lookup(7)).from("10.0.0.1/32".parse().unwrap());
        let narrow = plain.clone().source_port(80);
        let other = Rule::new(Family::V4, 5000, RuleAction::Lookup(7)).from("10.0.0.2/32".parse().unwrap());
        let all = Rule::new(Family::V4, 5000, RuleAction::Lookup(7));
        let found = |rule: &Rule| FoundRule { v6: false, priority: 5000, protocol: 68, rule: Some(rule.clone()) };
        let mut order = RuleOrder::new([&narrow, &other, &plain, &all].map(found).to_vec(), 68);
        assert_eq!(order.before(&plain), std::slice::from_ref(&narrow));
        assert_eq!(order.before(&all), [narrow.clone(), other.clone(), plain.clone()]);
        assert_eq!(order.before(&narrow), []);
        order.remove(&narrow);
        assert_eq!(order.before(&plain), []);
    }
}
