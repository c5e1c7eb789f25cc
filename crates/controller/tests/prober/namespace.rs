//! A network namespace for one test.

use std::future::Future;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use egret_netlab::Alone;

/// What sends clients another way.
const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY"];

/// Runs the body in a new namespace.
pub(crate) fn alone(path: &str, body: impl Future<Output = ()>) {
    // Probes must not take the way through a proxy (defect D20 of OVN-Kubernetes): with these none would arrive.
    let test = PROXIES.into_iter().fold(Alone::new(path), |test, name| test.env(name, "http://127.66.6.6:1"));
    test.run(|| {
        prepare();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let limited = async { tokio::time::timeout(Duration::from_mins(1), body).await };
        runtime.block_on(limited)?;
        // What still waits for a peer is not waited for.
        runtime.shutdown_background();
        Ok(())
    });
}

fn prepare() {
    // A command a line: nft 1.0.6 takes no two closing braces on one.
    nft("add table inet wire\nadd chain inet wire input { type filter hook input priority 0; }");
}

/// A tool that must succeed.
pub(crate) fn run(tool: &str, arguments: &[&str]) {
    let output = Command::new(tool).args(arguments).output().unwrap();
    assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Changes the wire.
pub(crate) fn nft(commands: &str) {
    let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success(), "nft: {commands}");
}

/// Not for 127.0.0.1, which everything on this interface comes from.
///
/// What arrives for this address is lost, answered for it, or whatever the verdict says.
pub(crate) fn spoil(address: &str, verdict: &str) {
    let family = if address.contains(':') { "ip6" } else { "ip" };
    nft(&format!("add rule inet wire input {family} daddr {address} {verdict}"));
}

/// What the peers of the address send is lost too: the wire is cut, not only blocked.
pub(crate) fn cut(address: &str) {
    spoil(address, "drop");
    nft(&format!("add rule inet wire input ip saddr {address} drop"));
}

/// Nothing is spoilt or cut any more.
pub(crate) fn repair() {
    nft("flush chain inet wire input");
}
