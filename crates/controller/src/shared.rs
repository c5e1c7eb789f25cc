//! What the loop shows to the rest of the process: whether it lives, leads and knows everything, and what it has decided.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use egret_brain::{Numbers, View};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Questions that may wait: whoever asks gives up long before there are more.
const QUESTIONS: usize = 16;

/// One per process; the loop writes it, the admin port reads it.
#[derive(Debug)]
pub struct Shared {
    started: Instant,
    listed: AtomicBool,
    leading: AtomicBool,
    /// Milliseconds from `started` to the last turn of the loop.
    beat: AtomicU64,
    questions: mpsc::Sender<Question>,
}

/// What the loop answers between two passes. It is asked for, and not kept ready, because copying a thousand objects
/// after every pass costs more than deciding about them.
#[derive(Debug)]
pub enum Question {
    /// The snapshot with its decision.
    View(oneshot::Sender<View>),
    /// The figures for metrics.
    Numbers(oneshot::Sender<Numbers>),
}

/// What the loop takes questions from.
pub type Questions = mpsc::Receiver<Question>;

impl Shared {
    /// A process whose loop has not turned yet, and the loop's end of it.
    #[must_use]
    pub fn new() -> (Self, Questions) {
        let (questions, answered) = mpsc::channel(QUESTIONS);
        let shared = Self {
            started: Instant::now(),
            listed: AtomicBool::new(false),
            leading: AtomicBool::new(false),
            beat: AtomicU64::new(0),
            questions,
        };
        (shared, answered)
    }

    /// Whether every kind has been listed (`/readyz`): before that nothing is decided.
    #[must_use]
    pub fn listed(&self) -> bool {
        self.listed.load(Ordering::Relaxed)
    }

    /// Whether this instance may write.
    #[must_use]
    pub fn leading(&self) -> bool {
        self.leading.load(Ordering::Relaxed)
    }

    /// How long ago the loop turned (`/healthz`). It turns at least once a second.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        self.started.elapsed().saturating_sub(Duration::from_millis(self.beat.load(Ordering::Relaxed)))
    }

    /// The brain's view; `None` if the loop has ended or does not answer within `patience`.
    pub async fn view(&self, patience: Duration) -> Option<View> {
        self.ask(Question::View, patience).await
    }

    /// The brain's numbers; `None` as for [`Shared::view`].
    pub async fn numbers(&self, patience: Duration) -> Option<Numbers> {
        self.ask(Question::Numbers, patience).await
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question, patience: Duration) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        let asked = async {
            self.questions.send(question(sender)).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(patience, asked).await.ok().flatten()
    }

    pub(crate) fn set_listed(&self) {
        self.listed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_leading(&self, leading: bool) {
        self.leading.store(leading, Ordering::Relaxed);
    }

    pub(crate) fn beat(&self) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat.store(elapsed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_seen_and_not_waited_for() {
        let (shared, mut questions) = Shared::new();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(shared.silent_for(), Duration::from_secs(5));
        shared.beat();
        assert_eq!(shared.silent_for(), Duration::ZERO);
        assert!(shared.view(Duration::from_secs(1)).await.is_none());
        let answers = async {
            while let Some(question) = questions.recv().await {
                if let Question::Numbers(sender) = question {
                    return sender.send(Numbers::default());
                }
            }
            Ok(())
        };
        let (numbers, _) = tokio::join!(shared.numbers(Duration::from_secs(1)), answers);
        assert!(numbers.is_some());
    }
}
