//! A cluster with Egret on it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use egret_netlab::{Family, Network, PORT, Process, Transport, until};
use egret_testkit::cluster::{Cluster, ClusterBuilder};
use egret_testkit::server::hand;
use serde_json::{Value, json};

/// Longer than anything takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);
pub(crate) const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// What the manifests grant.
const RIGHTS: [&str; 2] =
    [include_str!("../../../../deploy/base/rbac.yaml"), include_str!("../../../../deploy/base/agent-rbac.yaml")];

pub(crate) struct Whole {
    pub(crate) cluster: Cluster,
    pub(crate) controllers: Vec<Process>,
    agents: BTreeMap<&'static str, Process>,
    /// Of the controllers' and of the agents' accounts; each is written once, for a process may be reading it.
    kubeconfigs: [PathBuf; 2],
}

/// A cluster of three nodes on two networks, with Egret on it. Its agents have these options.
pub(crate) async fn whole(cluster: ClusterBuilder, options: &[&str]) -> Whole {
    let cluster = cluster.nodes(3).blue(&[1, 2, 3]).start().await.unwrap();
    let client = cluster.client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "egret-system"}});
    hand::create(&client, &namespace).await;
    let definitions = Command::new(env!("CARGO_BIN_EXE_egret")).args(["crds"]).output().unwrap();
    let definitions = String::from_utf8(definitions.stdout).unwrap();
    for text in RIGHTS.into_iter().chain([definitions.as_str()]) {
        for object in serde_saphyr::from_multiple::<Value>(text).unwrap() {
            hand::create(&client, &object).await;
        }
    }
    for name in NODES {
        table(&cluster, name);
    }
    let account = |name| cluster.kubeconfig(Some(&format!("system:serviceaccount:egret-system:{name}"))).unwrap();
    let kubeconfigs = ["egret-controller", "egret-agent"].map(account);
    let mut whole = Whole { cluster, controllers: Vec::new(), agents: BTreeMap::new(), kubeconfigs };
    whole.controller(9420);
    whole.controller(9421);
    for name in NODES {
        whole.agent(name, options);
    }
    whole
}

/// The table of the second network, which an administrator has made.
fn table(cluster: &Cluster, name: &str) {
    for line in [
        "route add 192.168.60.0/24 dev eth1 table 1234",
        "route add default via 192.168.60.200 table 1234",
        "-6 route add fd00:60::/64 dev eth1 table 1234",
        "-6 route add default via fd00:60::200 table 1234",
    ] {
        cluster.lab().node(name).run(std::iter::once("ip").chain(line.split(' ')).collect::<Vec<_>>()).unwrap();
    }
}

impl Whole {
    /// A controller, which runs on a node's network as a pod with the host's would.
    fn controller(&mut self, port: u16) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_egret"));
        command.arg("controller").arg("--kubeconfig").arg(&self.kubeconfigs[0]);
        // There is nobody at OVN-Kubernetes' management addresses here; readiness decides.
        command.args(["--probe-timeout", "0", "--pod-name", &format!("egret-controller-{port}")]);
        command.args(["--admin-address", &format!(":{port}"), "--lease-duration", "5s", "--renew-deadline", "3s"]);
        command.args(["--retry-period", "500ms"]);
        self.controllers.push(self.cluster.lab().node("n1").spawn(&command).unwrap());
    }

    fn agent(&mut self, node: &'static str, options: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_egret"));
        command.arg("agent").arg("--kubeconfig").arg(&self.kubeconfigs[1]);
        command.args(["--node", node, "--state-folder", &format!("/run/egret-{node}")]);
        command.args(options);
        let agent = self.cluster.lab().node(node).spawn(&command).unwrap();
        self.agents.insert(node, agent);
    }

    /// The process of a node's agent.
    pub(crate) fn agent_id(&self, node: &str) -> u32 {
        self.agents[node].id()
    }

    pub(crate) fn said(&self) -> String {
        let controllers = self.controllers.iter().map(Process::said);
        let agents = self.agents.iter().map(|(node, agent)| format!("agent of {node}:\n{}", agent.said()));
        controllers.chain(agents).collect::<Vec<_>>().join("\n")
    }

    /// Waits until `pod` is answered by `server` from beyond its network, and it sees `seen`.
    pub(crate) fn leaves(&self, pod: &str, server: &str, seen: IpAddr) {
        self.leaves_to(Family::of(seen).destination(), pod, server, seen);
    }

    /// Waits until `pod` is answered from the second network, where its address is. That has no router in the nodes' main
    /// table, so nobody beyond it is reached from there.
    pub(crate) fn leaves_as(&self, pod: &str, seen: IpAddr) {
        self.leaves_to(self.cluster.lab().outside(Network::Blue).address(Family::of(seen)), pod, "blue", seen);
    }

    fn leaves_to(&self, to: IpAddr, pod: &str, server: &str, seen: IpAddr) {
        let ask = || self.cluster.lab().pod(pod).ask(Transport::Tcp, to, PORT, egret_netlab::PATIENCE);
        let wanted = format!("{server} saw {seen}");
        assert!(until(SOON, || ask() == wanted.as_str()), "{pod}: {}, not {wanted}\n{}", ask(), self.said());
    }

    pub(crate) async fn status(&self, object: &Value) -> Value {
        hand::get(&self.cluster.client(), object).await.unwrap()["status"].clone()
    }

    /// Waits until the status has one of these nodes there, and says which.
    pub(crate) async fn holder(&self, object: &Value, pointer: &str, among: &[&'static str]) -> &'static str {
        let began = Instant::now();
        loop {
            let status = self.status(object).await;
            let holder = status.pointer(pointer).and_then(Value::as_str);
            if let Some(node) = among.iter().find(|node| holder == Some(**node)) {
                return node;
            }
            assert!(began.elapsed() < SOON, "{status}\n{}", self.said());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What the agent of a node shows; `None` until it shows something.
    fn view(&self, node: &str) -> Option<Value> {
        let text = self.cluster.lab().node(node).inside(|| {
            let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, 9411))).ok()?;
            stream.set_read_timeout(Some(SOON)).ok()?;
            stream.write_all(b"GET /snapshot HTTP/1.0\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        })?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// Waits until the agent has done what it has to, and shows what is wanted.
    pub(crate) fn shows(&self, node: &str, wanted: impl Fn(&Value) -> bool) {
        let shown = || self.view(node).unwrap_or_default();
        let done = until(SOON, || Some(shown()).is_some_and(|view| view["settled"] == true && wanted(&view)));
        assert!(done, "the agent of {node} shows\n{:#}\n{}", shown(), self.said());
    }

    /// Waits until the agent of a node says that these sources have their way out there by this object.
    pub(crate) fn serves(&self, node: &str, about: &str, sources: &[IpAddr]) {
        self.shows(node, |view| {
            let all = |key: &str| view[key].as_array().cloned().unwrap_or_default();
            let active = |report: &Value| report["about"] == about && report["finding"]["finding"] == "active";
            let served = all("sources");
            all("reports").iter().any(active) && sources.iter().all(|ip| served.contains(&json!(ip)))
        });
    }
}
