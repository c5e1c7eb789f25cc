//! What an agent costs that has nothing to do (`make bench-node`).

use std::fs;
use std::time::Duration;

use egret_netlab::test_name;
use egret_testkit::cluster::{Cluster, alone};
use egret_testkit::server::hand;
use serde_json::json;

use crate::whole::whole;

const SERVICES: u16 = 500;
/// Long enough that each kind is listed anew once, and the kernel looked at.
const REST: Duration = Duration::from_mins(2);

/// Hundredths of a second of processor time.
fn ticks(id: u32) -> u32 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let after = text.rsplit_once(')').unwrap().1;
    after.split_whitespace().skip(11).take(2).map(|field| field.parse::<u32>().unwrap()).sum()
}

/// Megabytes in memory: all, and those that are not the program itself.
fn memory(id: u32) -> [f64; 2] {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    ["VmRSS:", "RssAnon:"].map(|name| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1000.0
    })
}

#[test]
#[ignore = "a measurement: make bench-node"]
fn an_agent_at_rest_with_five_hundred_services() {
    alone(test_name!(), &[], async || {
        let whole = whole(Cluster::builder(), &["--datapath", "direct"]).await;
        let client = whole.cluster.client();
        for number in 0..SERVICES {
            let (name, [high, low]) = (format!("s{number}"), number.to_be_bytes());
            let metadata = json!({"namespace": "default", "name": name});
            let service = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
            });
            hand::create(&client, &service).await;
            let ingress = [format!("192.169.{high}.{low}").parse()?];
            whole.cluster.balance("default", &name, &ingress, "n1").await?;
            hand::create(
                &client,
                &json!({
                    "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                    "metadata": {"namespace": "default", "name": name, "labels": {"kubernetes.io/service-name": name}},
                    "endpoints": [{"addresses": [format!("10.244.{}.{low}", 100 + high)], "nodeName": "n1"}],
                }),
            )
            .await;
            hand::create(
                &client,
                &json!({
                    "apiVersion": "k8s.ovn.org/v1", "kind": "EgressService", "metadata": metadata,
                    "spec": {"sourceIPBy": "Network", "network": "1234"},
                }),
            )
            .await;
        }
        whole.shows("n1", |view| view["sources"].as_array().is_some_and(|all| all.len() == usize::from(SERVICES)));
        let agent = whole.agent_id("n1");
        std::thread::sleep(Duration::from_secs(5));
        let before = ticks(agent);
        std::thread::sleep(REST);
        let share = f64::from(ticks(agent) - before) / REST.as_secs_f64();
        let [memory, own] = memory(agent);
        println!("CPU at rest with 500 services: {share:.3} % (target 0.1 %)");
        println!("memory at rest with 500 services: {memory:.1} MB, {own:.1} without the program (target 20 MB)");
        assert!(share <= 0.15 && memory <= 30.0, "a target is missed by more than half");
        Ok(())
    });
}
