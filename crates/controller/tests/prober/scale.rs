//! Five hundred nodes: what probing them costs.

use std::net::{IpAddr, Ipv4Addr};

use egret_brain::Answer::Alive;

use crate::peer::{Peer, SERVING};
use crate::watcher::{Watcher, grpc};

/// CPU time of this process's threads of the name, in milliseconds: user and system.
fn cpu_ms(name: &str) -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let ticks = threads.filter_map(|thread| {
        // A thread that has just ended has no file any more.
        let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).ok()?;
        let (before, after) = stat.rsplit_once(") ").unwrap();
        let fields: Vec<&str> = after.split(' ').collect();
        before.ends_with(name).then(|| fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap())
    });
    // A tick is 10 ms on every Linux.
    ticks.sum::<u64>() * 10
}

alone! {
    async fn five_hundred_nodes_cost_little() {
        let addresses: Vec<IpAddr> = (0..500).map(|node| Ipv4Addr::from_bits(0x7f00_0101 + node).into()).collect();
        let peer = Peer::start(&addresses, SERVING, None);
        let nodes: Vec<(String, String)> =
            addresses.iter().enumerate().map(|(node, address)| (format!("n{node}"), address.to_string())).collect();
        let nodes: Vec<(&str, &str)> = nodes.iter().map(|(name, address)| (name.as_str(), address.as_str())).collect();
        let mut watcher = Watcher::of(grpc(), &nodes);
        let names: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
        watcher.until_each(&names, 1).await;
        watcher.forget();
        let (before, checks) = (cpu_ms("tokio-rt-worker"), peer.checks());
        while peer.checks() < checks + 5000 {
            watcher.next().await;
        }
        let per_thousand = (cpu_ms("tokio-rt-worker") - before) / 5;
        eprintln!("{per_thousand} ms CPU per 1000 probes");
        // An eighth of a core at 1,250 probes a second, in an unoptimized build: a tenth of that is usual.
        assert!(per_thousand < 100, "{per_thousand} ms CPU per 1000 probes");
        assert_eq!(peer.accepted(), 500, "every node has one session");
        assert!(names.iter().all(|name| watcher.heard(name).iter().all(|answer| *answer == Alive)));
    }
}
