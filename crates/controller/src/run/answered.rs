//! What each target said last, so that what is said again and again costs nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use egret_brain::Answer;
use egret_core::NodeName;

type Targets = BTreeMap<NodeName, Vec<IpAddr>>;

/// The last answers of the targets, and of nobody else.
#[derive(Debug, Default)]
pub(super) struct Answered(BTreeMap<NodeName, Answer>);

impl Answered {
    /// Takes an answer; says whether there is anything to decide because of it.
    ///
    /// In a healthy cluster more than a thousand nodes a second say that they are alive, as they did before. As soon as
    /// one of them does not, every answer counts: it may tell whether the silence is our own. Who is no target any more
    /// may have an answer on its way: it would stay silent for ever, and every answer of the others would count for ever.
    pub(super) fn is_news(&mut self, targets: &Targets, node: &NodeName, answer: Answer) -> bool {
        if !targets.contains_key(node) {
            return false;
        }
        let before = self.0.insert(node.clone(), answer);
        before != Some(Answer::Alive) || self.0.values().any(|answer| *answer != Answer::Alive)
    }

    /// Who is a target no more, or at other addresses, has said nothing.
    pub(super) fn retarget(&mut self, before: &Targets, now: &Targets) {
        self.0.retain(|node, _| now.get(node).is_some_and(|addresses| before.get(node) == Some(addresses)));
    }

    /// Nobody has said anything.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(names: &[&str]) -> Targets {
        names.iter().map(|name| (NodeName::from(*name), vec![IpAddr::from([192, 0, 2, 1])])).collect()
    }

    #[test]
    fn a_node_that_is_alive_as_before_is_no_news_unless_another_one_is_not() {
        let (mut answered, targets) = (Answered::default(), targets(&["a", "b"]));
        let (a, b) = (NodeName::from("a"), NodeName::from("b"));
        assert!(answered.is_news(&targets, &a, Answer::Alive), "the first time");
        assert!(!answered.is_news(&targets, &a, Answer::Alive));
        assert!(answered.is_news(&targets, &b, Answer::Silent));
        assert!(answered.is_news(&targets, &a, Answer::Alive));
        assert!(answered.is_news(&targets, &b, Answer::Alive));
        assert!(!answered.is_news(&targets, &a, Answer::Alive));
    }

    #[test]
    fn a_late_answer_of_who_is_no_target_any_more_makes_no_news_of_the_others() {
        let mut answered = Answered::default();
        let (two, one) = (targets(&["a", "b"]), targets(&["a"]));
        let (a, b) = (NodeName::from("a"), NodeName::from("b"));
        answered.is_news(&two, &a, Answer::Alive);
        answered.retarget(&two, &one);
        assert!(!answered.is_news(&one, &b, Answer::Silent), "it was on its way");
        assert!(!answered.is_news(&one, &a, Answer::Alive));
        // Nor do other targets make it stay.
        answered.is_news(&two, &b, Answer::Silent);
        answered.retarget(&one, &one);
        assert!(!answered.is_news(&one, &a, Answer::Alive));
    }

    #[test]
    fn other_addresses_are_another_target() {
        let mut answered = Answered::default();
        let (here, a) = (targets(&["a"]), NodeName::from("a"));
        let there = Targets::from([(a.clone(), vec![IpAddr::from([192, 0, 2, 2])])]);
        answered.is_news(&here, &a, Answer::Alive);
        answered.retarget(&here, &there);
        assert!(answered.is_news(&there, &a, Answer::Alive));
    }
}
