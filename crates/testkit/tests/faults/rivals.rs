//! Others write the same objects, or the API server has too much to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use egret_api::{Kind, ObjectKey};
use egret_testkit::controller::config;
use egret_testkit::objects::{not_ready, ready};
use egret_testkit::patience::eventually;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use crate::support::{CONTROLLER, Cluster, RIVAL, egress_ip_key, egress_ip_of, everyone_is_placed};

const OBJECTS: usize = 40;

/// Writes annotations, labels and specs of all objects, round after round, until it is told to stop. Returns the number
/// of the last round, which is complete.
async fn rival(client: kube::Client, stop: Arc<AtomicBool>) -> u32 {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("k8s.ovn.org", "v1", "EgressIP"));
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut round = 0;
    loop {
        round += 1;
        for number in 0..OBJECTS {
            let change = json!({
                "metadata": {
                    "annotations": {"example.com/round": round.to_string(), format!("example.com/round-{round}"): "x"},
                    "labels": {"example.com/round": round.to_string()},
                },
                "spec": {"namespaceSelector": {"matchLabels": {"round": round.to_string()}}},
            });
            let written = api.patch(&format!("e{number}"), &PatchParams::default(), &Patch::Merge(change)).await;
            if let Err(error) = written {
                assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
            }
        }
        if stop.load(Ordering::Relaxed) {
            return round;
        }
    }
}

#[tokio::test]
async fn who_writes_the_same_objects_all_the_time_loses_nothing_and_holds_nothing_up() {
    let cluster = Cluster::of(5).await;
    let stop = Arc::new(AtomicBool::new(false));
    for number in 0..OBJECTS {
        cluster.create(egress_ip_of(number)).await;
    }
    let rivals = [(); 2].map(|()| tokio::spawn(rival(cluster.server.client_as(RIVAL), Arc::clone(&stop))));
    let controller = cluster.controller(config("one"));
    cluster.until("every address to have a node", everyone_is_placed).await;
    let refused = || cluster.writes_of(CONTROLLER).iter().filter(|write| write.code == 422).count();
    // Until they have got in each other's way, which is a matter of chance.
    for (turn, node) in ["n1", "n2", "n3"].into_iter().cycle().enumerate() {
        if turn >= 3 && refused() > 0 {
            break;
        }
        assert!(turn < 60, "they never got in each other's way");
        let key = ObjectKey::cluster(Kind::Node, node);
        cluster.edit_status(&key, json!({"status": not_ready()})).await;
        cluster
            .until("its addresses to move", |state| {
                let there = |items: &Vec<(String, String)>| items.iter().any(|(_, host)| host == node);
                everyone_is_placed(state) && !state.statuses().values().any(there)
            })
            .await;
        cluster.edit_status(&key, json!({"status": ready()})).await;
    }
    stop.store(true, Ordering::Relaxed);
    let [one, other] = rivals;
    let last = one.await.unwrap().min(other.await.unwrap());
    cluster.until("everything to have a node in the end", everyone_is_placed).await;
    controller.end().await;

    for number in 0..OBJECTS {
        let state = cluster.state();
        let annotations = state.annotations(&format!("e{number}")).unwrap();
        for round in 1..=last {
            assert!(annotations.contains_key(&format!("example.com/round-{round}")), "e{number} lost round {round}");
        }
        assert!(annotations.contains_key("k8s.ovn.org/egressip-mark"));
        let object = state.get(&egress_ip_key(&format!("e{number}"))).unwrap();
        assert_eq!(object["metadata"]["labels"]["example.com/round"], annotations["example.com/round"]);
        assert_eq!(object["spec"]["namespaceSelector"]["matchLabels"]["round"], annotations["example.com/round"]);
    }
    let marks = cluster.state().marks().into_values().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(marks.len(), OBJECTS);
}

/// Lets the controller have next to no patches at once: the server's own fairness answers 429 to the rest.
async fn throttle(cluster: &Cluster) {
    let root = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "tiny"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 1, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }},
    });
    cluster.post(&format!("{root}/prioritylevelconfigurations"), &level).await.unwrap();
    let subject =
        json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "egret", "name": "egret-controller"}});
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": {"name": "tiny"},
        "spec": {
            "priorityLevelConfiguration": {"name": "tiny"},
            "matchingPrecedence": 2,
            "rules": [{"subjects": [subject], "resourceRules": [{
                "verbs": ["patch"], "apiGroups": ["k8s.ovn.org"], "resources": ["egressips"], "clusterScope": true,
            }]}],
        },
    });
    let stored = cluster.post(&format!("{root}/flowschemas"), &schema).await.unwrap();
    let uid = stored["metadata"]["uid"].as_str().unwrap().to_owned();
    let controller = cluster.server.client_as(CONTROLLER);
    eventually("the server to go by it", async || {
        let nothing = http::Request::patch("/apis/k8s.ovn.org/v1/egressips/none")
            .header("Content-Type", "application/merge-patch+json")
            .body(kube::client::Body::from(b"{}".to_vec()))
            .unwrap();
        let answer = controller.send(nothing).await.unwrap();
        let schema = answer.headers().get("X-Kubernetes-PF-FlowSchema-UID");
        schema.is_some_and(|schema| schema == uid.as_str()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_api_server_that_has_too_much_to_do_gets_time() {
    let cluster = Cluster::of(5).await;
    throttle(&cluster).await;
    for number in 0..3 * OBJECTS {
        cluster.create(egress_ip_of(number)).await;
    }
    let controller = cluster.controller(config("one"));
    cluster.until("every address to have a node", everyone_is_placed).await;
    controller.end().await;
    let writes = cluster.writes_of(CONTROLLER);
    let of = |code: u16| writes.iter().filter(|write| write.resource == "egressips" && write.code == code).count();
    assert!(of(429) > 0, "the server did refuse");
    assert_eq!(of(200), 3 * OBJECTS, "each is written once");
    assert!(of(429) < 30 * OBJECTS, "{} refusals are no patience", of(429));
    cluster.history().assert_one_owner();
}
