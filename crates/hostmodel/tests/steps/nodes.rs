//! Several nodes on one wire: who has an egress address, and who sends with it, whatever is told to whom when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use egret_core::{Host, NodeName};
use egret_hostmodel::{AddressExit, Datapath, Finding, Owner, Policy, ServiceExit, Step, diff, wanted};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::model::{Kernel, Outcome, Seen};
use crate::policies::{OUTSIDE, PODS, any_service, ip, node, nothing, of_family};

const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// On two of the networks, in both families, and on none.
const ADDRESSES: [&str; 4] = ["192.168.60.50", "192.168.70.50", "fd00:60::50", "203.0.113.9"];
/// More than it ever takes until nothing changes any more.
const ROUNDS: usize = 500;

/// What the cluster says at one moment.
#[derive(Clone, Debug)]
struct Facts {
    services: Vec<ServiceExit>,
    addresses: Vec<AddressExit>,
}

/// What happens next, to the node of that number.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The cluster says something new; nobody has heard of it yet.
    News,
    /// The agent hears the newest, and begins a pass.
    Pass(usize),
    /// It does its next step.
    Step(usize),
    /// It is killed; what it did stays. It knows nothing but the newest when it is back.
    Killed(usize),
    /// It asks again for addresses that somebody else had.
    AskAgain(usize),
}

/// A node and its agent.
struct Node {
    name: NodeName,
    kernel: Kernel,
    /// What the cluster said last of what the agent heard, and when a pass last came to its end.
    known: usize,
    settled: usize,
    todo: VecDeque<Step>,
    /// It asks the wire for the address of its next step; whether somebody claimed it meanwhile.
    asking: Option<bool>,
    contested: BTreeSet<IpAddr>,
}

struct Wire {
    datapath: Datapath,
    history: Vec<Facts>,
    now: usize,
    nodes: Vec<Node>,
    /// Somebody else's machine that has this address.
    stranger: Option<IpAddr>,
}

impl Wire {
    fn new(datapath: Datapath, history: Vec<Facts>, stranger: Option<IpAddr>) -> Self {
        let new = |name: &str| Node {
            name: name.into(),
            kernel: Kernel::new(&node(), nothing(datapath).settings),
            known: 0,
            settled: 0,
            todo: VecDeque::new(),
            asking: None,
            contested: BTreeSet::new(),
        };
        Self { datapath, history, now: 0, nodes: NODES.map(new).into(), stranger }
    }

    /// What the agent of a node makes of what it knows, as the agent's own translation does.
    fn policy(&self, of: &Node) -> Policy {
        let facts = &self.history[of.known];
        let reach = |address: &AddressExit| {
            let all = self.datapath == Datapath::Ovn && address.node == of.name;
            let pods = address.pods.iter().filter(|(pod, _)| all || home(**pod) == of.name.as_str());
            AddressExit { pods: pods.map(|(pod, name)| (*pod, name.clone())).collect(), ..address.clone() }
        };
        Policy {
            node: of.name.clone(),
            services: facts.services.clone(),
            addresses: facts.addresses.iter().map(reach).collect(),
            contested: of.contested.clone(),
            ..nothing(self.datapath)
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::News => self.now = (self.now + 1).min(self.history.len() - 1),
            Event::Pass(number) => self.pass(number),
            Event::Step(number) => self.step(number),
            Event::Killed(number) => {
                let node = &mut self.nodes[number];
                (node.todo, node.asking, node.contested) = (VecDeque::new(), None, BTreeSet::new());
            }
            Event::AskAgain(number) => {
                if self.nodes[number].todo.is_empty() {
                    self.nodes[number].contested.clear();
                    self.pass(number);
                }
            }
        }
    }

    fn pass(&mut self, number: usize) {
        let now = self.now;
        let of = &mut self.nodes[number];
        // A pass that has begun comes to its end, or is killed.
        if of.todo.is_empty() {
            of.known = now;
            self.begin(number);
        }
    }

    fn begin(&mut self, number: usize) {
        let of = &self.nodes[number];
        let aim = wanted(&self.policy(of), &node(), &of.kernel.state).state;
        let todo = diff(&of.kernel.state, &aim).into();
        let of = &mut self.nodes[number];
        of.todo = todo;
        if of.todo.is_empty() {
            of.settled = of.known;
        }
    }

    fn step(&mut self, number: usize) {
        let Some(step) = self.nodes[number].todo.front().cloned() else { return };
        match (&step, self.nodes[number].asking) {
            (Step::TakeAddress { address }, None) => {
                let heard = self.claimed(address.ip, number);
                self.nodes[number].asking = Some(heard);
                return;
            }
            (Step::TakeAddress { address }, Some(true)) => {
                let of = &mut self.nodes[number];
                of.contested.insert(address.ip);
                of.asking = None;
                return self.begin(number);
            }
            _ => {}
        }
        let of = &mut self.nodes[number];
        of.asking = None;
        of.kernel.apply(&step);
        of.todo.pop_front();
        if of.todo.is_empty() {
            of.settled = of.known;
        }
    }

    /// Whether somebody has an address, or asks for it too and hears now that it is not the only one.
    fn claimed(&mut self, ip: IpAddr, asker: usize) -> bool {
        let mut claimed = self.stranger == Some(ip);
        for (_, other) in self.nodes.iter_mut().enumerate().filter(|(number, _)| *number != asker) {
            claimed |= holds(other, ip);
            if let (Some(heard), Some(Step::TakeAddress { address })) = (&mut other.asking, other.todo.front())
                && address.ip == ip
            {
                (*heard, claimed) = (true, true);
            }
        }
        claimed
    }

