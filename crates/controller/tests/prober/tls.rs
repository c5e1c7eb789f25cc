//! Certificates: good, bad, replaced.

use std::sync::Arc;
use std::time::Duration;

use egret_brain::Answer::{Alive, Late, Silent};
use egret_controller::probe::{ProbeOptions, Prober, TlsError, TlsFiles};

use crate::certificates::{Authority, Files, NAME};
use crate::peer::{Peer, SERVING};
use crate::watcher::{Watcher, grpc, grpc_with};

alone! {
    async fn only_a_node_with_a_good_certificate_is_alive() {
        let (ours, other) = (Authority::new(), Authority::new());
        let files = Files::new(&ours);
        let _peers = [
            Peer::secure("127.1.0.1", &ours.issue(NAME).server()),
            Peer::secure("127.1.0.2", &other.issue(NAME).server()),
            Peer::secure("127.1.0.3", &ours.issue_expired(NAME).server()),
            Peer::secure("127.1.0.4", &ours.issue("somebody-else").server()),
            Peer::plain("127.1.0.5", SERVING),
        ];
        let nodes = [
            ("good", "127.1.0.1", Alive),
            ("other-authority", "127.1.0.2", Silent),
            ("expired", "127.1.0.3", Silent),
            ("wrong-name", "127.1.0.4", Silent),
            ("plaintext", "127.1.0.5", Silent),
        ];
        let mut watcher = Watcher::of(grpc_with(files.tls()), &nodes.map(|(node, address, _)| (node, address)));
        watcher.until_each(&nodes.map(|(node, ..)| node), 2).await;
        for (node, _, answer) in nodes {
            assert!(watcher.heard(node).iter().all(|heard| [answer, Late].contains(heard)), "{node}");
        }
    }

    async fn a_prober_in_plain_text_is_not_answered_by_a_secure_server() {
        let _peer = Peer::secure("127.1.0.1", &Authority::new().issue(NAME).server());
        let mut watcher = Watcher::of(grpc(), &[("n1", "127.1.0.1")]);
        assert_eq!([watcher.end("n1").await, watcher.end("n1").await], [Silent, Silent]);
    }

    async fn a_replaced_authority_is_noticed_without_restart() {
        let (old, new) = (Authority::new(), Authority::new());
        let files = Files::new(&old);
        let peers = [
            Peer::secure("127.1.0.1", &old.issue(NAME).server()),
            Peer::secure("127.1.0.2", &new.issue(NAME).server()),
        ];
        let mut watcher = Watcher::of(grpc_with(files.tls()), &[("old", "127.1.0.1"), ("new", "127.1.0.2")]);
        watcher.until_each(&["old", "new"], 2).await;
        assert_eq!((watcher.end("old").await, watcher.end("new").await), (Alive, Silent));
        files.write("ca.crt", &new.pem());
        watcher.until("new", Alive).await;
        // A session that stands has proved itself: a wrong file must not silence everybody at once.
        watcher.forget();
        watcher.until_each(&["old", "new"], 2).await;
        assert!(!watcher.heard("old").contains(&Silent));
        assert_eq!(peers[0].accepted(), 1);
        // But a new session is judged by the new file.
        drop(peers);
        let _peer = Peer::secure("127.1.0.1", &old.issue(NAME).server());
        watcher.until("old", Silent).await;
        watcher.forget();
        watcher.until_each(&["old"], 2).await;
        assert!(!watcher.heard("old").contains(&Alive));
    }

    async fn while_new_files_are_no_good_the_old_ones_are_used() {
        let authority = Authority::new();
        let files = Files::new(&authority);
        let _peers = ["127.1.0.1", "127.1.0.2"].map(|node| Peer::secure(node, &authority.issue(NAME).server()));
        let mut watcher = Watcher::of(grpc_with(files.tls()), &[("n1", "127.1.0.1")]);
        watcher.until("n1", Alive).await;
        files.write("ca.crt", "half of a certifi");
        // Later than the files are looked at again.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        watcher.target(&[("n2", "127.1.0.2")]);
        assert_eq!(watcher.end("n2").await, Alive);
    }

    async fn a_server_that_wants_a_certificate_gets_the_one_of_the_files_of_now() {
        let (authority, stranger) = (Authority::new(), Authority::new());
        let files = Files::new(&authority);
        files.write_client(&stranger.issue("prober"));
        let _peer = Peer::secure("127.1.0.1", &authority.issue(NAME).server_for(&authority));
        let mut without = Watcher::of(grpc_with(files.tls()), &[("n1", "127.1.0.1")]);
        assert_eq!(without.end("n1").await, Silent, "it has none to show");
        let mut with = Watcher::of(grpc_with(files.tls_with_client()), &[("n1", "127.1.0.1")]);
        assert_eq!(with.end("n1").await, Silent, "a stranger's");
        files.write_client(&authority.issue("prober"));
        with.until("n1", Alive).await;
        without.forget();
        assert_eq!(without.end("n1").await, Silent);
    }
}

fn fault(options: ProbeOptions) -> TlsError {
    let (sender, _) = tokio::sync::mpsc::unbounded_channel();
    Prober::new(options, sender, Arc::new(|_, _| {})).unwrap_err()
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_told_before_anything_starts() {
    let authority = Authority::new();
    let files = Files::new(&authority);
    files.write("empty", "");
    files.write_client(&authority.issue("prober"));
    files.write("other.key", &authority.issue("prober").key);
    let missing = TlsFiles { ca: files.path("missing"), ..files.tls() };
    assert!(matches!(fault(grpc_with(missing.clone())), TlsError::Read { path, .. } if path == missing.ca));
    let empty = TlsFiles { ca: files.path("empty"), ..files.tls() };
    assert!(matches!(fault(grpc_with(empty.clone())), TlsError::Pem { path, .. } if path == empty.ca));
    let mut swapped = files.tls_with_client();
    swapped.client.as_mut().unwrap().key = files.path("other.key");
    assert!(matches!(fault(grpc_with(swapped)), TlsError::Unusable(_)));
    let unnamed = TlsFiles { common_name: "not a name".to_owned(), ..files.tls() };
    assert!(matches!(fault(grpc_with(unnamed)), TlsError::Name { name, .. } if name == "not a name"));
    // What is not needed is not read.
    let (sender, _) = tokio::sync::mpsc::unbounded_channel();
    let tcp = ProbeOptions { port: Some(0), ..grpc_with(missing) };
    assert!(Prober::new(tcp, sender, Arc::new(|_, _| {})).is_ok());
}
