//! The cluster of the tests: what is real in it works together.

// Helpers of tests are no production code, and one measures.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::net::IpAddr;
use std::time::{Duration, Instant};

use egret_netlab::{Family, Network, PORT, test_name, until};
use egret_testkit::cluster::{Cluster, alone};
use egret_testkit::patience::eventually;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// Longer than kube-proxy takes on a busy machine.
const SOON: Duration = Duration::from_secs(30);

fn service(policy: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": "web"},
            "ipFamilyPolicy": "RequireDualStack",
            "externalTrafficPolicy": policy,
            "ports": [{"port": 80, "targetPort": PORT, "protocol": "TCP"}],
        },
    })
}

async fn ready(cluster: &Cluster, node: &str) -> bool {
    let node = Api::<Node>::all(cluster.client()).get(node).await.unwrap();
    let conditions = node.status.unwrap().conditions.unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[test]
fn services_pods_and_nodes_of_a_whole_cluster_work() {
    alone(test_name!(), &[], async || {
        let start = Instant::now();
        let cluster = Cluster::builder().nodes(2).blue(&[1, 2]).start().await?;
        println!("the cluster took {:?}", start.elapsed());
        let services: Api<Service> = Api::default_namespaced(cluster.client());
        let service = services.create(&PostParams::default(), &serde_json::from_value(service("Local"))?).await?;
        let start = Instant::now();
        let client = cluster.add_pod("n1", "client", &[]).await?;
        let web = cluster.add_pod("n2", "web", &[("app", "web")]).await?;
        println!("two pods took {:?}", start.elapsed());
        let external: Vec<IpAddr> = vec!["192.168.70.10".parse()?, "fd00:70::10".parse()?];
        cluster.balance("default", "web", &external, "n2").await?;
        let inside: Vec<IpAddr> =
            service.spec.unwrap().cluster_ips.unwrap().iter().map(|address| address.parse().unwrap()).collect();
        let ext = cluster.lab().outside(Network::Red);
        let (n1, n2) = (cluster.lab().node("n1"), cluster.lab().node("n2"));
        let start = Instant::now();
        for family in Family::BOTH {
            let of = |all: &[IpAddr]| *all.iter().find(|address| Family::of(**address) == family).unwrap();
            assert!(
                until(SOON, || client.tcp(of(&inside), 80).server() == Some("web")),
                "{}",
                cluster.proxy_said("n1")
            );
            // The service is there from outside, and keeps the source.
            let seen = format!("web saw {}", ext.address(family));
            assert!(until(SOON, || ext.tcp(of(&external), 80) == seen), "{}", cluster.proxy_said("n2"));
            // The plugin lets nobody out of its subnet with the pod's own address.
            assert_eq!(client.tcp(family.destination(), PORT), format!("ext saw {}", n1.address(family)));
            assert_eq!(web.udp(family.destination(), PORT), format!("ext saw {}", n2.address(family)));
            assert_eq!(client.icmp(web.address(family)).server(), Some("web"));
        }
        println!("the service worked after {:?}", start.elapsed());
        cluster.delete_pod("default", "web").await?;
        assert!(until(SOON, || !client.tcp(inside[0], 80).is_answer()));
        cluster.cut("n2")?;
        let start = Instant::now();
        eventually("n2 to be NotReady", async || (!ready(&cluster, "n2").await).then_some(())).await;
        println!("n2 was not Ready after {:?}", start.elapsed());
        assert!(ready(&cluster, "n1").await);
        cluster.revive("n2").await?;
        assert!(ready(&cluster, "n2").await);
        Ok(())
    });
}

#[test]
fn an_administrator_and_a_program_without_rights_reach_the_api_server_from_a_node() {
    alone(test_name!(), &[], async || {
        let cluster = Cluster::builder().ovn().start().await?;
        let pod = cluster.add_pod("n1", "web", &[]).await?;
        assert!(pod.tcp(Family::V4.destination(), PORT).is_answer());
        for (user, allowed) in [(None, true), (Some("system:serviceaccount:default:nobody"), false)] {
            let kubeconfig = cluster.kubeconfig(user)?;
            // On a thread that is on the node, with a runtime whose sockets are opened there.
            let listed = cluster.lab().node("n1").inside(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
                    let config =
                        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
                    let client = kube::Client::try_from(config).unwrap();
                    Api::<Node>::all(client).list(&ListParams::default()).await.map(|list| list.items.len())
                })
            });
            assert_eq!(listed.as_ref().ok(), allowed.then_some(&1), "{user:?}: {listed:?}");
        }
        Ok(())
    });
}
