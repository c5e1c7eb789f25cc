//! A controller that is frozen for longer than its lease lasts, and thawed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use egret_api::{Kind, ObjectKey};
use egret_controller::client;
use egret_testkit::controller::{Controller, config};
use egret_testkit::objects::not_ready;
use egret_testkit::patience::PATIENCE;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::{Cluster, RIVAL, address, egress_ip_of, everyone_is_placed, placed};

const OBJECTS: usize = 120;
/// Where the process that is to be a controller finds the API server.
const KUBECONFIG: &str = "EGRET_TEST_KUBECONFIG";
const LEADS: &str = "leads";
const LEADS_NO_MORE: &str = "leads no more";

/// Not a test: what the other process runs. Without the variable it is nothing.
#[tokio::test]
async fn the_other_process() {
    let Ok(path) = std::env::var(KUBECONFIG) else { return };
    // Whoever started us holds the other end.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let connection = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let mut config = config("frozen");
    config.writes_at_once = 2;
    let controller = Controller::start(client(connection).unwrap(), config);
    let mut led = false;
    while !controller.has_ended() {
        if led != controller.shared.leading() {
            led = !led;
            let words = if led { LEADS } else { LEADS_NO_MORE };
            writeln!(std::io::stdout(), "\n{words}").unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    controller.end().await;
}

/// A controller in a process of its own.
struct Other {
    child: Child,
    words: mpsc::UnboundedReceiver<String>,
}

impl Other {
    fn start(cluster: &Cluster) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "frozen::the_other_process", "--nocapture"])
            .env(KUBECONFIG, cluster.server.kubeconfig_as(RIVAL).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Should we die while it is frozen, the kernel ends it: its group has nobody left to thaw it.
            .process_group(0)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (said, words) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = said.send(line);
            }
        });
        Self { child, words }
    }

    async fn until_it_says(&mut self, words: &str) {
        let says = async { while self.words.recv().await.expect("it lives") != words {} };
        tokio::time::timeout(PATIENCE, says).await.unwrap_or_else(|_| panic!("it never says that it {words}"));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_controller_that_was_frozen_beyond_its_lease_changes_nothing_when_it_thaws() {
    let cluster = Cluster::of(4).await;
    let mut frozen = Other::start(&cluster);
    frozen.until_it_says(LEADS).await;
    for number in 0..OBJECTS {
        cluster.create(egress_ip_of(number)).await;
        if placed(&cluster.state()) > 0 {
            frozen.signal(Signal::STOP);
        }
    }
    frozen.signal(Signal::STOP);
    let done = placed(&cluster.state());
    assert!(done < 2 * OBJECTS, "it was frozen in the middle of a wave");

    let second = cluster.controller(config("one"));
    second.until_leading(true).await;
    let taken_over = cluster.server.audit().unwrap().len();
    cluster.edit_status(&ObjectKey::cluster(Kind::Node, "n1"), json!({"status": not_ready()})).await;
    cluster
        .until("the second to end the wave without the first node", |state| {
            let there = |items: &Vec<(String, String)>| items.iter().any(|(_, node)| node == "n1");
            placed(state) == 2 * OBJECTS && everyone_is_placed(state) && !state.statuses().values().any(there)
        })
        .await;

    frozen.signal(Signal::CONT);
    frozen.until_it_says(LEADS_NO_MORE).await;
    // Time enough for whatever it had in mind.
    let last = cluster.create(egress_ip_of(OBJECTS)).await;
    let name = crate::support::key(&last).unwrap();
    cluster.until("the second to go on", |state| state.get(&name).is_some() && everyone_is_placed(state)).await;
    assert!(second.shared.leading());
    let writes = cluster.server.audit().unwrap().split_off(taken_over);
    let landed: Vec<_> = writes.iter().filter(|write| write.user == RIVAL && write.code < 300).collect();
    assert!(landed.is_empty(), "{landed:?}");
    let history = cluster.history();
    history.assert_one_owner();
    for number in 0..OBJECTS {
        for address in [address(2 * number), address(2 * number + 1)] {
            let places = history.places(&format!("e{number}"), &address);
            let moved = places[0] == "n1";
            assert!(places.len() == 1 || moved && places.len() == 2, "e{number} {address}: {places:?}");
        }
    }

    second.end().await;
    frozen.until_it_says(LEADS).await;
    let further = crate::support::key(&cluster.create(egress_ip_of(OBJECTS + 1)).await).unwrap();
    cluster
        .until("the thawed one to lead again", |state| state.get(&further).is_some() && everyone_is_placed(state))
        .await;
    cluster.history().assert_one_owner();
}
