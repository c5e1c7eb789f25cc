//! What the loop shows to the rest of the process.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::View;

/// One per process; the loop writes it, the admin port reads it.
#[derive(Debug)]
pub struct Shared {
    started: Instant,
    /// Milliseconds from `started` to the last turn of the loop.
    beat: AtomicU64,
    view: Mutex<Option<Arc<View>>>,
    /// Where the node is probed, as its object says.
    management: watch::Sender<Vec<IpAddr>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            beat: AtomicU64::new(0),
            view: Mutex::new(None),
            management: watch::Sender::default(),
        }
    }
}

impl Shared {
    /// What the last pass came to; `None` before the desired state has been read once.
    #[must_use]
    pub fn view(&self) -> Option<Arc<View>> {
        // Replaced only as a whole: after a panic elsewhere it is as good as before.
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long ago the loop turned. It turns at least once a second.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        self.started.elapsed().saturating_sub(Duration::from_millis(self.beat.load(Ordering::Relaxed)))
    }

    pub(crate) fn beat(&self) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat.store(elapsed, Ordering::Relaxed);
    }

    /// The addresses at which the node is probed, now and from now on; none before its object has been read.
    #[must_use]
    pub fn management(&self) -> watch::Receiver<Vec<IpAddr>> {
        self.management.subscribe()
    }

    pub(crate) fn is_probed_at(&self, addresses: Vec<IpAddr>) {
        self.management.send_if_modified(|known| {
            let new = *known != addresses;
            *known = addresses;
            new
        });
    }

    pub(crate) fn show(&self, view: View) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(view));
    }
}
