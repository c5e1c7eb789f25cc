//! The commands on a live cluster: the real binary against a real API server.

#![allow(clippy::panic)]

mod cluster;
mod controller;
mod peers;
#[path = "../support/mod.rs"]
mod support;
mod watch;

use std::path::{Path, PathBuf};

use egret_testkit::objects::egress_ip_on;
use egret_testkit::server::Server;
use serde_json::{Value, json};
use support::{Run, egret, run};

use crate::cluster::{as_file, delete_crd, node, store};
use crate::peers::Snapshots;

/// A server with three nodes and two objects, one of them settled, and the kubeconfig for it.
async fn settled() -> (Server, PathBuf) {
    let server = Server::take().await.expect("a server");
    server.install_crds(true).await.expect("the definitions are good");
    for (name, host) in [("worker-a", 1), ("worker-b", 2), ("worker-c", 3)] {
        store(&server, node(name, host)).await;
    }
    store(&server, egress_ip_on("billing", &["192.168.50.101"], &[("worker-a", "192.168.50.101")])).await;
    store(&server, egress_ip_on("shop", &["192.168.50.111", "192.168.50.112"], &[])).await;
    let kubeconfig = server.kubeconfig().expect("a file can be written");
    (server, kubeconfig)
}

fn ask(kubeconfig: &Path, arguments: &[&str]) -> Run {
    let kubeconfig = kubeconfig.display().to_string();
    run(egret(arguments.iter().copied().chain(["--kubeconfig", &kubeconfig])))
}

