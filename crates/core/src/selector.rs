//! A label selector, checked as Kubernetes checks it (`metav1.LabelSelectorAsSelector`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Longest name part of a label key, and longest label value (Kubernetes, "Labels and Selectors").
const NAME_MAX: usize = 63;
/// Longest prefix of a label key: a DNS subdomain (RFC 1123).
const PREFIX_MAX: usize = 253;

/// What a requirement asks of the value of its key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The label is there and its value is one of these (never empty).
    In(BTreeSet<String>),
    /// The label is not there, or its value is none of these (never empty).
    NotIn(BTreeSet<String>),
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

/// One requirement of a [`Selector`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
}

impl Requirement {
    /// The label key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is asked of its value.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Whether a label of this value, or none at all, fulfils the requirement.
    #[must_use]
    pub fn admits(&self, value: Option<&str>) -> bool {
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let list = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match &self.operator {
            Operator::In(values) if values.len() == 1 => write!(f, "{key}={}", list(values)),
            Operator::In(values) => write!(f, "{key} in ({})", list(values)),
            Operator::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", list(values)),
            Operator::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// A selector that Kubernetes would accept. All requirements must hold; none at all matches everything.
///
/// Requirements are sorted and distinct, and `matchLabels: {k: v}` is `k In (v)`, so two spellings of one selector
/// compare equal. `Display` is kubectl's notation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// Where in a LabelSelector a fault is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SelectorPart {
    /// The selector as a whole.
    Whole,
    /// `matchLabels[key]`.
    MatchLabel(String),
    /// `matchExpressions[i].key`.
    Key(usize),
    /// `matchExpressions[i].operator`.
    Operator(usize),
    /// `matchExpressions[i].values`.
    Values(usize),
    /// `matchExpressions[i].values[j]`.
    Value(usize, usize),
}

/// Why Kubernetes would refuse a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorFault {
    /// Where.
    pub part: SelectorPart,
    /// What is wrong, one sentence without a period.
    pub reason: String,
}

impl fmt::Display for SelectorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            SelectorPart::Whole => Ok(()),
            SelectorPart::MatchLabel(key) => write!(f, "matchLabels[{key:?}]: "),
            SelectorPart::Key(i) => write!(f, "matchExpressions[{i}].key: "),
            SelectorPart::Operator(i) => write!(f, "matchExpressions[{i}].operator: "),
            SelectorPart::Values(i) => write!(f, "matchExpressions[{i}].values: "),
            SelectorPart::Value(i, j) => write!(f, "matchExpressions[{i}].values[{j}]: "),
        }?;
        f.write_str(&self.reason)
    }
}

impl Selector {
    /// Compiles `matchLabels` and `matchExpressions` (key, operator, values).
    ///
    /// # Errors
    /// Every fault, in the order of the input, where Kubernetes would refuse the selector.
    pub fn compile<'a>(
        match_labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        match_expressions: impl IntoIterator<Item = (&'a str, &'a str, Vec<&'a str>)>,
    ) -> Result<Self, Vec<SelectorFault>> {
        let mut faults = Vec::new();
        let mut requirements = Vec::new();
        for (key, value) in match_labels {
            let part = || SelectorPart::MatchLabel(key.to_owned());
            let checks = [check_key(key), check_value(value)];
            faults.extend(checks.into_iter().flatten().map(|reason| SelectorFault { part: part(), reason }));
            let operator = Operator::In([value.to_owned()].into());
            requirements.push(Requirement { key: key.to_owned(), operator });
        }
        for (i, (key, operator, values)) in match_expressions.into_iter().enumerate() {
            let mut fault = |part, reason| faults.push(SelectorFault { part, reason });
            if let Some(reason) = check_key(key) {
                fault(SelectorPart::Key(i), reason);
            }
            for (j, value) in values.iter().enumerate() {
                if let Some(reason) = check_value(value) {
                    fault(SelectorPart::Value(i, j), reason);
                }
            }
            match compile_operator(operator, &values) {
                Ok(operator) => requirements.push(Requirement { key: key.to_owned(), operator }),
                Err(OperatorFault::Unknown) => fault(
                    SelectorPart::Operator(i),
                    format!("{operator:?} is not an operator; use In, NotIn, Exists or DoesNotExist"),
                ),
                Err(OperatorFault::NoValues) => {
                    fault(SelectorPart::Values(i), format!("{operator} needs at least one value"));
                }
                Err(OperatorFault::Values) => fault(SelectorPart::Values(i), format!("{operator} takes no values")),
            }
        }
        if faults.is_empty() { Ok(Self::of(requirements)) } else { Err(faults) }
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_unstable();
        requirements.dedup();
        Self { requirements }
    }

