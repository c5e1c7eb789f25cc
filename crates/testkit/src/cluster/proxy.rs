//! kube-proxy on a node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use egret_netlab::{Host, Process};
use serde_json::json;

use super::error::ClusterError;
use crate::server::Part;

/// A busy machine is given much longer than it takes.
const READY: Duration = Duration::from_mins(1);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Starts it, without waiting for it.
pub(crate) fn start(node: &Host, kubeconfig: &Path) -> Result<Process, ClusterError> {
    let program = Part::Proxy.find().map_err(|source| ClusterError::Parts { part: Part::Proxy, source })?;
    let file = PathBuf::from(format!("/run/kube-proxy-{}.json", node.name()));
    let configuration = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": node.name(),
        "clientConnection": {"kubeconfig": kubeconfig},
        "clusterCIDR": "10.244.0.0/16,fd00:10:244::/48",
        // It would set parameters that only the machine's own network has.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        // Tests wait for it.
        "nftables": {"minSyncPeriod": "100ms"},
    });
    let written = fs::write(&file, configuration.to_string());
    written.map_err(|source| ClusterError::File { file: file.clone(), source })?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&file);
    Ok(node.spawn(&command)?)
}

/// Waits until it has written its rules for the first time.
pub(crate) async fn ready(node: &Host, process: &mut Process) -> Result<(), ClusterError> {
    let began = tokio::time::Instant::now();
    loop {
        if node.output(["nft", "list", "chain", "ip", "kube-proxy", "services"])?.status.success() {
            return Ok(());
        }
        let ended = process.ended().is_ok_and(|status| status.is_some());
        if ended || began.elapsed() > READY {
            return Err(ClusterError::Proxy { node: node.name().to_owned(), said: process.said() });
        }
        tokio::time::sleep(PAUSE).await;
    }
}
