//! Wires that are cut and repaired, and what that means for the node behind and for the others.

use std::time::Duration;

use egret_brain::Answer::{Alive, Late, Silent};
use egret_controller::probe::ProbeOptions;

use crate::namespace::{cut, repair, run, spoil};
use crate::peer::{Peer, SERVING};
use crate::watcher::{Watcher, grpc};

/// Both kinds of probe.
fn both() -> [ProbeOptions; 2] {
    [grpc(), ProbeOptions::default()]
}

alone! {
    /// CASE-08: path broken, controller restarted, path repaired: the node never became usable again.
    async fn case_08_a_node_is_alive_within_one_period_after_its_path_is_repaired() {
        let _peer = Peer::plain("127.1.0.1", SERVING);
        for options in both() {
            let mut before = Watcher::of(options.clone(), &[("n1", "127.1.0.1")]);
            before.until("n1", Alive).await;
            cut("127.1.0.1");
            before.until("n1", Silent).await;
            drop(before);
            let mut after = Watcher::of(options, &[("n1", "127.1.0.1")]);
            after.until_each(&["n1"], 2).await;
            assert_eq!(after.heard("n1"), [Late, Silent, Late, Silent]);
            repair();
            after.forget();
            after.until("n1", Alive).await;
            assert!(after.ends("n1") <= 2, "at most the probe that was under way has failed: {:?}", after.heard("n1"));
        }
    }

    /// The session is not broken, only the wire: nothing tells the prober.
    async fn a_session_whose_wire_is_cut_is_noticed_and_replaced() {
        let peer = Peer::plain("127.1.0.1", SERVING);
        let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1")]);
        watcher.until_each(&["n1"], 3).await;
        assert_eq!(peer.accepted(), 1);
        cut("127.1.0.1");
        watcher.until("n1", Late).await;
        assert_eq!(watcher.next().await.1, Silent);
        repair();
        watcher.until("n1", Alive).await;
        watcher.until_each(&["n1"], 8).await;
        assert_eq!(peer.accepted(), 2, "one session, kept again");
    }

    /// Long enough for the kernel, and for the prober, to try again.
    async fn an_interruption_shorter_than_the_time_out_is_not_silence() {
        let _peer = Peer::plain("127.1.0.1", SERVING);
        let patient = ProbeOptions { total_timeout: Duration::from_secs(4), ..grpc() };
        let mut watcher = Watcher::of(patient, &[("n1", "127.1.0.1")]);
        watcher.until("n1", Alive).await;
        cut("127.1.0.1");
        watcher.until("n1", Late).await;
        repair();
        assert_eq!(watcher.end("n1").await, Alive);
    }

    /// Its session is broken, and the probe that notices it makes a new one.
    async fn an_agent_that_is_restarted_between_probes_is_never_silent() {
        let mut peer = Peer::plain("127.1.0.1", SERVING);
        let slow = ProbeOptions { interval: Duration::from_secs(2), ..grpc() };
        let mut watcher = Watcher::of(slow, &[("n1", "127.1.0.1")]);
        for _ in 0..2 {
            watcher.until_each(&["n1"], 1).await;
            drop(peer);
            peer = Peer::plain("127.1.0.1", SERVING);
            watcher.forget();
        }
        watcher.until_each(&["n1"], 1).await;
        assert_eq!(watcher.heard("n1"), [Alive]);
        assert_eq!(peer.accepted(), 1);
    }

    /// Defect D19: both addresses shared one dial, and the first took all of its time.
    async fn a_dual_stack_node_whose_first_address_is_black_holed_is_alive() {
        run("ip", &["address", "add", "fd00::1/128", "dev", "lo", "nodad"]);
        let addresses = ["127.1.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        let _peer = Peer::start(&addresses, SERVING, None);
        for options in both() {
            for (node, order) in [("v4-first", "127.1.0.1 fd00::1"), ("v6-first", "fd00::1 127.1.0.1")] {
                repair();
                let hole = order.split(' ').next().unwrap();
                spoil(hole, "drop");
                let mut watcher = Watcher::of(options.clone(), &[(node, order)]);
                watcher.until_each(&[node], 3).await;
                assert!(!watcher.heard(node).contains(&Silent), "{:?}", watcher.heard(node));
                // And the other way round: nothing is taken for granted of the address that answered.
                repair();
                spoil(order.split(' ').next_back().unwrap(), "drop");
                watcher.forget();
                watcher.until_each(&[node], 3).await;
                assert!(!watcher.heard(node).contains(&Silent), "{:?}", watcher.heard(node));
            }
        }
    }

    /// Defect D1: probes one after another, so that each dead node delays all others by its time-out.
    async fn thirty_dead_nodes_delay_neither_the_others_nor_the_detection_of_one_more() {
        let names: Vec<(String, String)> =
            (1..=40).map(|node| (format!("n{node:02}"), format!("127.1.1.{node}"))).collect();
        let nodes: Vec<(&str, &str)> = names.iter().map(|(name, address)| (name.as_str(), address.as_str())).collect();
        let (dead, living) = nodes.split_at(30);
        let addresses: Vec<_> = living.iter().map(|(_, address)| address.parse().unwrap()).collect();
        let _peer = Peer::start(&addresses, SERVING, None);
        for (_, address) in dead {
            cut(address);
        }
        let mut watcher = Watcher::of(grpc(), &nodes);
        // A dead one has a period of 1.4 s, a living one of 0.4 s.
        let dead: Vec<&str> = dead.iter().map(|(name, _)| *name).collect();
        watcher.until_each(&dead, 3).await;
        for (name, _) in living {
            assert!(watcher.ends(name) >= 6, "{name} was probed {} times only", watcher.ends(name));
            assert!(!watcher.heard(name).contains(&Silent), "{name}");
        }
        let (one_more, address) = living[4];
        cut(address);
        watcher.forget();
        watcher.until(one_more, Silent).await;
        // In the time of two probes of a dead node and no more, however many dead ones there are.
        let most = dead.iter().map(|name| watcher.ends(name)).max().unwrap();
        assert!(most <= 2, "{most} probes of a dead node have ended meanwhile");
    }
}
