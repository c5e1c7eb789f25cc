//! Waiting for a condition of another process, which can only be asked again and again.

use std::time::{Duration, Instant};

/// Soon enough that nobody notices, seldom enough that asking costs nothing.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until there is an answer, but not beyond the limit: then nothing is returned.
pub(crate) async fn until<T, E>(
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await? {
            return Ok(Some(answer));
        }
        if start.elapsed() > limit {
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
