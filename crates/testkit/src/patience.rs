//! Waiting for what others do.

use std::time::{Duration, Instant};

/// Longer than anything in a test takes on a busy machine: whoever waits so long waits in vain.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Soon enough that nobody notices, seldom enough that asking costs nothing.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is an answer. Panics with what was waited for if there is none.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
