//! What others change is seen, and told.

use std::pin::pin;
use std::time::{Duration, Instant};

use egret_hostmodel::{Role, State, Step};
use egret_hostnet::Observed;
use egret_netlab::test_name;
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::timeout;

use crate::namespace::{alone, nft, run};
use crate::node::{Node, everything, ip, lookup};

const CHANGE: Duration = Duration::from_secs(1);

fn v4(state: &State, role: Role) -> usize {
    let elements = &state.table.as_ref().unwrap().elements;
    elements.get(&role.of(ip("10.0.0.1"))).map_or(0, std::collections::BTreeMap::len)
}

#[test]
fn what_others_take_away_or_add_is_told_within_a_second_and_seen() {
    type Check = fn(&State) -> bool;
    let changes: [(&str, Check); 13] = [
        ("nft delete rule inet egret guard handle", |it| it.table.as_ref().unwrap().shape.is_none()),
        ("nft flush chain inet egret guard", |it| it.table.as_ref().unwrap().shape.is_none()),
        ("nft add rule inet egret guard accept", |it| it.table.as_ref().unwrap().shape.is_none()),
        ("nft add chain inet egret more", |it| it.table.as_ref().unwrap().shape.is_none()),
        ("nft add set inet egret more {type ipv4_addr;}", |it| it.table.as_ref().unwrap().shape.is_none()),
        // No prefix, and so nothing that could be told of or be taken out.
        ("nft add element inet egret cluster-v4 {172.16.0.1-172.16.0.5}", |it| {
            it.table.as_ref().unwrap().shape.is_none()
        }),
        ("nft add element inet egret hold-v4 {10.9.9.9}", |it| v4(it, Role::Hold) == 1),
        ("nft delete element inet egret service-source-v4 {10.244.1.7}", |it| v4(it, Role::ServiceSource) == 0),
        ("nft flush set inet egret cluster-v4", |it| v4(it, Role::Cluster) == 0),
        ("nft delete table inet egret", |it| it.table.is_none()),
        ("ip rule delete priority 5002 protocol 68", |it| it.rules.len() == everything().rules.len() - 1),
        ("ip -6 route delete default table 1005", |it| it.routes.len() == everything().routes.len() - 1),
        ("ip addr delete 192.168.60.50/32 dev eth1", |it| it.addresses.len() == 1),
    ];
    alone(test_name!(), || async {
        let node = Node::open();
        for (command, seen) in changes {
            node.become_like(&everything()).await;
            settle(&node).await;
            let mut told = pin!(node.kernel.changes());
            run(&with_handle(command));
            let began = Instant::now();
            timeout(CHANGE, told.next()).await.unwrap_or_else(|_| panic!("{command} is not told"));
            eprintln!("{command}: told after {:?}", began.elapsed());
            assert!(seen(&node.found().await), "{command} is not seen");
        }
        node.become_like(&everything()).await;
    });
}

fn with_handle(command: &str) -> String {
    let Some(command) = command.strip_suffix("handle") else { return command.to_owned() };
    let listed = run("nft --handle list chain inet egret guard");
    let handle = listed.lines().find_map(|line| line.contains("drop").then(|| line.rsplit(' ').next())).flatten();
    format!("{command}handle {}", handle.unwrap())
}

/// Until nothing is told any more.
async fn settle(node: &Node) {
    let mut told = pin!(node.kernel.changes());
    while timeout(Duration::from_millis(200), told.next()).await.is_ok() {}
}

#[test]
fn who_observes_whenever_something_is_told_comes_to_rest() {
    alone(test_name!(), || async {
        let node = Node::open();
        let mut told = pin!(node.kernel.changes());
        node.become_like(&everything()).await;
        assert!(told.next().now_or_never().is_some(), "our own changes are told");
        let mut rounds = 0;
        // As many as a table and some rules are worth, which come later than they were done.
        while timeout(Duration::from_millis(500), told.next()).await.is_ok() {
            let Observed { found, .. } = node.observe().await;
            assert_eq!(found, everything());
            rounds += 1;
        }
        assert!(rounds <= 3, "{rounds} rounds");
    });
}

#[test]
fn what_others_do_in_their_own_tables_is_not_told() {
    alone(test_name!(), || async {
        let node = Node::open();
        let mut told = pin!(node.kernel.changes());
        nft("add table ip kube-proxy\nadd set ip kube-proxy ips { type ipv4_addr; }");
        nft("add table inet ovn-kubernetes\nadd set inet ovn-kubernetes ips { type ipv4_addr; }");
        timeout(CHANGE, told.next()).await.expect("ovnkube-node's table came");
        nft("add element ip kube-proxy ips { 10.0.0.1 }");
        nft("add element inet ovn-kubernetes ips { 10.0.0.1 }");
        assert!(timeout(Duration::from_millis(300), told.next()).await.is_err());
        nft("add chain inet ovn-kubernetes egress-services");
        timeout(CHANGE, told.next()).await.expect("ovnkube-node's chain came");
    });
}

#[test]
fn a_table_that_somebody_made_in_our_name_has_no_shape_and_is_replaced() {
    alone(test_name!(), || async {
        nft("add table inet egret\nadd set inet egret hold-v4 { type ipv4_addr; flags interval; }\n\
             add element inet egret hold-v4 { 10.0.0.0-10.0.0.5 }");
        let node = Node::open();
        assert_eq!(node.found().await.table.unwrap().shape, None);
        node.become_like(&everything()).await;
        node.apply(&[Step::DeleteRule { rule: lookup("10.244.1.7") }]).await;
        node.become_like(&everything()).await;
    });
}
