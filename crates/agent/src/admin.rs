//! What the agent tells at its admin port: ready is who has read the desired state and made the kernel so; the snapshot is
//! what this node does and says of its objects.

use std::sync::Arc;
use std::time::Duration;

use egret_daemon::admin::{Daemon, NotYet};

use crate::{Metrics, Shared, View};

/// The agent, as it is seen through its admin port.
#[derive(Debug)]
pub struct Admin {
    /// What the loop shows.
    pub shared: Arc<Shared>,
    /// What it counts.
    pub metrics: Arc<Metrics>,
}

impl Admin {
    fn view(&self) -> Result<Arc<View>, NotYet> {
        self.shared.view().ok_or_else(|| "the desired state has not been read yet".into())
    }
}

impl Daemon for Admin {
    fn silent_for(&self) -> Duration {
        self.shared.silent_for()
    }

    fn ready(&self) -> Result<(), NotYet> {
        let view = self.view()?;
        if view.settled {
            return Ok(());
        }
        Err(NotYet(view.failure.clone().unwrap_or_else(|| "the kernel is not yet as it should be".to_owned())))
    }

    async fn metrics(&self) -> String {
        self.metrics.heartbeat_age(self.shared.silent_for());
        self.metrics.exposition()
    }

    async fn snapshot(&self) -> Result<serde_json::Result<Vec<u8>>, NotYet> {
        Ok(serde_json::to_vec(&*self.view()?))
    }
}
