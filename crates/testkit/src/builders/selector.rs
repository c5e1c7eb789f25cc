//! Selectors in kubectl's notation.

use egret_core::{NodeSelector, Selector};

/// The selector of this text: `pool=a`, `pool!=a`, `pool in (a,b)`, `pool notin (a,b)`, `pool`, `!pool`, joined by `;`.
/// `{}` and the empty text match everything.
#[must_use]
pub fn selector(text: &str) -> NodeSelector {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty() && *part != "{}");
    let selector = Selector::compile([], parts.map(requirement));
    NodeSelector::Compiled(selector.expect("the text of a selector"))
}

/// A selector that does not compile.
#[must_use]
pub fn faulty_selector() -> NodeSelector {
    let faults = Selector::compile([], [("pool", "Equals", vec!["a"])]);
    NodeSelector::Faulty(faults.expect_err("there is no operator Equals"))
}

fn requirement(text: &str) -> (&str, &str, Vec<&str>) {
    for (word, operator) in [(" notin ", "NotIn"), (" in ", "In")] {
        if let Some((key, values)) = text.split_once(word) {
            let values = values.trim().trim_start_matches('(').trim_end_matches(')');
            return (key.trim(), operator, values.split(',').map(str::trim).collect());
        }
    }
    for (sign, operator) in [("!=", "NotIn"), ("=", "In")] {
        if let Some((key, value)) = text.split_once(sign) {
            return (key.trim(), operator, vec![value.trim()]);
        }
    }
    match text.strip_prefix('!') {
        Some(key) => (key, "DoesNotExist", Vec::new()),
        None => (text, "Exists", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_reads_as_it_is_written() {
        for text in ["{}", "pool=a", "pool!=a", "pool in (a,b)", "pool notin (a,b)", "pool", "!pool"] {
            assert_eq!(selector(text).to_string(), text);
        }
        assert_eq!(selector("pool=a; !zone").to_string(), "pool=a,!zone");
        assert_eq!(selector(""), NodeSelector::everything());
    }
}
