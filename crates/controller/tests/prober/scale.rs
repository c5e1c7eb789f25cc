//! Five hundred nodes: what probing them costs.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};

use egret_brain::Answer::Alive;

use crate::peer::{Peer, SERVING};
use crate::targets::sessions;
use crate::watcher::{Watcher, grpc};

/// Set in the process that has the servers.
const SERVERS: &str = "EGRET_PROBER_SERVERS";

const NODES: u32 = 500;

/// A number of `/proc/self/status`, in kB.
fn memory_kb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// CPU time of this process in milliseconds, user and system.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    // A tick is 10 ms on every Linux.
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
}

/// The servers are somebody else's cost.
fn start_servers() -> Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["scale::five_hundred_nodes_cost_little", "--exact", "--nocapture", "--test-threads=1"])
        .env(SERVERS, "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap().contains("listening")), "the servers have started");
    child
}

/// They end with the process that wanted them.
fn serve(addresses: &[IpAddr]) {
    let _peer = Peer::start(addresses, SERVING, None);
    println!("listening");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

alone! {
    async fn five_hundred_nodes_cost_little() {
        let addresses: Vec<IpAddr> = (0..NODES).map(|node| Ipv4Addr::from_bits(0x7f01_0101 + node).into()).collect();
        if env::var_os(SERVERS).is_some() {
            return serve(&addresses);
        }
        let mut servers = start_servers();
        let nodes: Vec<(String, String)> =
            addresses.iter().enumerate().map(|(node, address)| (format!("n{node}"), address.to_string())).collect();
        let nodes: Vec<(&str, &str)> = nodes.iter().map(|(name, address)| (name.as_str(), address.as_str())).collect();
        let names: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
        let memory = memory_kb("VmRSS");
        let mut watcher = Watcher::of(grpc(), &nodes);
        watcher.until_each(&names, 2).await;
        watcher.forget();
        let cpu = cpu_ms();
        for _ in 0..5000 {
            assert_eq!(watcher.next().await.1, Alive);
        }
        let (cpu, memory) = ((cpu_ms() - cpu) / 5, (memory_kb("VmRSS") - memory) / u64::from(NODES));
        eprintln!("{cpu} ms CPU per 1000 probes, {memory} kB per node");
        // Several times what is usual in an unoptimized build: a new connection for every probe would be more.
        assert!(cpu < 400, "{cpu} ms CPU per 1000 probes");
        assert!(memory < 64, "{memory} kB per node");
        assert_eq!(sessions(), usize::try_from(NODES).unwrap(), "every node has one session");
        servers.kill().unwrap();
        servers.wait().unwrap();
    }
}