    /// The empty selector: matches everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::of(Vec::new())
    }

    /// Matches what has the label `key`, which the caller knows to be legal.
    #[must_use]
    pub(crate) fn exists(key: &str) -> Self {
        Self::of(vec![Requirement { key: key.to_owned(), operator: Operator::Exists }])
    }

    /// The requirements, sorted and distinct.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether `labels` match. The plain reading of the rule; [`crate::SelectorIndex`] answers the same for many.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.first_unfulfilled(labels).is_none()
    }

    /// The first requirement that `labels` do not fulfil.
    #[must_use]
    pub fn first_unfulfilled(&self, labels: &BTreeMap<String, String>) -> Option<&Requirement> {
        self.requirements
            .iter()
            .find(|requirement| !requirement.admits(labels.get(&requirement.key).map(String::as_str)))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.requirements.is_empty() {
            return f.write_str("{}");
        }
        for (i, requirement) in self.requirements.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

enum OperatorFault {
    Unknown,
    NoValues,
    Values,
}

fn compile_operator(operator: &str, values: &[&str]) -> Result<Operator, OperatorFault> {
    let set = || values.iter().map(|&value| value.to_owned()).collect();
    match (operator, values.is_empty()) {
        ("In", false) => Ok(Operator::In(set())),
        ("NotIn", false) => Ok(Operator::NotIn(set())),
        ("Exists", true) => Ok(Operator::Exists),
        ("DoesNotExist", true) => Ok(Operator::DoesNotExist),
        ("In" | "NotIn", true) => Err(OperatorFault::NoValues),
        ("Exists" | "DoesNotExist", false) => Err(OperatorFault::Values),
        _ => Err(OperatorFault::Unknown),
    }
}

/// A qualified name: an optional DNS subdomain and `/`, then at most 63 letters, digits, `-`, `_`, `.` with a letter or
/// digit at both ends (`IsQualifiedName` in apimachinery).
fn check_key(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix
        && !is_dns_subdomain(prefix)
    {
        return Some(format!(
            "the prefix {prefix:?} of a label key must be a DNS subdomain of at most {PREFIX_MAX} characters"
        ));
    }
    (name.is_empty() || !is_name(name)).then(|| {
        format!(
            "{key:?} is not a label key: its name needs 1 to {NAME_MAX} letters, digits, '-', '_' or '.', with a letter or digit at both ends"
        )
    })
}

/// A label value: empty, or of the form of a key's name (`IsValidLabelValue` in apimachinery).
fn check_value(value: &str) -> Option<String> {
    (!is_name(value)).then(|| {
        format!(
            "{value:?} is not a label value: at most {NAME_MAX} letters, digits, '-', '_' or '.', with a letter or digit at both ends"
        )
    })
}

fn is_name(text: &str) -> bool {
    let ends = |c: Option<&u8>| c.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= NAME_MAX
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
}

fn is_dns_subdomain(text: &str) -> bool {
    let label = |label: &str| {
        let ends = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let bytes = label.as_bytes();
        ends(bytes.first())
            && ends(bytes.last())
            && bytes.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'-')
    };
    text.len() <= PREFIX_MAX && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn expression(
        key: &'static str,
        operator: &'static str,
        values: &[&'static str],
    ) -> Result<Selector, Vec<SelectorFault>> {
        Selector::compile([], [(key, operator, values.to_vec())])
    }

    #[test]
    fn operators_match_as_kubernetes_defines_them() {
        for (operator, values, absent, a, b) in [
            ("In", &["a"][..], false, true, false),
            ("NotIn", &["a"][..], true, false, true),
            ("Exists", &[][..], false, true, true),
            ("DoesNotExist", &[][..], true, false, false),
        ] {
            let selector = expression("pool", operator, values).expect("a good selector");
            assert_eq!(selector.matches(&labels(&[])), absent, "{operator} on nothing");
            assert_eq!(selector.matches(&labels(&[("pool", "a")])), a, "{operator} on a");
            assert_eq!(selector.matches(&labels(&[("pool", "b")])), b, "{operator} on b");
        }
        assert!(Selector::everything().matches(&labels(&[])));
    }

    #[test]
    fn two_spellings_of_one_selector_are_equal() {
        let by_label = Selector::compile([("pool", "a")], []);
        assert_eq!(by_label, expression("pool", "In", &["a"]));
        assert_eq!(expression("pool", "In", &["a", "b"]), expression("pool", "In", &["b", "a", "b"]));
    }

    #[test]
    fn what_kubernetes_refuses_is_a_fault_with_its_place() {
        for (key, operator, values, part) in [
            ("pool", "In", &[][..], SelectorPart::Values(0)),
            ("pool", "NotIn", &[][..], SelectorPart::Values(0)),
            ("pool", "Exists", &["a"][..], SelectorPart::Values(0)),
            ("pool", "DoesNotExist", &["a"][..], SelectorPart::Values(0)),
            ("pool", "Equals", &["a"][..], SelectorPart::Operator(0)),
            ("pool", "in", &["a"][..], SelectorPart::Operator(0)),
            ("", "Exists", &[][..], SelectorPart::Key(0)),
            ("-pool", "Exists", &[][..], SelectorPart::Key(0)),
            ("a/b/c", "Exists", &[][..], SelectorPart::Key(0)),
            ("/pool", "Exists", &[][..], SelectorPart::Key(0)),
            ("Upper.Case/pool", "Exists", &[][..], SelectorPart::Key(0)),
            ("pool", "In", &["a", "not a value"][..], SelectorPart::Value(0, 1)),
            ("pool", "In", &["-a"][..], SelectorPart::Value(0, 0)),
        ] {
            let faults = expression(key, operator, values).expect_err("a fault");
            assert_eq!(faults.iter().map(|f| &f.part).collect::<Vec<_>>(), [&part], "{key:?} {operator} {values:?}");
        }
        let long = "a".repeat(64);
        assert!(Selector::compile([(long.as_str(), "v")], []).is_err());
        assert!(Selector::compile([("k", long.as_str())], []).is_err());
        assert!(Selector::compile([("example.com/Pool_1.x", "")], []).is_ok());
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let faults = Selector::compile([("-", "ok")], [("a b", "Equals", vec!["?"]), ("c", "In", vec![])]);
        assert_eq!(faults.expect_err("faults").len(), 5);
    }

    #[test]
    fn text_is_kubectls_notation() {
        let selector = Selector::compile([("b", "1")], [("a", "NotIn", vec!["x", "y"]), ("c", "DoesNotExist", vec![])]);
        assert_eq!(selector.map(|s| s.to_string()), Ok("a notin (x,y),b=1,!c".to_owned()));
        assert_eq!(Selector::everything().to_string(), "{}");
    }
}
