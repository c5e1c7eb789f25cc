//! What became of one object.

use crate::Fault;

/// An object in the words of the domain, as far as it can be read, and everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Converted<T> {
    /// The object; `None` if it makes no sense without a part that is missing or faulty.
    pub object: Option<T>,
    /// All faults, in the order of their paths, each once.
    pub faults: Vec<Fault>,
}

impl<T> Converted<T> {
    pub(crate) fn new(object: Option<T>, mut faults: Vec<Fault>) -> Self {
        faults.sort_unstable();
        faults.dedup();
        Self { object, faults }
    }
}
