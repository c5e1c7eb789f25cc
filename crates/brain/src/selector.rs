//! Which selectors the EgressIPs have.

use std::collections::BTreeMap;

use egret_core::{EgressIp, Selector};

/// How many EgressIPs have each selector. A thousand objects share a few: another one with a known selector changes
/// nothing about whom to probe, which is only asked of all nodes when there is a reason to.
#[derive(Debug, Default)]
pub(crate) struct Selectors {
    count: BTreeMap<Selector, usize>,
}

impl Selectors {
    /// An object becomes another one, or comes, or goes. Whether there are other selectors than before.
    pub(crate) fn replace(&mut self, old: Option<&EgressIp>, new: Option<&EgressIp>) -> bool {
        let selector = |object: Option<&EgressIp>| object.and_then(|object| object.selector.compiled()).cloned();
        let (old, new) = (selector(old), selector(new));
        if old == new {
            return false;
        }
        let mut other = false;
        if let Some(new) = new {
            let count = self.count.entry(new).or_default();
            other |= *count == 0;
            *count += 1;
        }
        if let Some(old) = old
            && let Some(count) = self.count.get_mut(&old)
        {
            *count -= 1;
            if *count == 0 {
                self.count.remove(&old);
                other = true;
            }
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use egret_api::egress_ip;
    use serde_json::json;

    use super::*;

    fn object(pool: &str) -> EgressIp {
        let value = json!({
            "metadata": { "name": "a" },
            "spec": { "egressIPs": [], "egressNodeSelector": { "matchLabels": { "pool": pool } } },
        });
        egress_ip::from_value(&value).object.unwrap()
    }

    #[test]
    fn only_the_first_object_with_a_selector_and_the_last_one_change_something() {
        let (x, y) = (object("x"), object("y"));
        let mut selectors = Selectors::default();
        assert!(selectors.replace(None, Some(&x)));
        assert!(!selectors.replace(None, Some(&x)));
        assert!(!selectors.replace(Some(&x), Some(&x)));
        assert!(selectors.replace(Some(&x), Some(&y)));
        assert!(!selectors.replace(None, Some(&y)));
        assert!(!selectors.replace(Some(&y), None));
        assert!(selectors.replace(Some(&x), None), "the last one of its kind");
        assert!(selectors.replace(Some(&y), None));
    }
}
