//! Everything changes at once, for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use egret_netlab::{Alone, Family, Flow, FlowKind, Lab, Network, PORT, Packet, Profile, Wire, test_name, until};
use serde_json::Value;

use crate::healing::Dice;
use crate::objects::{Exit, other, web};
use crate::world::{PATIENCE, World, two};

const PODS: usize = 200;
const RATE: u32 = 50;
/// Many packets of a pod, also on a busy machine.
const LONG: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(20);

/// 200 pods of two services with different networks send 50 packets a second each, while endpoints come and go, a service
/// changes its network, another one its node, and the agent is killed and started again. From the moment the agent has listed a pod's address
/// until the pod's endpoint is taken away, no packet of it has another source or another way; nor has one of a pod that
/// is listed no more, or never was.
#[test]
fn no_packet_has_a_wrong_source_while_everything_changes() {
    Alone::new(test_name!()).run(|| {
        let mut world = two(Lab::builder().nodes(1).blue(&[1]).profile(Profile::Restricted));
        let names: Vec<String> = (0..PODS).map(|number| format!("p{number}")).collect();
        let pods: Vec<(&str, &str)> = names.iter().map(|name| ("n1", name.as_str())).collect();
        world.lab.add_pods(&pods).unwrap();
        let (first, second) = (web(&[]), Exit { network: None, ..other(&[]) });
        world.expose(&first, "n1");
        world.expose(&second, "n1");
        world.start("n1");
        let wires = [Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap());
        let flows: Vec<Flow> = names.iter().enumerate().map(|(number, name)| flow(&world, number, name)).collect();
        let mut churn = Churn::new(names, [first, second]);
        let start = Instant::now();
        while start.elapsed() < TIME {
            churn.change(&mut world, &wires);
        }
        let asked: u64 = flows.iter().map(|flow| flow.report().asked).sum();
        drop(flows);
        churn.tell(asked, start.elapsed());
        assert_eq!((wires[0].lost(), wires[1].lost()), (0, 0), "the wires were not seen all the time");
        assert!(churn.wrong.is_empty(), "{:#?}\n{}", churn.wrong, world.said("n1"));
        assert!(churn.waits.len() > 5 && churn.checked > 500 && asked > 20_000, "{} checks", churn.checked);
        world.clean_up("n1");
        Ok(())
    });
}

/// One family each.
fn flow(world: &World, number: usize, name: &str) -> Flow {
    let family = Family::BOTH[number % 2];
    world.lab.pod(name).flow(FlowKind::Udp, family.destination(), PORT, RATE)
}

/// The service that a pod belongs to, if any, and its way.
type Belongs = (Option<usize>, Way);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the default network.
    Default,
    /// By the second one.
    Second,
    /// Another node has the service, and nothing leads there.
    Nowhere,
}

struct Churn {
    dice: Dice,
    names: Vec<String>,
    services: [Exit; 2],
    /// By pod: the service that it is an endpoint of.
    owners: BTreeMap<usize, usize>,
    /// By pod: what it must do, and since when.
    since: BTreeMap<usize, (Belongs, Instant)>,
    /// From the moment at which objects were written until the agent listed their sources.
    waits: Vec<Duration>,
    checked: usize,
    wrong: Vec<String>,
}

impl Churn {
    fn new(names: Vec<String>, services: [Exit; 2]) -> Self {
        Self {
            dice: Dice(20_261_129),
            names,
            services,
            owners: BTreeMap::new(),
            since: BTreeMap::new(),
            waits: Vec::new(),
            checked: 0,
            wrong: Vec::new(),
        }
    }

    fn change(&mut self, world: &mut World, wires: &[Wire; 2]) {
        self.draw();
        let kill = self.dice.throw(4);
        if kill == 0 {
            world.kill("n1");
        }
        let written = Instant::now();
        world.put_all(&self.services);
        if kill == 1 {
            // In the middle of it.
            sleep(Duration::from_millis(self.dice.throw(200) as u64));
            world.kill("n1");
        }
        if kill < 2 {
            world.start("n1");
        }
        self.listed(world);
        self.waits.push(written.elapsed());
        let from = passed(world, wires);
        let way = |service: &Exit| match service.network {
            _ if service.host != "n1" => Way::Nowhere,
            Some(_) => Way::Second,
            None => Way::Default,
        };
        let belongs = |pod: usize| match self.owners.get(&pod) {
            Some(service) => (Some(*service), way(&self.services[*service])),
            None => (None, Way::Default),
        };
        let now: BTreeMap<usize, Belongs> = (0..PODS).map(|pod| (pod, belongs(pod))).collect();
        self.since.retain(|pod, (belongs, _)| now.get(pod) == Some(belongs));
        for (pod, belongs) in now {
            self.since.entry(pod).or_insert((belongs, from));
        }
        // Packets are sent meanwhile.
        sleep(Duration::from_millis(100 + self.dice.throw(300) as u64));
        self.check(world, wires);
    }