fn answer(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// The answer without what the two ways of asking must differ in.
fn decided(run: &Run) -> Value {
    let mut value = answer(run);
    value["assumed"] = Value::Null;
    value
}

#[tokio::test]
async fn a_live_cluster_and_its_dump_have_the_same_answers() {
    let (server, kubeconfig) = settled().await;
    let (file, _folder) = as_file(&server).await;
    for arguments in [
        &["plan", "-o", "json"][..],
        &["plan", "-o", "json", "--drain", "worker-a"],
        &["explain", "egressip/shop", "-o", "json"],
        &["explain", "node/worker-b", "-o", "json"],
        &["status", "-o", "json"],
        &["audit", "-o", "json"],
    ] {
        let live = ask(&kubeconfig, arguments);
        let dumped = run(egret(arguments.iter().copied().chain([file.as_str()])));
        assert_eq!(decided(&live), decided(&dumped), "{arguments:?}");
        assert_eq!(live.code, dumped.code, "{arguments:?}: {live}");
        assert!(
            live.stdout.contains("reachability assumed: there is no Lease egret-system/egret-controller"),
            "{live}"
        );
    }
    assert!(ask(&kubeconfig, &["plan"]).stdout.contains("192.168.50.112"), "there is something to decide");
}

#[tokio::test]
async fn nothing_is_written_to_the_cluster() {
    let (server, kubeconfig) = settled().await;
    let before = server.audit().expect("the log can be read").len();
    for arguments in [&["plan", "--drain", "worker-a"][..], &["explain", "egressip/shop"], &["status"], &["audit"]] {
        assert!(ask(&kubeconfig, arguments).code.is_some_and(|code| code < 2), "{arguments:?}");
    }
    assert_eq!(server.audit().expect("the log can be read").len(), before);
}

#[tokio::test]
async fn kinds_that_are_not_installed_are_empty_and_told() {
    let server = Server::take().await.expect("a server");
    store(&server, node("worker-a", 1)).await;
    let kubeconfig = server.kubeconfig().expect("a file can be written");
    let run = ask(&kubeconfig, &["status"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("note: not installed in this cluster: EgressIP, EgressService ("), "{run}");
    assert!(!run.stderr.contains("CloudPrivateIPConfig"), "off the clouds nobody has it: {run}");
    server.install_crds(false).await.expect("the definitions are good");
    assert_eq!(ask(&kubeconfig, &["status"]).stderr, "");
    delete_crd(&server, "egressservices.k8s.ovn.org").await;
    let run = ask(&kubeconfig, &["status"]);
    assert!(run.stderr.contains("not installed in this cluster: EgressService ("), "{run}");
}

#[tokio::test]
async fn all_missing_rights_are_named_and_nothing_is_answered() {
    let (server, _) = settled().await;
    let kubeconfig = server.kubeconfig_as("system:serviceaccount:default:nobody").expect("a file can be written");
    let run = ask(&kubeconfig, &["status"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run}");
    for kind in ["node", "egressip", "egressservice", "service", "endpointslice", "cloudprivateipconfig"] {
        assert!(run.stderr.contains(&format!("the right to list {kind}s is missing: ")), "{kind}: {run}");
    }
    assert!(run.stderr.contains("default:nobody"), "{run}");
}

#[tokio::test]
async fn a_faulty_object_is_shown_as_it_is_stored() {
    let (server, kubeconfig) = settled().await;
    let mut broken = node("worker-d", 4);
    broken["metadata"]["annotations"]["k8s.ovn.org/host-cidrs"] = json!("[\"nonsense\"]");
    store(&server, broken).await;
    let run = ask(&kubeconfig, &["status"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("node/worker-d in context"), "{run}");
    assert!(run.stderr.contains("k8s.ovn.org/host-cidrs"), "the line of it is shown: {run}");
    assert!(run.stdout.contains("192.168.50.101"), "the rest is answered: {run}");
}

#[tokio::test]
async fn a_name_that_is_not_there_has_its_neighbours() {
    let (_server, kubeconfig) = settled().await;
    let run = ask(&kubeconfig, &["explain", "egressip/biling"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("there is no egressip/biling there; did you mean billing?"), "{run}");
}

#[test]
fn without_a_cluster_files_are_offered() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = egret(["status"]);
    command.env_remove("KUBECONFIG").env("HOME", folder.path()).env_remove("KUBERNETES_SERVICE_HOST");
    command.stdin(std::process::Stdio::null());
    let output = command.output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("name files or folders to read instead, or - for standard input"), "{stderr}");
    assert!(stderr.contains("there is no kubeconfig"), "{stderr}");
}

#[test]
fn a_context_that_is_not_there_has_its_neighbours() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("config");
    let config = "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts:\n- name: prod\n  context: {cluster: c, \
                  user: u}\nclusters:\n- name: c\n  cluster: {server: 'https://127.0.0.1:1'}\n";
    std::fs::write(&path, config).expect("a file can be written");
    let run = ask(&path, &["status", "--context", "prd"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("the kubeconfig has no context \"prd\"; did you mean prod?"), "{run}");
    let run = ask(&path, &["audit"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run}");
    assert!(run.stderr.contains("context \"prod\" cannot be read"), "{run}");
    assert_eq!(run.stderr.matches("cannot be reached").count(), 1, "once, not for every kind: {run}");
    assert!(run.stderr.contains("refused"), "{run}");
}

#[test]
fn a_pipe_is_not_read_by_guess_and_sources_exclude_a_cluster() {
    let run = support::run_with(egret(["status"]), "kind: Node\n");
    assert_eq!((run.code, run.stdout.as_str()), (Some(64), ""), "{run}");
    assert!(run.stderr.contains("write - for what comes through it"), "{run}");
    for arguments in [
        &["status", "examples/1-zones/cluster", "--context", "prod"][..],
        &["plan", "-", "--kubeconfig", "x"],
        &["status", "examples/1-zones/cluster", "--watch"],
    ] {
        assert_eq!(support::run(egret(arguments.iter().copied())).code, Some(64), "{arguments:?}");
    }
    let mut command = egret(["status", "examples/1-zones/cluster"]);
    command.env("EGRET_CONTROLLER_URL", "http://127.0.0.1:1").env("EGRET_CONTROLLER_NAMESPACE", "x");
    assert_eq!(support::run(command).code, Some(0), "the environment contradicts nobody");
}

#[tokio::test]
async fn what_the_controller_knows_is_decided_with() {
    let (server, kubeconfig) = settled().await;
    let controller = Snapshots::serve(json!({
        "leading": true, "taken": 0, "cloud": false, "probing": true, "cordonExcludes": true,
        "noHostSubnet": "hybrid=yes", "clusterSubnets": [],
        "reachability": {"worker-a": "reachable", "worker-b": "unreachable", "worker-c": "inDoubt"},
        "massSilence": {"number": 7, "seconds": 12, "nodes": ["worker-c"]},
    }));
    let run = ask(&kubeconfig, &["status", "--controller-url", &controller.url()]);
    assert!(run.stdout.contains(&format!("nodes answer probes as {} knows", controller.url())), "{run}");
    assert!(
        run.stdout.contains("1 nodes fell silent at once 12 s ago, and nothing is moved for it (mass silence 7)"),
        "{run}"
    );
    assert!(run.stdout.contains("a cordoned node hosts nothing") && run.stdout.contains("hybrid"), "{run}");
    let run = ask(&kubeconfig, &["explain", "node/worker-b", "--controller-url", &controller.url(), "-o", "json"]);
    assert!(run.stdout.contains("Unreachable"), "{run}");
    let run = ask(&kubeconfig, &["explain", "node/worker-c", "--controller-url", &controller.url(), "-o", "json"]);
    assert!(run.stdout.contains("InDoubt"), "{run}");
    drop(server);
}

#[tokio::test]
async fn a_controller_that_does_not_lead_or_is_another_program_is_not_believed() {
    let (_server, kubeconfig) = settled().await;
    for (answer, why) in [
        (
            json!({"leading": false, "taken": 0, "cloud": false, "probing": true, "cordonExcludes": false,
            "reachability": {"worker-b": "unreachable"}}),
            "does not lead",
        ),
        (json!({"hello": "world"}), "is not understood"),
    ] {
        let controller = Snapshots::serve(answer);
        let run = ask(&kubeconfig, &["status", "--controller-url", &controller.url()]);
        assert_eq!(run.code, Some(0), "{run}");
        assert!(run.stdout.contains("reachability assumed") && run.stdout.contains(why), "{why}: {run}");
    }
    let run = ask(&kubeconfig, &["status", "--controller-url", "http://127.0.0.1:1"]);
    assert!(run.stdout.contains("reachability assumed: http://127.0.0.1:1 does not answer"), "{run}");
}

#[tokio::test]
async fn the_leader_is_found_by_its_lease_and_asked_through_the_api_server() {
    let (server, kubeconfig) = settled().await;
    let controller = Snapshots::serve(json!({
        "leading": true, "taken": 0, "cloud": false, "probing": true, "cordonExcludes": false,
        "reachability": {"worker-a": "reachable", "worker-b": "unreachable", "worker-c": "reachable"},
    }));
    cluster::install_leader(&server, "egret-controller-1", controller.address()).await;
    let run = ask(&kubeconfig, &["status"]);
    assert!(run.stdout.contains("nodes answer probes as pod egret-system/egret-controller-1 knows"), "{run}");
    assert!(run.stdout.contains("N5"), "worker-b takes nothing new: {run}");
    let run = ask(&kubeconfig, &["status", "--controller-namespace", "elsewhere"]);
    assert!(run.stdout.contains("there is no Lease elsewhere/egret-controller"), "{run}");
}

#[tokio::test]
async fn what_may_not_be_asked_is_told_and_the_rest_is_answered() {
    let (server, _) = settled().await;
    cluster::install_leader(&server, "egret-controller-1", ([192, 0, 2, 1], 1).into()).await;
    cluster::allow_to_list(&server, "reader").await;
    let kubeconfig = server.kubeconfig_as("reader").expect("a file can be written");
    let run = ask(&kubeconfig, &["status"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("reachability assumed: leases.coordination.k8s.io"), "{run}");
    assert!(run.stdout.contains("192.168.50.101"), "{run}");
}