    /// What must hold at every moment.
    fn check(&mut self) {
        for address in ADDRESSES.map(ip) {
            let holders: Vec<&NodeName> =
                self.nodes.iter().filter(|of| holds(of, address)).map(|of| &of.name).collect();
            assert!(holders.len() <= 1, "I1: {address} is on {holders:?}");
            assert!(self.stranger != Some(address) || holders.is_empty(), "I1: {address} is a stranger's");
        }
        for of in &mut self.nodes {
            let told = &self.history[of.settled..=of.known];
            let services = told.iter().flat_map(|facts| &facts.services);
            let own: BTreeSet<IpAddr> = services
                .filter(|service| service.host == Host::Node(of.name.clone()))
                .flat_map(|service| service.load_balancer.iter().copied())
                .collect();
            for pod in PODS.map(ip) {
                let outside = of_family(OUTSIDE, pod);
                let outcomes = of.kernel.go_on(pod, outside).into_iter().chain([of.kernel.open(pod, outside)]);
                for outcome in outcomes.collect::<Vec<_>>() {
                    let Outcome::Leaves { seen: Seen::As(with), .. } = outcome else { continue };
                    assert!(holds(of, with) || own.contains(&with), "I2: {pod} leaves {} with {with}", of.name);
                }
            }
        }
    }

    /// Everybody hears everything, and nothing new happens.
    fn rest(&mut self) {
        self.now = self.history.len() - 1;
        let stranger = self.stranger;
        let waits = |of: &Node| of.contested.iter().any(|ip| stranger != Some(*ip));
        for _ in 0..ROUNDS {
            for number in 0..self.nodes.len() {
                if waits(&self.nodes[number]) {
                    self.happens(Event::AskAgain(number));
                }
                self.happens(Event::Pass(number));
                self.happens(Event::Step(number));
                self.check();
            }
            if self.nodes.iter().all(|of| of.todo.is_empty() && of.settled == self.now && !waits(of)) {
                return self.confirmed();
            }
        }
        panic!("it never comes to rest");
    }

    /// I3: every address is on its node, or that says why not.
    fn confirmed(&self) {
        for address in &self.history[self.now].addresses {
            let of = self.nodes.iter().find(|of| of.name == address.node).unwrap();
            let reports = wanted(&self.policy(of), &node(), &of.kernel.state).reports;
            let about = reports.iter().filter(|report| report.about == Owner::Address(address.name.clone()));
            let reason = about.clone().any(|report| {
                matches!(report.finding, Finding::NoLink { ip } | Finding::Contested { ip } if ip == address.ip)
            });
            let (there, strange) = (holds(of, address.ip), self.stranger == Some(address.ip));
            assert!(there != reason, "I3: {} on {}: {:?}", address.ip, of.name, about.collect::<Vec<_>>());
            assert_eq!(there, !strange && address.ip != ip(ADDRESSES[3]), "I3: {}", address.ip);
        }
        let wanted: BTreeMap<_, _> =
            self.history[self.now].addresses.iter().map(|exit| (exit.ip, &exit.node)).collect();
        for of in &self.nodes {
            for held in &of.kernel.state.addresses {
                assert_eq!(wanted.get(&held.ip), Some(&&of.name), "{} is nobody's", held.ip);
            }
        }
    }
}

fn holds(of: &Node, address: IpAddr) -> bool {
    of.kernel.state.addresses.iter().any(|held| held.ip == address)
}

/// The node on which a pod is.
fn home(pod: IpAddr) -> &'static str {
    let text = pod.to_string();
    if text.contains("244.1.") || text.contains("244:1:") { "n1" } else { "n2" }
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let holder = || (proptest::option::weighted(0.8, select(&NODES[..])), subsequence(PODS.to_vec(), 0..=PODS.len()));
    let service = proptest::option::weighted(0.5, any_service("a"));
    (service, [holder(), holder(), holder(), holder()]).prop_map(|(service, holders)| {
        let addresses = ADDRESSES.into_iter().zip(holders).filter_map(|(address, (node, pods))| {
            Some(AddressExit {
                name: format!("eip-{address}").as_str().into(),
                created: egret_core::Timestamp(0),
                ip: ip(address),
                node: node?.into(),
                pods: pods.into_iter().map(|pod| (ip(pod), format!("ns/{pod}"))).collect(),
            })
        });
        Facts { services: service.into_iter().collect(), addresses: addresses.collect() }
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    let node = || 0..NODES.len();
    prop_oneof![
        1 => Just(Event::News),
        4 => node().prop_map(Event::Pass),
        20 => node().prop_map(Event::Step),
        1 => node().prop_map(Event::Killed),
        2 => node().prop_map(Event::AskAgain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_address_is_on_one_node_at_most_and_in_the_end_on_its_own(
        datapath in select(vec![Datapath::Direct, Datapath::Ovn]),
        history in proptest::collection::vec(any_facts(), 2..5),
        events in proptest::collection::vec(any_event(), 0..250),
        stranger in proptest::option::weighted(0.2, select(ADDRESSES[..3].to_vec()).prop_map(ip)),
    ) {
        let mut wire = Wire::new(datapath, history, stranger);
        for event in events {
            wire.happens(event);
            wire.check();
        }
        wire.rest();
    }
}
