//! Waiting for a condition that can only be asked again and again.

use std::thread;
use std::time::{Duration, Instant};

/// Soon enough that nobody notices, seldom enough that asking costs nothing.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// Asks until the answer is yes, but not beyond the limit. Whether it was.
#[must_use]
pub fn until(limit: Duration, mut asked: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if asked() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(PAUSE);
    }
}
