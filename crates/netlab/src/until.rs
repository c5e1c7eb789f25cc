//! Waiting for a condition that can only be asked again and again.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// Soon enough that nobody notices at first, and later seldom enough that asking costs nothing: who waits for long waits
/// for a machine that is busy.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How many times as long as elsewhere everything may take here: an emulated machine is slow.
const PATIENCE: &str = "EGRET_LAB_PATIENCE";

/// A limit, as it is on this machine.
pub(crate) fn patient(limit: Duration) -> Duration {
    static FACTOR: LazyLock<u32> = LazyLock::new(|| {
        let told = std::env::var(PATIENCE).ok();
        told.and_then(|factor| factor.parse().ok()).unwrap_or(1)
    });
    limit * *FACTOR
}

/// Asks until the answer is yes, but not beyond the limit; longer, where `EGRET_LAB_PATIENCE` says how many times. Whether
/// it was.
#[must_use]
pub fn until(limit: Duration, mut asked: impl FnMut() -> bool) -> bool {
    let (start, limit) = (Instant::now(), patient(limit));
    loop {
        if asked() {
            return true;
        }
        let waited = start.elapsed();
        if waited > limit {
            return false;
        }
        thread::sleep((waited / 10).clamp(PAUSE, LONGEST_PAUSE));
    }
}
