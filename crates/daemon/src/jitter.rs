//! Randomness for waits: instances and watches that failed together must not come back together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// A stream of factors. No secret depends on it.
#[derive(Debug)]
pub struct Jitter {
    state: RandomState,
    drawn: u64,
}

impl Default for Jitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Jitter {
    /// A new stream.
    #[must_use]
    pub fn new() -> Self {
        Self { state: RandomState::new(), drawn: 0 }
    }

    /// A wait between `base` and `base * (1 + most)`.
    pub fn stretch(&mut self, base: Duration, most: f64) -> Duration {
        self.drawn += 1;
        // 32 bits are exact in an f64.
        let drawn = u32::try_from(self.state.hash_one(self.drawn) >> 32).unwrap_or_default();
        base.mul_f64(1.0 + most * f64::from(drawn) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_differ_and_stay_within_bounds() {
        let mut jitter = Jitter::new();
        let second = Duration::from_secs(1);
        let waits: Vec<_> = (0..100).map(|_| jitter.stretch(second, 0.5)).collect();
        assert!(waits.iter().all(|wait| (second..=second * 3 / 2).contains(wait)));
        assert!(waits.iter().any(|wait| *wait < second * 5 / 4) && waits.iter().any(|wait| *wait > second * 5 / 4));
    }
}
