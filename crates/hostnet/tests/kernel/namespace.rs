//! A network namespace for one test.

use std::fs::File;
use std::future::Future;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use egret_netlab::{Need, difference, until};
use nix::sched::{CloneFlags, setns};

/// Runs the body of a test in namespaces of its own, beside a link `eth1` whose other end `peer` is in the namespace
/// `outside`.
pub(crate) fn alone<F: Future<Output = ()>>(name: &str, body: impl FnOnce() -> F) {
    alone_with(name, &[], body);
}

/// The same, on machines that have what it needs.
pub(crate) fn alone_with<F: Future<Output = ()>>(name: &str, needs: &[Need], body: impl FnOnce() -> F) {
    egret_netlab::alone(name, needs, || {
        prepare();
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(body());
        Ok(())
    });
}

fn prepare() {
    run("ip netns add outside");
    run("ip link add eth1 type veth peer name peer netns outside");
    // A link-local address that the kernel makes would come in the middle of a test.
    run("ip link set eth1 addrgenmode none");
    run("ip addr add 192.168.60.11/24 dev eth1");
    run("ip addr add fd00:60::11/64 dev eth1 nodad");
    run("ip link set eth1 up");
    run("ip -n outside addr add 192.168.60.200/24 dev peer");
    run("ip -n outside addr add fd00:60::200/64 dev peer nodad");
    run("ip -n outside link set peer up");
    // The kernel takes up to a second until it lets multicast in by a link that came up.
    let routes = |place: &str| run(&format!("ip {place} -6 route show table all"));
    let multicast = || ["", "-n outside"].iter().all(|it| routes(it).contains("ff00::/8"));
    assert!(until(Duration::from_secs(5), multicast), "no multicast by eth1");
}

/// Does something in another namespace; what is opened there stays there.
pub(crate) fn inside<T: Send>(name: &str, act: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(format!("/run/netns/{name}")).unwrap();
    let enter = || {
        setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

/// A command that must succeed, of words without spaces; returns what it says.
pub(crate) fn run(command: &str) -> String {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn nft(commands: &str) {
    let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success(), "nft: {commands}");
}

/// Everything that anybody can change here, but what changes by itself.
pub(crate) fn dump() -> String {
    let commands = [
        "ip -details address",
        "ip rule",
        "ip -6 rule",
        "ip route show table all",
        "ip -6 route show table all",
        "nft --stateless list ruleset",
        "sysctl -a -r net.ipv[46].conf",
    ];
    let each = commands.map(|command| {
        // Time left of lifetimes goes by.
        let told = run(command);
        let lines: Vec<&str> = told.lines().filter(|line| !line.contains("sec")).collect();
        format!("# {command}\n{}\n", lines.join("\n"))
    });
    each.concat()
}

/// Fails if two dumps differ, and says where.
pub(crate) fn same(before: &str, after: &str) {
    assert_eq!(difference(before, after), "");
}
