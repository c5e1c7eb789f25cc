//! Where it listens, and where it does not.

use std::time::Duration;

use egret_brain::Answer::{Alive, Silent};
use tokio::net::TcpListener;

use crate::node::{Asking, Node, PORT, ip};

alone! {
    async fn an_address_that_the_node_gets_later_is_listened_on_then() {
        let node = Node::new("127.1.0.1 10.130.0.2", |_| {});
        node.until("egret_agent_health_failures_total{reason=\"no-address\"}", |count| count > 1).await;
        assert_eq!(node.metric("egret_agent_health_listeners"), Some(1), "the other one is not waited for");
        ip("link add management0 type veth peer name other0");
        ip("link set other0 up");
        ip("link set management0 up");
        ip("address add 10.130.0.2/24 dev management0");
        Asking::at("10.130.0.2", None).until(Alive).await;
        assert_eq!(node.metric("egret_agent_health_listeners"), Some(2));
    }

    async fn it_follows_what_the_object_of_the_node_says() {
        let node = Node::new("", |_| {});
        let mut asking = Asking::at("127.1.0.1", None);
        assert_eq!(asking.next(2).await, [Silent; 2]);
        node.is_at("127.1.0.1");
        asking.until(Alive).await;
        node.is_at("127.1.0.2");
        asking.until(Silent).await;
        asking.move_to("127.1.0.2");
        asking.until(Alive).await;
        // A node that says nothing has not lost its address.
        node.is_at("");
        assert_eq!(asking.next(4).await, [Alive; 4]);
    }

    async fn addresses_that_are_told_take_the_place_of_the_nodes_own() {
        let node = Node::new("127.1.0.1", |options| options.addresses = vec!["127.1.0.9".parse().unwrap()]);
        Asking::at("127.1.0.9", None).until(Alive).await;
        assert_eq!(Asking::at("127.1.0.1", None).next(2).await, [Silent; 2]);
        node.is_at("127.1.0.3");
        assert_eq!(Asking::at("127.1.0.9", None).next(2).await, [Alive; 2]);
    }

    /// ovnkube-node ends when it finds its port taken, so the short while of its restart is not used.
    async fn whoever_has_the_port_keeps_it_also_through_a_restart() {
        let theirs = TcpListener::bind(("127.1.0.1", PORT)).await.unwrap();
        let node = Node::new("127.1.0.1 127.1.0.2", |options| options.stand_back = Duration::from_secs(2));
        let in_use = "egret_agent_health_failures_total{reason=\"in-use\"}";
        node.until(in_use, |count| count == 1).await;
        Asking::at("127.1.0.2", None).until(Alive).await;
        drop(theirs);
        let theirs = TcpListener::bind(("127.1.0.1", PORT)).await.expect("nobody was faster");
        assert_eq!(Asking::at("127.1.0.2", None).next(8).await, [Alive; 8]);
        assert_eq!(node.metric("egret_agent_health_listeners"), Some(1));
        drop(theirs);
        Asking::at("127.1.0.1", None).until(Alive).await;
        assert_eq!(node.metric(in_use), Some(1));
    }
}
