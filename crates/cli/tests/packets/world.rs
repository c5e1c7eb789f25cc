//! A lab with agents on its nodes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use egret_netlab::{Family, Host, Lab, LabBuilder, PORT, Process, Profile, Transport, difference, until};
use serde_json::{Value, json};

use crate::objects::{Exit, node, web};

/// What a condition is waited for at most.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// An agent that has looked at nothing for so long rests: the kernel's word is acted on sooner.
const QUIET: Duration = Duration::from_millis(500);

/// A lab, the objects of its cluster, and the agents that read them.
pub(crate) struct World {
    pub(crate) lab: Lab,
    exits: BTreeMap<&'static str, Exit>,
    more: Vec<Value>,
    agents: BTreeMap<String, Process>,
    before: BTreeMap<String, String>,
    options: Vec<&'static str>,
}

/// A lab with a second network, on which `n1` is, in table 1234.
pub(crate) fn two(lab: LabBuilder) -> World {
    let lab = lab.build().unwrap();
    table(&lab.node("n1"), "1234");
    World::new(lab)
}

/// From stock kernel parameters, and again from restricted ones.
#[expect(clippy::unnecessary_wraps, reason = "it is what the body of a test ends with")]
pub(crate) fn from_both(nodes: u8, body: impl Fn(World)) -> egret_netlab::Outcome {
    for profile in Profile::BOTH {
        let blue: Vec<u8> = (1..=nodes).collect();
        body(two(Lab::builder().nodes(nodes).blue(&blue).profile(profile)));
    }
    Ok(())
}

/// In every protocol and family, `pod` is answered by `server`, which sees the source of `seen` in that family.
pub(crate) fn goes(world: &World, pod: &str, server: &str, seen: &[IpAddr]) {
    for family in Family::BOTH {
        let seen = seen.iter().find(|ip| Family::of(**ip) == family).unwrap();
        for transport in Transport::ALL {
            let reply = world.lab.pod(pod).ask(transport, family.destination(), PORT, egret_netlab::PATIENCE);
            assert_eq!(reply, format!("{server} saw {seen}").as_str(), "{pod} by {transport:?}\n{}", world.all_said());
        }
    }
}

/// Nothing that `pod` sends gets out.
pub(crate) fn stays_in(world: &World, pod: &str) {
    for family in Family::BOTH {
        for transport in Transport::ALL {
            let reply = world.lab.pod(pod).ask(transport, family.destination(), PORT, Duration::from_millis(200));
            assert!(!reply.is_answer(), "{pod} by {transport:?}: {reply}");
        }
    }
}

