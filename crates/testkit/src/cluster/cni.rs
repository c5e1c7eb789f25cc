//! Pods' interfaces, by the real CNI plugins `bridge` and `host-local`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use egret_netlab::Host;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::error::ClusterError;

/// The folder with the plugins, built now unless they have been before.
pub(crate) fn folder() -> Result<PathBuf, ClusterError> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = FOUND.get() {
        return Ok(folder.clone());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../controlplane/cni/build");
    match Command::new(&script).stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Err(source) => Err(ClusterError::Plugins { script, source: Some(source) }),
        Ok(output) if !output.status.success() => Err(ClusterError::Plugins { script, source: None }),
        Ok(output) => {
            let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
            Ok(FOUND.get_or_init(|| folder).clone())
        }
    }
}

/// Gives a pod its interface, and returns its addresses.
pub(crate) fn add(node: &Host, subnets: &[String], pod: &str, namespace: &Path) -> Result<Vec<IpAddr>, ClusterError> {
    let said = call(node, subnets, pod, namespace, "ADD")?;
    let result: Value = serde_json::from_str(&said).unwrap_or_default();
    let all = result["ips"].as_array().into_iter().flatten();
    let addresses: Vec<IpAddr> =
        all.filter_map(|ip| ip["address"].as_str()?.parse::<IpNet>().ok()).map(|network| network.addr()).collect();
    if addresses.is_empty() {
        return Err(ClusterError::Addresses { pod: pod.to_owned(), said });
    }
    Ok(addresses)
}

/// Takes it away again.
pub(crate) fn delete(node: &Host, subnets: &[String], pod: &str, namespace: &Path) -> Result<(), ClusterError> {
    call(node, subnets, pod, namespace, "DEL").map(drop)
}

fn call(node: &Host, subnets: &[String], pod: &str, namespace: &Path, what: &str) -> Result<String, ClusterError> {
    let folder = folder()?;
    let bridge = folder.join("bridge").display().to_string();
    let variables = [
        format!("CNI_COMMAND={what}"),
        format!("CNI_CONTAINERID={pod}"),
        format!("CNI_NETNS={}", namespace.display()),
        "CNI_IFNAME=eth0".to_owned(),
        format!("CNI_PATH={}", folder.display()),
    ];
    let command: Vec<&str> =
        ["env"].into_iter().chain(variables.iter().map(String::as_str)).chain([bridge.as_str()]).collect();
    Ok(node.tell(command, &configuration(node.name(), subnets).to_string())?)
}

fn configuration(node: &str, subnets: &[String]) -> Value {
    let ranges: Vec<Value> = subnets.iter().map(|subnet| json!([{"subnet": subnet}])).collect();
    json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": true,
        "hairpinMode": true,
        "ipMasq": true,
        "ipMasqBackend": "nftables",
        "ipam": {
            "type": "host-local",
            // Nodes share a file system here.
            "dataDir": format!("/run/cni/{node}"),
            "ranges": ranges,
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
        },
    })
}
