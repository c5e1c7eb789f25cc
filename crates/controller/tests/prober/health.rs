//! What health servers say, and what the prober makes of it.

use std::time::Duration;

use egret_brain::Answer::{self, Alive, Late, Silent};
use egret_controller::probe::ProbeOptions;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::namespace::{run, spoil};
use crate::peer::{Peer, Rude, SERVING, Says, rude};
use crate::watcher::{Watcher, grpc};

alone! {
    /// Defect D19: OVN-Kubernetes takes a handshake for an answer.
    async fn only_serving_is_alive_whatever_else_comes_over_the_session() {
        let peer = Peer::plain("127.1.0.1", SERVING);
        let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1")]);
        let said = [
            (SERVING, Alive),
            (Says::Status(ServingStatus::NotServing), Silent),
            (Says::Status(ServingStatus::Unknown), Silent),
            (SERVING, Alive),
            (Says::Status(ServingStatus::ServiceUnknown), Silent),
            (Says::Error(Code::NotFound), Silent),
            (Says::Error(Code::Unimplemented), Silent),
            (SERVING, Alive),
        ];
        for (says, answer) in said {
            peer.says(says);
            watcher.until("n1", answer).await;
        }
        assert_eq!(peer.accepted(), 1, "a no is an answer, over a session that is kept");
    }

    async fn one_failed_call_is_made_again_over_a_new_session_within_the_same_probe() {
        let peer = Peer::plain("127.1.0.1", SERVING);
        let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1")]);
        watcher.until("n1", Alive).await;
        for sessions in 2..5 {
            let checks = peer.checks();
            peer.says(Says::ErrorOnce(Code::Unavailable));
            watcher.until("n1", Alive).await;
            watcher.until("n1", Alive).await;
            assert_eq!(peer.accepted(), sessions);
            assert!(peer.checks() >= checks + 2);
        }
        assert!(!watcher.heard("n1").contains(&Silent));
    }

    async fn calls_that_always_fail_are_silence_and_never_life() {
        let peer = Peer::plain("127.1.0.1", Says::Error(Code::Unavailable));
        let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1")]);
        watcher.until_each(&["n1"], 3).await;
        assert!(!watcher.heard("n1").contains(&Alive), "{:?}", watcher.heard("n1"));
        assert!(peer.accepted() >= 6, "each probe has tried twice");
        peer.says(SERVING);
        watcher.until("n1", Alive).await;
    }

    async fn a_server_that_hangs_is_late_once_then_silent_every_time() {
        let peer = Peer::plain("127.1.0.1", SERVING);
        let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1")]);
        watcher.until("n1", Alive).await;
        peer.says(Says::Nothing);
        watcher.until("n1", Late).await;
        watcher.forget();
        watcher.until_each(&["n1"], 3).await;
        assert_eq!(watcher.heard("n1"), [Silent, Late, Silent, Late, Silent]);
        let observed = watcher.observed.lock().unwrap().clone();
        let (time, answer) = observed[observed.len() - 1];
        assert!(answer == Silent && time.as_millis() >= 1000, "it had its whole time: {time:?}");
    }

    /// The session is not relied upon after half of the time, but a new one would be too late here.
    async fn an_answer_that_takes_more_than_half_of_the_time_is_an_answer() {
        let peer = Peer::plain("127.1.0.1", SERVING);
        let patient = ProbeOptions { total_timeout: Duration::from_secs(4), ..grpc() };
        let mut watcher = Watcher::of(patient, &[("n1", "127.1.0.1")]);
        watcher.until("n1", Alive).await;
        peer.says(Says::After(Duration::from_secs(3)));
        watcher.until("n1", Late).await;
        assert_eq!(watcher.next().await.1, Alive);
    }

    async fn peers_that_speak_no_http2_are_silent() {
        rude("127.1.0.1", Rude::Hangs);
        rude("127.1.0.2", Rude::Resets);
        rude("127.1.0.3", Rude::Babbles);
        let mut watcher = Watcher::of(grpc(), &[("hangs", "127.1.0.1"), ("resets", "127.1.0.2"), ("babbles", "127.1.0.3")]);
        watcher.until_each(&["hangs", "resets", "babbles"], 2).await;
        for node in ["hangs", "resets", "babbles"] {
            assert!(watcher.heard(node).iter().all(|answer| matches!(answer, Late | Silent)), "{node}");
        }
        assert_eq!(watcher.heard("hangs")[..4], [Late, Silent, Late, Silent]);
    }

    /// Also when a firewall refuses: with a reset, or with ICMP port-unreachable.
    async fn who_refuses_is_silent_at_once_and_asked_again_after_the_interval() {
        spoil("127.1.0.2", "meta l4proto tcp reject with tcp reset");
        spoil("127.1.0.3", "reject with icmp type port-unreachable");
        let nodes = [("closed", "127.1.0.1"), ("reset", "127.1.0.2"), ("port", "127.1.0.3")];
        let patient = ProbeOptions { total_timeout: Duration::from_secs(10), ..grpc() };
        let mut watcher = Watcher::of(patient, &nodes);
        let peer = Peer::plain("127.1.0.4", SERVING);
        watcher.until_each(&["closed", "reset", "port"], 4).await;
        for (node, _) in nodes {
            assert_eq!(watcher.heard(node)[..4], [Silent; 4], "never late");
        }
        // As often as one that answers: a fast no is not a reason to ask faster.
        watcher.target(&[("closed", "127.1.0.1"), ("answers", "127.1.0.4")]);
        watcher.forget();
        watcher.until_each(&["answers"], 6).await;
        assert!(watcher.ends("closed").abs_diff(6) <= 2, "{} to 6", watcher.ends("closed"));
        assert!(peer.checks() >= 6);
    }

    async fn what_does_not_arrive_or_has_no_host_is_silent() {
        spoil("127.1.0.1", "drop");
        spoil("127.1.0.2", "reject with icmp type host-unreachable");
        // Nobody has the address: the kernel itself gives up, sooner than usual.
        run("ip", &["link", "add", "wire0", "type", "veth", "peer", "name", "wire1"]);
        run("ip", &["address", "add", "10.9.0.1/24", "dev", "wire0"]);
        run("ip", &["link", "set", "wire1", "up"]);
        run("ip", &["link", "set", "wire0", "up"]);
        run("sysctl", &["-qw", "net.ipv4.neigh.wire0.retrans_time_ms=50"]);
        let nodes = [("dropped", "127.1.0.1"), ("host", "127.1.0.2"), ("nobody", "10.9.0.7")];
        let mut watcher = Watcher::of(grpc(), &nodes);
        watcher.until_each(&["dropped", "host", "nobody"], 2).await;
        for (node, _) in nodes {
            assert!(watcher.heard(node).iter().all(|answer| matches!(answer, Late | Silent)), "{node}");
        }
        assert_eq!(watcher.heard("dropped")[..4], [Late, Silent, Late, Silent]);
    }

    async fn a_node_without_addresses_is_silent() {
        let options = [grpc(), ProbeOptions::default()];
        for options in options {
            let mut watcher = Watcher::of(options, &[("n1", "")]);
            watcher.until_each(&["n1"], 2).await;
            assert_eq!(watcher.heard("n1"), [Silent, Silent]);
        }
    }

    /// Nobody listens: it would be silent otherwise.
    async fn with_a_time_out_of_zero_every_target_is_alive_at_once() {
        let off = ProbeOptions { total_timeout: Duration::ZERO, ..grpc() };
        let mut watcher = Watcher::of(off, &[("n1", "127.1.0.1"), ("n2", "")]);
        let answers: [(String, Answer); 2] = [watcher.next().await, watcher.next().await];
        assert_eq!(answers, [("n1".to_owned(), Alive), ("n2".to_owned(), Alive)]);
        watcher.target(&[("n2", ""), ("n3", "127.1.0.3")]);
        assert_eq!(watcher.next().await, ("n3".to_owned(), Alive));
    }
}
