//! Who is probed.

use egret_brain::Answer::Alive;
use egret_controller::probe::{ProbeOptions, Probes};

use crate::namespace::run;
use crate::peer::{Peer, SERVING, eventually};
use crate::watcher::{NEVER, PORT, Watcher, grpc};

/// How many connections to the health servers stand.
pub(crate) fn sessions() -> usize {
    // State 01 is established; the third field is the remote address.
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{PORT:04X}");
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(|fields| fields[2].ends_with(&port) && fields[3] == "01").count()
}

/// Without waiting for anybody's interval.
fn rarely() -> ProbeOptions {
    ProbeOptions { interval: NEVER, ..grpc() }
}

alone! {
    async fn a_new_target_is_probed_at_once_and_the_others_are_left_alone() {
        let peers = ["127.1.0.1", "127.1.0.2"].map(|address| Peer::plain(address, SERVING));
        let mut watcher = Watcher::of(rarely(), &[("n1", "127.1.0.1")]);
        assert_eq!(watcher.next().await, ("n1".to_owned(), Alive));
        watcher.target(&[("n1", "127.1.0.1"), ("n2", "127.1.0.2")]);
        assert_eq!(watcher.next().await, ("n2".to_owned(), Alive));
        assert_eq!(peers.each_ref().map(Peer::checks), [1, 1]);
    }

    async fn a_node_that_is_no_target_any_more_is_disconnected_and_not_spoken_of() {
        let peers = ["127.1.0.1", "127.1.0.2"].map(|address| Peer::plain(address, SERVING));
        let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1"), ("n2", "127.1.0.2")]);
        watcher.until_each(&["n1", "n2"], 1).await;
        assert_eq!(sessions(), 2);
        watcher.target(&[("n2", "127.1.0.2")]);
        eventually("n1 is disconnected", || sessions() == 1).await;
        watcher.forget();
        let checks = peers[0].checks();
        watcher.until_each(&["n2"], 4).await;
        assert!(watcher.heard("n1").is_empty());
        assert_eq!(peers[0].checks(), checks);
        watcher.target(&[("n1", "127.1.0.1"), ("n2", "127.1.0.2")]);
        watcher.until("n1", Alive).await;
        assert_eq!(peers.each_ref().map(Peer::accepted), [2, 1], "n1 was connected to again, n2 never left");
    }

    async fn a_node_with_other_addresses_is_connected_to_there_at_once() {
        let peers = ["127.1.0.1", "127.1.0.2"].map(|address| Peer::plain(address, SERVING));
        let mut watcher = Watcher::of(rarely(), &[("n1", "127.1.0.1")]);
        watcher.until("n1", Alive).await;
        watcher.target(&[("n1", "127.1.0.2")]);
        watcher.until("n1", Alive).await;
        assert_eq!(peers.each_ref().map(Peer::accepted), [1, 1]);
        eventually("the session to the old address is closed", || sessions() == 1).await;
    }

    async fn a_stopped_or_dropped_prober_disconnects() {
        let _peer = Peer::plain("127.1.0.1", SERVING);
        for stop in [true, false] {
            let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1")]);
            watcher.until("n1", Alive).await;
            assert_eq!(sessions(), 1);
            if stop {
                watcher.prober.stop();
                eventually("stopped", || sessions() == 0).await;
            } else {
                drop(watcher);
                eventually("dropped", || sessions() == 0).await;
            }
        }
    }

    async fn the_time_of_every_probe_is_measured() {
        run("ip", &["address", "add", "fd00::1/128", "dev", "lo", "nodad"]);
        let _peer = Peer::start(&["fd00::1".parse().unwrap()], SERVING, None);
        let mut watcher = Watcher::of(grpc(), &[("n1", "fd00::1"), ("n2", "fd00::2")]);
        watcher.until_each(&["n1", "n2"], 2).await;
        let observed = watcher.observed.lock().unwrap().clone();
        assert!(observed.len() >= 4);
        assert!(observed.iter().any(|(time, answer)| *answer == Alive && !time.is_zero()));
        assert!(observed.iter().all(|(_, answer)| *answer != egret_brain::Answer::Late));
    }
}
