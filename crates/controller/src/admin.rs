//! What the controller tells at its admin port: ready is who has listed every kind once, whether it leads or not; the
//! snapshot is what is known and decided, and the commands read it.

use std::sync::Arc;
use std::time::Duration;

use egret_daemon::admin::{Daemon, NotYet};

use crate::metrics::Metrics;
use crate::shared::Shared;

/// So long a question waits for the loop: a decision about the largest cluster takes a fraction of it, and a scrape that
/// comes back with what is known is better than one that times out.
const PATIENCE: Duration = Duration::from_secs(5);

/// The controller, as it is seen through its admin port.
#[derive(Debug)]
pub struct Admin {
    /// What the loop shows.
    pub shared: Arc<Shared>,
    /// What it counts.
    pub metrics: Arc<Metrics>,
}

impl Daemon for Admin {
    fn silent_for(&self) -> Duration {
        self.shared.silent_for()
    }

    fn ready(&self) -> Result<(), NotYet> {
        if self.shared.listed() { Ok(()) } else { Err("not every kind has been listed yet".into()) }
    }

    async fn metrics(&self) -> String {
        // Those of a loop that does not answer stay as they were; the age of its heartbeat tells.
        if let Some(numbers) = self.shared.numbers(PATIENCE).await {
            self.metrics.record(&numbers);
        }
        self.metrics.leading(self.shared.leading());
        self.metrics.heartbeat_age(self.shared.silent_for());
        self.metrics.exposition()
    }

    async fn snapshot(&self) -> Result<serde_json::Result<Vec<u8>>, NotYet> {
        self.ready()?;
        let view = self.shared.view(PATIENCE).await.ok_or(NotYet::from("the loop does not answer"))?;
        Ok(serde_json::to_vec(&view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Question;

    fn admin() -> (Admin, tokio::sync::mpsc::Receiver<Question>) {
        let (shared, questions) = Shared::new();
        (Admin { shared: Arc::new(shared), metrics: Arc::new(Metrics::new()) }, questions)
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_turns_is_not_silent() {
        let (admin, _questions) = admin();
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(admin.silent_for(), Duration::from_secs(31));
        admin.shared.beat();
        assert_eq!(admin.silent_for(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn ready_means_that_everything_was_listed_once() {
        let (admin, _questions) = admin();
        assert!(admin.ready().is_err() && admin.snapshot().await.is_err());
        admin.shared.set_listed();
        assert_eq!(admin.ready(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_answer_costs_the_snapshot_but_not_the_metrics() {
        let (admin, _questions) = admin();
        admin.shared.set_listed();
        assert!(admin.snapshot().await.is_err());
        let text = admin.metrics().await;
        assert!(text.contains("egret_controller_heartbeat_age_seconds 10.0\n"), "{text}");
    }

    #[tokio::test]
    async fn the_snapshot_is_what_the_loop_says() {
        let (admin, mut questions) = admin();
        admin.shared.set_listed();
        let view = egret_brain::View::default();
        let expected = serde_json::to_vec(&view).expect("JSON");
        let answers = async {
            if let Some(Question::View(sender)) = questions.recv().await {
                let _ = sender.send(view);
            }
        };
        let (snapshot, ()) = tokio::join!(admin.snapshot(), answers);
        assert_eq!(snapshot.map(Result::ok), Ok(Some(expected)));
    }
}
