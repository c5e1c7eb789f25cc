//! A network namespace for one test.

use std::collections::BTreeSet;
use std::env;
use std::fs::File;
use std::future::Future;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};

/// Set in the process that is inside; holds the name of the test.
const INSIDE: &str = "EGRET_HOSTNET_NAMESPACE";

/// Starts the test binary again, in new namespaces and for this test only: a thread cannot enter a namespace without
/// unsafe code. `body` runs there, beside a link `eth1` whose other end `peer` is in the namespace `outside`.
pub(crate) fn alone<F: Future<Output = ()>>(path: &str, body: impl FnOnce() -> F) {
    if env::var_os(INSIDE).is_some() {
        prepare();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limited = async { tokio::time::timeout(Duration::from_mins(2), body()).await };
        return runtime.block_on(limited).expect("the test ends within two minutes");
    }
    let name = path.split_once("::").map_or(path, |(_, name)| name).trim_end_matches("::here");
    let output = Command::new("unshare")
        .args(["--net", "--mount", "--fork", "--kill-child"])
        .arg(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .output()
        .unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains("1 passed"), "{name} failed in its namespace:\n{out}\n{err}");
    eprint!("{err}");
}

/// The name of the test function that this is written in.
macro_rules! here {
    () => {{
        fn here() {}
        std::any::type_name_of_val(&here)
    }};
}
pub(crate) use here;

fn prepare() {
    run("mount -t tmpfs tmpfs /run");
    run("mkdir /run/netns");
    run("ip link set lo up");
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
    for _ in 0..500 {
        if ["", "-n outside"].iter().all(|it| run(&format!("ip {it} -6 route show table all")).contains("ff00::/8")) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("no multicast by eth1");
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
    let mut dump = String::new();
    for command in [
        "ip -details address",
        "ip rule",
        "ip -6 rule",
        "ip route show table all",
        "ip -6 route show table all",
        "nft --stateless list ruleset",
        "sysctl -a -r net.ipv[46].conf",
    ] {
        // Time left of lifetimes goes by.
        let lines = run(command);
        let lines: Vec<&str> = lines.lines().filter(|line| !line.contains("sec")).collect();
        dump += &format!("# {command}\n{}\n", lines.join("\n"));
    }
    dump
}

/// Fails if two dumps differ, and says where.
pub(crate) fn same(before: &str, after: &str) {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (before, after) = (lines(before), lines(after));
    let gone: Vec<_> = before.difference(&after).collect();
    let come: Vec<_> = after.difference(&before).collect();
    assert!(gone.is_empty() && come.is_empty(), "gone: {gone:#?}\ncome: {come:#?}");
}
