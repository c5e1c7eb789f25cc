//! A cluster on a real API server, the record of everything that happens in it, and controllers.

mod cluster;
mod controller;
mod make;
mod recorder;
mod wire;

use std::time::Duration;

pub(crate) use cluster::{CONTROLLER, Cluster, RIVAL};
pub(crate) use controller::{Controller, TERMS, config, probes};
pub(crate) use make::{address, egress_ip, egress_ip_of, egress_service, host_of, not_ready, ready};
pub(crate) use recorder::{egress_ip_key, everyone_is_placed, key, placed};
pub(crate) use wire::Wire;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Asks until it is so.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
