//! The control planes of this process: as many as tests run at once, each started when it is first needed.

use std::collections::VecDeque;
use std::env;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::control_plane::{ControlPlane, ControlPlaneError};
use super::empty::Baseline;
use super::taken::ServerError;

/// Each takes 450 MB and most of a core while it starts. More of them make the tests of a machine with two cores no
/// faster.
const LIMIT: usize = 2;

/// Says another limit.
const LIMIT_VARIABLE: &str = "EGRET_TEST_SERVERS";

/// A control plane, and what it held when it was new.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) plane: ControlPlane,
    baseline: Baseline,
}

/// The right to use one control plane.
pub(crate) type Permit = OwnedSemaphorePermit;

/// In the order in which they were given back, so that each is used in its turn.
static IDLE: Mutex<VecDeque<Slot>> = Mutex::new(VecDeque::new());

/// One that nobody else uses, as good as new. Waits for one if all are taken.
pub(crate) async fn take() -> Result<(Permit, Slot), ServerError> {
    static PERMITS: OnceLock<Arc<Semaphore>> = OnceLock::new();
    let permits = PERMITS.get_or_init(|| Arc::new(Semaphore::new(limit())));
    let permit = Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed");
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let slot = match idle {
        Some(mut slot) => match slot.renew().await {
            Ok(()) => slot,
            // Whatever a test has done to it: another one does as well.
            Err(_) => Slot::start().await?,
        },
        None => Slot::start().await?,
    };
    Ok((permit, slot))
}

/// Gives one back before its permit, so that whoever gets the permit finds it.
pub(crate) fn give_back(slot: Slot) {
    slot.plane.stop_manager();
    // If it cannot be resumed it cannot be renewed either, and is replaced.
    let _ = slot.plane.resume_etcd();
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).push_back(slot);
}

fn limit() -> usize {
    env::var(LIMIT_VARIABLE).ok().and_then(|text| text.parse().ok()).filter(|&limit| limit > 0).unwrap_or(LIMIT)
}

impl Slot {
    async fn start() -> Result<Self, ServerError> {
        let plane = ControlPlane::start().await?;
        let baseline = Baseline::observe(&plane.store()).await?;
        Ok(Self { plane, baseline })
    }

    async fn renew(&mut self) -> Result<(), ServerError> {
        self.plane.start_api().await?;
        let client = Client::try_from(self.plane.config().clone());
        let client = client.map_err(|source| ControlPlaneError::Client { source })?;
        Ok(self.baseline.restore(&self.plane.store(), &client).await?)
    }
}