    /// Pods come to a service or leave it; sometimes a service gets another network, or moves to another node and back.
    fn draw(&mut self) {
        for _ in 0..20 {
            let pod = self.dice.throw(PODS);
            match self.dice.throw(3) {
                2 => drop(self.owners.remove(&pod)),
                service => drop(self.owners.insert(pod, service)),
            }
        }
        // One that is new or gone: by that the agent's list of this turn is told from that of the one before.
        if self.owners.remove(&0).is_none() {
            self.owners.insert(0, 0);
        }
        if self.dice.throw(3) == 0 {
            let network = &mut self.services[1].network;
            *network = if network.is_some() { None } else { Some("1234") };
        }
        if self.dice.throw(3) == 0 {
            let host = &mut self.services[0].host;
            *host = if *host == "n1" { "n2" } else { "n1" };
        }
        for (number, service) in self.services.iter_mut().enumerate() {
            let own = self.owners.iter().filter(|(_, owner)| **owner == number);
            service.pods = own.map(|(pod, _)| self.names[*pod].clone()).collect();
        }
    }

    /// Waits until the agent lists the endpoints and nothing else.
    fn listed(&self, world: &World) {
        let pods = self.owners.keys().map(|pod| world.lab.pod(&self.names[*pod]));
        let wanted: BTreeSet<String> =
            pods.flat_map(|pod| pod.addresses().iter().map(ToString::to_string).collect::<Vec<_>>()).collect();
        world.shows("n1", |view| {
            let sources = view["sources"].as_array().into_iter().flatten().filter_map(Value::as_str);
            view["settled"] == true && sources.map(str::to_owned).collect::<BTreeSet<_>>() == wanted
        });
    }

    fn check(&mut self, world: &World, wires: &[Wire; 2]) {
        let by_name: BTreeMap<&str, usize> =
            self.names.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        let mut heard: BTreeSet<usize> = BTreeSet::new();
        for (here, wire) in [(Way::Default, &wires[0]), (Way::Second, &wires[1])] {
            for seen in wire.seen() {
                let packet = &seen.packet;
                let pod =
                    packet.client.as_deref().and_then(|client| by_name.get(client)).filter(|_| packet.from == "n1");
                let Some(((service, way), since)) = pod.and_then(|pod| self.since.get(pod)) else { continue };
                self.checked += 1;
                let own = || packet.source == world.lab.node_address("n1", Network::Red, Family::of(packet.source));
                let with = service.map_or_else(own, |service| self.services[service].external.contains(&packet.source));
                let right = here == *way && with;
                match (seen.last >= *since, right) {
                    (false, _) => {}
                    (true, true) => heard.extend(pod),
                    (true, false) => self.wrong.push(format!("{seen:?} after {:?}", seen.last - *since)),
                }
            }
        }
        // Nothing wrong is easy where nothing gets out.
        for (pod, ((_, way), since)) in &self.since {
            if *way != Way::Nowhere && since.elapsed() > LONG && !heard.contains(pod) {
                self.wrong.push(format!("p{pod} has not got out for {:?}", since.elapsed()));
            }
        }
        assert!(self.wrong.is_empty(), "{:#?}\n{}", self.wrong, world.said("n1"));
    }

    fn tell(&self, asked: u64, time: Duration) {
        let mut waits = self.waits.clone();
        waits.sort();
        let (median, last) = (waits[waits.len() / 2], waits[(waits.len() * 99).div_ceil(100) - 1]);
        println!(
            "{asked} packets of {PODS} pods in {time:?}, {} changes, {} checks; from written to listed: median {median:?}, \
             99 % {last:?}",
            waits.len(),
            self.checked,
        );
    }
}

/// Waits until both wires have been read up to now, and says when that was: what is read later was sent later.
fn passed(world: &World, [red, blue]: &[Wire; 2]) -> Instant {
    let start = Instant::now();
    for (wire, network, name) in [(red, Network::Red, "ext"), (blue, Network::Blue, "blue")] {
        let to = world.lab.node_address("n1", network, Family::V4);
        let marked = |packet: &Packet| packet.from == name && packet.client.as_deref() == Some(name);
        let came = || {
            let _ = world.lab.outside(network).udp(to, PORT);
            !wire.wrong_since(start, |packet| !marked(packet)).is_empty()
        };
        assert!(until(PATIENCE, came), "nothing is seen on the wire of {name}");
    }
    Instant::now()
}
