//! Who of several instances may write: a Lease, and a right that ends before another instance can get one.
//!
//! The algorithm is client-go's: a record is replaced with its `resourceVersion` as the guard, and somebody else's counts
//! as expired when *we* have not seen it change for its duration, on our own monotonic clock. Wall clocks of different
//! machines are never compared.
//!
//! [`Election`] decides and knows no clock; [`Candidate`] talks to the API server and publishes a [`Standing`].

mod candidate;
mod election;
#[cfg(test)]
mod model;

pub use candidate::Candidate;
pub use election::{Election, Observed, Record, Step};

use std::time::Duration;

use tokio::time::Instant;

/// An operator's word, on the Lease: the mass silence of this number is real.
pub const ACCEPT_MASS_SILENCE: &str = "egret.io/accept-mass-silence";

/// The times of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long others wait after the last change that they saw.
    pub duration: Duration,
    /// How long after the start of its last successful renewal an instance may write. What is left to `duration` is for
    /// clocks that run at different speeds and for requests that are still on their way.
    pub deadline: Duration,
    /// Between two attempts.
    pub retry: Duration,
}

impl Default for Terms {
    /// As every component of Kubernetes itself has it.
    fn default() -> Self {
        Self { duration: Duration::from_secs(15), deadline: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

/// Permission to write, as a value: whoever holds it checks it before each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// A number that is another one when somebody else may have led in between.
    pub term: u64,
    /// Nothing may still be under way then.
    pub until: Instant,
}

impl Right {
    /// How long a write that begins now may take: `most`, or what is left. `None` if that is not worth beginning.
    #[must_use]
    pub fn time_for_a_write(&self, most: Duration) -> Option<Duration> {
        /// Less than a slow API server needs for an answer: the write would happen and its result would be unknown.
        const LEAST: Duration = Duration::from_millis(250);
        let left = self.until.saturating_duration_since(Instant::now());
        (left >= LEAST).then(|| left.min(most))
    }

    /// Whether it still holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        Instant::now() < self.until
    }
}

/// What the candidate publishes whenever it learns something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The last right; it may have ended since.
    pub right: Option<Right>,
    /// [`ACCEPT_MASS_SILENCE`], as last read.
    pub silence_accepted: Option<u64>,
}

impl Standing {
    /// The right, if it still holds.
    #[must_use]
    pub fn right_now(&self) -> Option<Right> {
        self.right.filter(Right::holds)
    }
}
