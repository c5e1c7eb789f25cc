//! A network namespace for one test.

use std::env;
use std::future::Future;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Set in the process that is inside; holds the name of the test.
const INSIDE: &str = "EGRET_PROBER_NAMESPACE";

/// Starts the test binary again, in a new namespace and for this test only: a thread cannot enter a namespace without
/// unsafe code. `body` runs there.
pub(crate) fn alone(path: &str, body: impl Future<Output = ()>) {
    if env::var_os(INSIDE).is_some() {
        prepare();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let limited = async { tokio::time::timeout(Duration::from_mins(1), body).await };
        runtime.block_on(limited).expect("the test ends within a minute");
        // What still waits for a peer is not waited for.
        return runtime.shutdown_background();
    }
    let Some(unshare) = permitted() else {
        assert!(env::var_os("CI").is_none(), "needs unshare, ip, nft and the right to make network namespaces");
        return eprintln!("skipped: {path} needs unshare, ip, nft and the right to make network namespaces");
    };
    // The name as the test runner knows it is without the crate.
    let (_, name) = path.split_once("::").unwrap();
    let output = Command::new("unshare")
        .args(unshare)
        .args(["--fork", "--kill-child"])
        .arg(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        // Probes must not take the way through a proxy (defect D20 of OVN-Kubernetes): with these none would arrive.
        .envs(["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY"].map(|name| (name, "http://127.66.6.6:1")))
        .output()
        .unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains("1 passed"), "{name} failed in its namespace:\n{out}\n{err}");
}

/// How to make a namespace here, if that is possible.
fn permitted() -> Option<&'static [&'static str]> {
    static PERMITTED: OnceLock<Option<&[&str]>> = OnceLock::new();
    *PERMITTED.get_or_init(|| {
        let ways: [&'static [&'static str]; 2] = [&["--net"], &["--net", "--user", "--map-root-user"]];
        ways.into_iter().find(|way| {
            let try_out = "ip link set lo up && nft add table inet wire";
            Command::new("unshare").args(*way).args(["sh", "-c", try_out]).output().is_ok_and(|it| it.status.success())
        })
    })
}

fn prepare() {
    run("ip", &["link", "set", "lo", "up"]);
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
