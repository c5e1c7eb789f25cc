//! `k8s.ovn.org/egressip-mark`, on an EgressIP

use std::fmt;
use std::ops::RangeInclusive;

/// The mark that packets of the object carry, in decimal.
pub const KEY: &str = "k8s.ovn.org/egressip-mark";

/// A mark that can be given to an EgressIP: 50000 to 54999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u32);

impl Mark {
    /// All numbers that are marks. OVN-Kubernetes reads 55000, too, but its allocator can neither give nor reserve it.
    pub const RANGE: RangeInclusive<u32> = 50_000..=54_999;

    /// The mark of this number, if it is one.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        Self::RANGE.contains(&number).then_some(Self(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not a [`Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkFault {
    /// It is no number.
    #[error("a mark is a decimal number")]
    NotANumber,
    /// The number is no mark.
    #[error("a mark is a number from {} to {}, not {number}", Mark::RANGE.start(), Mark::RANGE.end())]
    OutOfRange {
        /// The number.
        number: u32,
    },
}

/// Reads `50000`.
///
/// # Errors
/// [`MarkFault`].
pub fn decode(text: &str) -> Result<Mark, MarkFault> {
    let number = text.parse().map_err(|_| MarkFault::NotANumber)?;
    Mark::new(number).ok_or(MarkFault::OutOfRange { number })
}

/// Writes what [`decode`] reads.
#[must_use]
pub fn encode(mark: Mark) -> String {
    mark.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_reserved_is_a_mark() {
        for (text, mark) in [
            ("50000", Ok(50_000)),
            ("54999", Ok(54_999)),
            ("49999", Err(MarkFault::OutOfRange { number: 49_999 })),
            ("55000", Err(MarkFault::OutOfRange { number: 55_000 })),
            ("", Err(MarkFault::NotANumber)),
            ("0xc350", Err(MarkFault::NotANumber)),
            ("-50000", Err(MarkFault::NotANumber)),
            ("99999999999", Err(MarkFault::NotANumber)),
        ] {
            assert_eq!(decode(text).map(Mark::get), mark, "{text:?}");
        }
    }

    #[test]
    fn a_mark_comes_back() {
        assert_eq!(decode("50001").map(encode), Ok("50001".to_owned()));
    }
}
