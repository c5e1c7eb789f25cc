//! A task that ends with its owner.

use std::future::Future;

use tokio::task::JoinHandle;

/// Runs while it is held: dropped, it ends at its next point of waiting.
#[derive(Debug)]
pub(super) struct WhileHeld(JoinHandle<()>);

impl WhileHeld {
    pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for WhileHeld {
    fn drop(&mut self) {
        self.0.abort();
    }
}
