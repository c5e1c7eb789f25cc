//! What was checked, and what failed.

use std::collections::BTreeSet;
use std::fmt;

/// One expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which expectation: its path below `expect`.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// Counts expectations.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many were checked.
    pub checked: usize,
    /// Those that do not hold.
    pub failures: Vec<Failure>,
}

impl Tally {
    /// Counts one expectation, which holds or not.
    pub fn holds(&mut self, holds: bool, what: String, expected: &dyn fmt::Debug, found: &dyn fmt::Debug) {
        self.checked += 1;
        if !holds {
            self.fail(what, format!("{expected:?}"), format!("{found:?}"));
        }
    }

    /// Records a failure that no expectation speaks of.
    pub fn fail(&mut self, what: String, expected: String, found: String) {
        self.failures.push(Failure { what, expected, found });
    }
}

/// The expectations about one thing.
pub(super) struct Section<'a> {
    tally: &'a mut Tally,
    path: String,
}

impl<'a> Section<'a> {
    pub(super) fn new(tally: &'a mut Tally, path: impl Into<String>) -> Self {
        Self { tally, path: path.into() }
    }

    pub(super) fn holds(&mut self, key: &str, holds: bool, expected: &dyn fmt::Debug, found: &dyn fmt::Debug) {
        self.tally.holds(holds, format!("{}.{key}", self.path), expected, found);
    }

    /// A failure that no key of the expectation speaks of.
    pub(super) fn fail(&mut self, key: &str, expected: &str, found: &str) {
        self.tally.fail(format!("{}.{key}", self.path), expected.to_owned(), found.to_owned());
    }

    /// The value is this one, if one is expected.
    pub(super) fn equal<T: PartialEq + fmt::Debug>(&mut self, key: &str, expected: Option<&T>, found: &T) {
        if let Some(expected) = expected {
            self.holds(key, expected == found, expected, found);
        }
    }

    /// The texts are these, in any order.
    pub(super) fn same_set(&mut self, key: &str, expected: Option<&Vec<String>>, found: &BTreeSet<&str>) {
        if let Some(expected) = expected {
            let expected = set(expected);
            self.holds(key, expected == *found, &expected, found);
        }
    }

    /// There is no text that is not one of these.
    pub(super) fn subset(&mut self, key: &str, expected: Option<&Vec<String>>, found: &BTreeSet<&str>) {
        if let Some(expected) = expected {
            let expected = set(expected);
            self.holds(key, found.is_subset(&expected), &expected, found);
        }
    }

    /// These texts are there.
    pub(super) fn contains(&mut self, key: &str, expected: Option<&Vec<String>>, found: &BTreeSet<&str>) {
        if let Some(expected) = expected {
            let expected = set(expected);
            self.holds(key, expected.is_subset(found), &expected, found);
        }
    }

    /// These texts are not there.
    pub(super) fn lacks(&mut self, key: &str, expected: Option<&Vec<String>>, found: &BTreeSet<&str>) {
        if let Some(expected) = expected {
            let expected = set(expected);
            self.holds(key, expected.is_disjoint(found), &expected, found);
        }
    }
}

fn set(texts: &[String]) -> BTreeSet<&str> {
    texts.iter().map(String::as_str).collect()
}
