//! A network of this benchmark's own, in which every node's address is at home and answers.

use std::env;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};

/// Set in the process that is inside.
const INSIDE: &str = "EGRET_BENCH_NAMESPACE";

/// All pod networks of the nodes are in it. Every address of it is this machine's own, so that a connection to TCP port 9
/// of any of them is refused, as it is by a node that is well.
const NODES: &str = "10.0.0.0/8";

/// What is sent to a silent address is lost.
const WIRE: &str = "
add table inet wire
add set inet wire silent { type ipv4_addr; }
add chain inet wire input { type filter hook input priority 0; }
add rule inet wire input ip daddr @silent drop
";

pub(crate) fn inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Starts this program again in a new namespace: a thread cannot enter one without unsafe code.
pub(crate) fn enter() -> anyhow::Result<ExitCode> {
    let ways: [&[&str]; 2] = [&["--net"], &["--net", "--user", "--map-root-user"]];
    let permitted = |way: &&&[&str]| {
        let mut tried = Command::new("unshare");
        tried.args(**way).args(["sh", "-c", "ip link set lo up && nft list ruleset"]);
        tried.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let way = ways.iter().find(permitted);
    let way = way.context("this needs unshare, ip, nft and the right to make network namespaces")?;
    let mut command = Command::new("unshare");
    command.args(*way).args(["--fork", "--kill-child"]).arg(env::current_exe()?).args(env::args_os().skip(1));
    let status = command.env(INSIDE, "").status().context("failed to start unshare")?;
    Ok(ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(2)))
}

pub(crate) fn prepare() -> anyhow::Result<()> {
    run("ip", &["link", "set", "lo", "up"])?;
    run("ip", &["route", "add", "local", NODES, "dev", "lo"])?;
    nft(WIRE)
}

/// From now on these addresses are silent.
pub(crate) fn silence(addresses: &[IpAddr]) -> anyhow::Result<()> {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    nft(&format!("add element inet wire silent {{ {} }}", addresses.join(", ")))
}

fn run(tool: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(tool).args(arguments).status().with_context(|| format!("failed to start {tool}"))?;
    ensure!(status.success(), "{tool} {arguments:?} failed");
    Ok(())
}

fn nft(commands: &str) -> anyhow::Result<()> {
    let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().context("failed to start nft")?;
    nft.stdin.take().context("nft does not listen")?.write_all(commands.as_bytes())?;
    ensure!(nft.wait()?.success(), "nft failed: {commands}");
    Ok(())
}
