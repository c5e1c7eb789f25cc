//! The health service of a node, `Service_Egress_IP`, by which a controller knows that the node can have egress addresses.
//!
//! Where OVN-Kubernetes runs, ovnkube-node has this service, and this one is off; elsewhere nobody else has it. On the
//! wire it is the same, but that it listens on *all* management addresses of the node, and that it can say no:
//!
//! ```text
//!   Service_Egress_IP ─> SERVING, or NOT_SERVING while the drain file exists
//!   any other service ─> NOT_SERVING, also for the empty name
//! ```
//!
//! Draining is asked for, by a file, and not by the end of the process: an agent is ended for an update far more often
//! than for a node that goes, and a "no" moves every address of the node within one probe.
//!
//! Invariants: nothing here ends the agent; whoever has the port already keeps it.

mod answer;
mod certificate;
mod listener;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use egret_daemon::grpc::{NOT_SERVING, SERVICE, SERVING};
use egret_daemon::tls::Renewed;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::certificate::ServerFiles;
use crate::Metrics;

/// What failed is tried again after so long: an address that is not there yet, a certificate that is not written yet.
const RETRY: Duration = Duration::from_secs(1);

/// Reasons of failures, as metrics have them.
pub(crate) const FAILURES: [&str; 6] = ["in-use", "no-address", "other", "accept", "full", "certificate"];

/// Whether there is a health service here, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthOptions {
    /// The TCP port. `None`: there is no health service.
    pub port: Option<u16>,
    /// Instead of the management addresses of the node.
    pub addresses: Vec<IpAddr>,
    /// How to speak. `None`: in plain text.
    pub tls: Option<ServerFiles>,
    /// While this file exists the node says that it does not serve.
    pub drain: PathBuf,
    /// Whoever has the port must be gone for so long before it is taken: ovnkube-node ends when it comes back from a
    /// restart and finds its port taken.
    pub stand_back: Duration,
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self {
            port: None,
            addresses: Vec::new(),
            tls: None,
            drain: PathBuf::from("/run/egret/drain"),
            stand_back: Duration::from_mins(2),
        }
    }
}

/// What all sessions share.
struct Health {
    drain: PathBuf,
    draining: AtomicBool,
    tls: Option<Renewed<ServerConfig>>,
    stand_back: Duration,
    metrics: Arc<Metrics>,
}

/// Answers until `stop`, on the addresses that `management` tells or the options do. An address that has gone from
/// `management` is left when another is there: a node that says nothing of its addresses has not lost them.
pub async fn serve(
    options: HealthOptions,
    mut management: watch::Receiver<Vec<IpAddr>>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    let Some(port) = options.port else { return stop.cancelled().await };
    let serving = async {
        let tls = certificate::load(options.tls.as_ref(), &metrics).await;
        let (drain, stand_back) = (options.drain, options.stand_back);
        let health = Arc::new(Health { drain, draining: AtomicBool::new(false), tls, stand_back, metrics });
        let mut listeners: BTreeMap<IpAddr, JoinSet<()>> = BTreeMap::new();
        loop {
            let told = management.borrow_and_update().clone();
            let wanted = if options.addresses.is_empty() { told } else { options.addresses.clone() };
            if !wanted.is_empty() {
                listeners.retain(|address, _| wanted.contains(address));
            }
            for address in wanted {
                listeners.entry(address).or_insert_with(|| {
                    let mut task = JoinSet::new();
                    task.spawn(listener::listen(SocketAddr::new(address, port), Arc::clone(&health)));
                    task
                });
            }
            if management.changed().await.is_err() {
                // Nobody tells any more; what is listened on stays so.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = serving => {}
        () = stop.cancelled() => {}
    }
}

impl Health {
    /// The status of a service.
    fn status(&self, service: &[u8]) -> u64 {
        let draining = self.is_draining();
        let status = if service == SERVICE.as_bytes() && !draining { SERVING } else { NOT_SERVING };
        self.metrics.health_checked(status == SERVING);
        status
    }

    /// Looked up for every question: that is a few microseconds a few times a second.
    fn is_draining(&self) -> bool {
        let draining = self.drain.exists();
        if self.draining.swap(draining, Ordering::Relaxed) != draining {
            self.metrics.draining(draining);
            if draining {
                tracing::warn!(file = %self.drain.display(), "draining: the node says that it does not serve");
            } else {
                tracing::info!("no longer draining: the node serves");
            }
        }
        draining
    }
}
