//! TCP port 9.

use egret_brain::Answer::{Alive, Late, Silent};
use egret_controller::probe::ProbeOptions;

use crate::namespace::{run, spoil};
use crate::peer::listen;
use crate::watcher::Watcher;

alone! {
    /// Reset and port-unreachable also come from firewalls in front of a node (user report 33, a filtered probe port): alive, as
    /// in OVN-Kubernetes. Defect D18: there a missing route and other faults of the prober's own side are alive too.
    async fn only_who_takes_or_turns_down_the_connection_is_alive() {
        let _listener = listen("127.1.0.1".parse().unwrap(), 9);
        let nodes = [
            ("takes", "127.1.0.1", "", Alive),
            ("refuses", "127.1.0.2", "", Alive),
            ("resets", "127.1.0.3", "meta l4proto tcp reject with tcp reset", Alive),
            ("port-unreachable", "127.1.0.4", "reject with icmp type port-unreachable", Alive),
            ("drops", "127.1.0.5", "drop", Silent),
            ("host-unreachable", "127.1.0.6", "reject with icmp type host-unreachable", Silent),
            ("prohibited", "127.1.0.7", "reject with icmp type admin-prohibited", Silent),
            ("net-unreachable", "127.1.0.8", "reject with icmp type net-unreachable", Silent),
            ("no-route", "192.0.2.1", "", Silent),
        ];
        nodes.iter().filter(|(.., verdict, _)| !verdict.is_empty()).for_each(|(_, address, verdict, _)| spoil(address, verdict));
        let mut watcher = Watcher::of(ProbeOptions::default(), &nodes.map(|(node, address, ..)| (node, address)));
        watcher.until_each(&nodes.map(|(node, ..)| node), 2).await;
        for (node, _, _, answer) in nodes {
            assert_eq!((node, watcher.end(node).await), (node, answer));
        }
    }

    async fn an_ipv6_node_is_probed_too() {
        run("ip", &["address", "add", "fd00::1/128", "dev", "lo", "nodad"]);
        run("ip", &["address", "add", "fd00::2/128", "dev", "lo", "nodad"]);
        spoil("fd00::2", "drop");
        let port_zero = ProbeOptions { port: Some(0), ..ProbeOptions::default() };
        let mut watcher = Watcher::of(port_zero, &[("refuses", "fd00::1"), ("drops", "fd00::2")]);
        assert_eq!(watcher.end("refuses").await, Alive);
        assert_eq!(watcher.end("drops").await, Silent);
    }

    /// A lost SYN is sent again by the kernel after a second, which is the whole time of the probe.
    async fn one_lost_packet_is_not_silence() {
        // The first is within the limit and lost, all later ones arrive.
        spoil("127.1.0.1", "tcp flags & (syn | ack) == syn limit rate 1/hour burst 1 packets drop");
        let mut watcher = Watcher::of(ProbeOptions::default(), &[("n1", "127.1.0.1")]);
        watcher.until_each(&["n1"], 2).await;
        assert_eq!(watcher.heard("n1"), [Late, Alive, Alive]);
    }
}
