//! What is answered.

use egret_brain::Answer::{Alive, Silent};
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::node::{Asking, Node, PORT};

alone! {
    async fn the_prober_finds_the_node_alive_at_each_of_its_addresses() {
        let node = Node::new("127.1.0.1 ::1", |_| {});
        for address in ["127.1.0.1", "::1"] {
            let mut asking = Asking::at(address, None);
            asking.until(Alive).await;
            assert_eq!(asking.next(3).await, [Alive; 3], "at {address}");
        }
        assert_eq!(node.metric("egret_agent_health_listeners"), Some(2));
        assert!(node.metric("egret_agent_health_checks_total{result=\"serving\"}") >= Some(8));
        node.end().await;
        let mut asking = Asking::at("127.1.0.1", None);
        assert_eq!(asking.next(2).await, [Silent; 2], "with the agent its health service ends");
    }

    /// As ovnkube-node answers, also for the empty name.
    async fn a_grpc_client_is_told_of_one_service_and_of_no_other() {
        let node = Node::new("127.1.0.1", |_| {});
        node.until("egret_agent_health_listeners", |count| count == 1).await;
        let channel = Endpoint::from_shared(format!("http://127.1.0.1:{PORT}")).unwrap().connect().await.unwrap();
        let mut client = HealthClient::new(channel);
        for (service, status) in [
            ("Service_Egress_IP", ServingStatus::Serving),
            ("", ServingStatus::NotServing),
            ("Service_Egress_I", ServingStatus::NotServing),
            ("other", ServingStatus::NotServing),
        ] {
            let answer = client.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap();
            assert_eq!(answer.into_inner().status(), status, "{service:?}");
        }
        let long = HealthCheckRequest { service: "x".repeat(2000) };
        assert_eq!(client.check(long).await.unwrap_err().code(), Code::InvalidArgument);
        let watch = client.watch(HealthCheckRequest::default()).await;
        assert_eq!(watch.unwrap_err().code(), Code::Unimplemented);
    }

    async fn a_node_that_is_drained_says_so_until_it_is_not() {
        let node = Node::new("127.1.0.1", |_| {});
        let mut asking = Asking::at("127.1.0.1", None);
        asking.until(Alive).await;
        let drain = node.folder.path().join("drain");
        std::fs::write(&drain, "").unwrap();
        asking.until(Silent).await;
        assert_eq!(asking.next(2).await, [Silent; 2]);
        assert_eq!(node.metric("egret_agent_draining"), Some(1));
        std::fs::remove_file(drain).unwrap();
        asking.until(Alive).await;
        assert_eq!(node.metric("egret_agent_draining"), Some(0));
    }
}