/// The rules of a node that are Egret's, both families, as `ip rule` shows them.
pub(crate) fn rules(world: &World, node: &str) -> Vec<String> {
    let host = world.lab.node(node);
    let shown = [["ip", "-4", "rule"], ["ip", "-6", "rule"]].map(|command| host.run(command).unwrap());
    let lines = shown.iter().flat_map(|text| text.lines()).filter(|line| line.contains("proto 68"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// What an administrator of such a network has done: a table that leads there.
pub(crate) fn table(node: &Host, table: &str) {
    for line in [
        format!("route add 192.168.60.0/24 dev eth1 table {table}"),
        format!("route add default via 192.168.60.200 table {table}"),
        format!("-6 route add fd00:60::/64 dev eth1 table {table}"),
        format!("-6 route add default via fd00:60::200 table {table}"),
    ] {
        let words: Vec<&str> = std::iter::once("ip").chain(line.split(' ')).collect();
        node.run(words).unwrap();
    }
}

/// What a host's kernel holds when it has come to an end: IPv6 makes an address its own a moment after it was told.
fn at_rest(host: &Host) -> String {
    let mut last = host.dump().unwrap();
    let rested = || {
        let now = host.dump().unwrap();
        std::mem::replace(&mut last, now.clone()) == now
    };
    assert!(until(PATIENCE, rested), "{} does not come to rest", host.name());
    last
}

impl World {
    pub(crate) fn new(lab: Lab) -> Self {
        let mut world = Self {
            lab,
            exits: BTreeMap::new(),
            more: Vec::new(),
            agents: BTreeMap::new(),
            before: BTreeMap::new(),
            options: Vec::new(),
        };
        world.write();
        world
    }

    /// Options for agents that are started from now on.
    pub(crate) fn options(&mut self, options: &[&'static str]) {
        self.options = options.to_vec();
    }

    fn file() -> PathBuf {
        PathBuf::from("/run/objects.json")
    }

    fn write(&mut self) {
        let mut items: Vec<Value> = self.lab.nodes().iter().map(|host| node(host)).collect();
        items.extend(self.exits.values().flat_map(|exit| exit.objects(&self.lab)));
        items.extend(self.more.clone());
        let text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        // As a whole: an agent must not read half of it.
        fs::write("/run/objects.new", text).unwrap();
        fs::rename("/run/objects.new", Self::file()).unwrap();
    }

    /// The service can be reached, and what is for its load balancer's addresses comes to that node. Before agents are
    /// started, for it changes the kernel.
    pub(crate) fn expose(&self, exit: &Exit, node: &str) {
        self.lab.service(exit.service()).unwrap();
        for ip in &exit.external {
            self.lab.route(*ip, node).unwrap();
        }
    }

    /// An `EgressService` is there.
    pub(crate) fn put(&mut self, exit: &Exit) {
        self.exits.insert(exit.name, exit.clone());
        self.write();
    }

    /// These are there, from one moment on.
    pub(crate) fn put_all(&mut self, exits: &[Exit]) {
        self.exits.extend(exits.iter().map(|exit| (exit.name, exit.clone())));
        self.write();
    }

    /// Pod `a` on `n1`, and `web` with it behind; the agent of `n1` serves it.
    pub(crate) fn with_web(&mut self) -> Exit {
        self.lab.add_pod("n1", "a").unwrap();
        let exit = web(&["a"]);
        self.expose(&exit, "n1");
        self.start("n1");
        self.put(&exit);
        self.serves("n1", &["a"]);
        exit
    }

    /// The `EgressService` is gone; the service stays.
    pub(crate) fn remove(&mut self, name: &str) {
        self.exits.remove(name);
        self.write();
    }

    /// Other objects, in place of what was said here before.
    pub(crate) fn more(&mut self, objects: Vec<Value>) {
        self.more = objects;
        self.write();
    }

    /// Starts the agent of a node.
    pub(crate) fn start(&mut self, name: &str) {
        let host = self.lab.node(name);
        self.before.entry(name.to_owned()).or_insert_with(|| at_rest(&host));
        let mut command = Self::command(name);
        command.args(["-f", "/run/objects.json", "--log-level", "debug"]).args(&self.options);
        let agent = host.spawn(&command).unwrap();
        self.agents.insert(name.to_owned(), agent);
    }

    fn command(name: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_egret"));
        command.args(["agent", "--node", name, "--state-folder", &format!("/run/egret-{name}")]);
        command
    }

    /// Waits for the end of an agent that ends by itself. What it said, and whether it was satisfied.
    pub(crate) fn ends(&mut self, name: &str) -> (String, bool) {
        let mut agent = self.agents.remove(name).unwrap();
        let status = agent.wait().unwrap();
        (agent.said(), status.success())
    }

    /// Kills the agent of a node.
    pub(crate) fn kill(&mut self, name: &str) {
        drop(self.agents.remove(name));
    }

    /// What the agent's admin port answers.
    pub(crate) fn get(&self, name: &str, path: &str) -> Option<String> {
        let answer = self.lab.node(name).inside(|| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9411));
            let mut stream = TcpStream::connect(address).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        })?;
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }

    /// What the agent shows; `None` until it shows something.
    pub(crate) fn snapshot(&self, name: &str) -> Option<Value> {
        serde_json::from_str(&self.get(name, "/snapshot")?).ok()
    }

    /// Waits until the agent has nothing more to look at: what it changed itself makes it look again, and then it finds
    /// what else has happened without having been told.
    pub(crate) fn rests(&self, name: &str) {
        let passes = || {
            let text = self.get(name, "/metrics")?;
            Some(text.lines().filter(|line| line.contains("_passes_total")).collect::<Vec<_>>().join("\n"))
        };
        let mut last = (passes(), Instant::now());
        let rested = until(PATIENCE, || {
            sleep(QUIET / 20);
            let now = passes();
            if now != last.0 {
                last = (now, Instant::now());
            }
            last.0.is_some() && last.1.elapsed() > QUIET
        });
        assert!(rested, "{}", self.said(name));
    }

    /// Waits until the agent's snapshot is as wanted, and shows what there is if it does not become so.
    pub(crate) fn shows(&self, name: &str, wanted: impl Fn(&Value) -> bool) {
        let shown = || self.snapshot(name).unwrap_or_default();
        if until(PATIENCE, || wanted(&shown())) {
            return;
        }
        let said = self.said(name);
        panic!("the agent of {name} shows\n{:#}\nand says\n{said}", shown());
    }

    /// Waits until exactly these pods are served or kept in by the node.
    pub(crate) fn serves(&self, name: &str, pods: &[&str]) {
        let addresses = pods.iter().flat_map(|pod| self.lab.pod(pod).addresses().to_vec());
        let mut addresses: Vec<String> = addresses.map(|ip: IpAddr| ip.to_string()).collect();
        addresses.sort();
        self.shows(name, |view| {
            let sources = view["sources"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let mut sources: Vec<&str> = sources.collect();
            sources.sort_unstable();
            view["settled"] == true && sources == addresses
        });
    }

    /// Waits until the agent says this of an object.
    pub(crate) fn says(&self, name: &str, about: &str, finding: &str) {
        self.shows(name, |view| {
            let reports = view["reports"].as_array().into_iter().flatten();
            view["settled"] == true
                && reports.into_iter().any(|report| report["about"] == about && report["finding"]["finding"] == finding)
        });
    }

    /// What the agent of a node has said so far.
    pub(crate) fn said(&self, name: &str) -> String {
        self.agents.get(name).map(Process::said).unwrap_or_default()
    }

    /// What all agents have said so far.
    pub(crate) fn all_said(&self) -> String {
        self.agents.iter().map(|(name, agent)| [name, ":\n", &agent.said()].concat()).collect()
    }

    /// Waits until `pod` leaves with these addresses.
    pub(crate) fn leaves_as(&self, pod: &str, seen: &[IpAddr]) {
        let as_seen = || {
            Family::BOTH.into_iter().all(|family| {
                let source = self.lab.pod(pod).tcp(family.destination(), PORT).source();
                source.is_some_and(|source| seen.contains(&source))
            })
        };
        assert!(until(PATIENCE, as_seen), "{}", self.said("n1"));
    }

    /// The kernel is what it was before the agent was started.
    pub(crate) fn is_as_before(&self, name: &str) {
        let now = || difference(&self.before[name], &self.lab.node(name).dump().unwrap());
        assert!(until(PATIENCE, || now().is_empty()), "on {name} is left:\n{}", now());
    }

    /// Stops the agent and runs the clean-up. What that said.
    pub(crate) fn clean_up(&mut self, name: &str) -> String {
        self.kill(name);
        let mut command = Self::command(name);
        command.arg("--cleanup");
        let mut process = self.lab.node(name).spawn(&command).unwrap();
        let status = process.wait().unwrap();
        assert!(status.success(), "{}", process.said());
        self.is_as_before(name);
        process.said()
    }
}
