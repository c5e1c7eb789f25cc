//! `egret status --watch`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use egret_testkit::objects::egress_ip;
use egret_testkit::patience::PATIENCE;
use egret_testkit::server::hand::merge;
use serde_json::json;

use crate::cluster::{node, store};
use crate::peers::Snapshots;
use crate::support::egret;
use crate::{Server, settled};

/// One that runs, and the lines that it prints.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(arguments: &[&str]) -> Self {
        let mut command = egret(arguments.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line that has all of this in it.
    fn until(&self, parts: &[&str]) -> String {
        let start = Instant::now();
        let mut seen = Vec::new();
        while let Some(left) = PATIENCE.checked_sub(start.elapsed()) {
            let Ok(line) = self.lines.recv_timeout(left) else { break };
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {parts:?} in\n{}", seen.join("\n"))
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let told = std::process::Command::new("kill").args(["-s", name, &id]).status().expect("kill runs");
        assert!(told.success());
    }

    fn code(mut self) -> Option<i32> {
        self.child.wait().expect("it is our child").code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It has ended already where the test has come to its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_change_is_shown_as_a_new_block_and_ctrl_c_is_a_good_end() {
    let (server, kubeconfig) = settled().await;
    let watching = Watching::start(&["status", "--watch", "--kubeconfig", &kubeconfig.display().to_string()]);
    watching.until(&["context", "Ctrl-C ends"]);
    watching.until(&["ADDRESSES (3, 2 unassigned)"]);
    let items = json!({"status": {"items": [{"node": "worker-b", "egressIP": "192.168.50.111"}]}});
    merge(&server.client(), &egress_ip("shop", &[]), items).await;
    watching.until(&["ADDRESSES (3, 1 unassigned)"]);
    store(&server, node("worker-d", 4)).await;
    watching.until(&["NODES (4)"]);
    watching.signal("INT");
    assert_eq!(watching.code(), Some(0));
}

#[tokio::test]
async fn a_node_that_falls_silent_is_shown_though_no_object_changes() {
    let (_server, kubeconfig) = settled().await;
    let controller = Snapshots::serve(json!({
        "leading": true, "taken": 0, "cloud": false, "probing": true, "cordonExcludes": false,
        "reachability": {"worker-a": "reachable", "worker-b": "reachable", "worker-c": "reachable"},
    }));
    let kubeconfig = kubeconfig.display().to_string();
    let watching =
        Watching::start(&["status", "--watch", "--kubeconfig", &kubeconfig, "--controller-url", &controller.url()]);
    watching.until(&["ADDRESSES"]);
    controller.change(|view| view["reachability"]["worker-b"] = json!("unreachable"));
    watching.until(&["worker-b", "takes nothing new: N5"]);
}

#[tokio::test]
async fn an_api_server_that_is_gone_is_told_and_so_is_its_return() {
    let (server, kubeconfig) = settled().await;
    let watching = Watching::start(&["status", "--watch", "--kubeconfig", &kubeconfig.display().to_string()]);
    watching.until(&["ADDRESSES"]);
    server.kill_api();
    watching.until(&["note: what follows is old"]);
    server.start_api().await.expect("it starts again");
    store(&server, node("worker-d", 4)).await;
    watching.until(&["NODES (4)"]);
}

#[tokio::test]
async fn an_error_at_the_start_is_no_watch() {
    let server = Server::take().await.expect("a server");
    let kubeconfig = server.kubeconfig_as("nobody").expect("a file can be written");
    let run = crate::ask(&kubeconfig, &["status", "--watch"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run}");
    assert!(run.stderr.contains("the right to list nodes is missing"), "{run}");
}
