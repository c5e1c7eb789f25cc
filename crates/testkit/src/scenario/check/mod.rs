//! Whether a world is what a step expects.

mod cloud;
mod egress_ip;
mod invariants;

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{EgressIpName, NodeName};

use super::expect::{ClusterExpect, EgressServiceExpect, EventsExpect, Expect, NodeLabelsExpect, ProbesExpect};
use super::tally::{Section, Tally, Wait};
use crate::world::{Items, World};

/// What a later step compares with.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    statuses: BTreeMap<String, Items>,
    hosts: BTreeMap<String, String>,
}

impl Memory {
    pub(super) fn of(world: &World) -> Self {
        Self { statuses: world.statuses(), hosts: world.hosts() }
    }
}

/// A settled world, and how it was at the end of the step before.
pub(super) struct Scene<'a> {
    world: &'a World,
    before: &'a Memory,
    now: Memory,
    /// The cloud's answers are part of the scenario, so what a decision alone makes of a status is not what is expected.
    cloud_waits: bool,
}

impl<'a> Scene<'a> {
    pub(super) fn new(world: &'a World, before: &'a Memory, cloud_waits: bool) -> Self {
        Self { world, before, now: Memory::of(world), cloud_waits }
    }

    /// Checks every expectation of the step, and what must hold after every step.
    pub(super) fn check(&self, expect: &Expect, tally: &mut Tally) {
        tally.set_waiting(self.cloud_waits.then_some(Wait::CloudConfirmation));
        for (name, expect) in &expect.egressips {
            egress_ip::check(self, name, expect, tally);
        }
        cloud::check(self, &expect.cloud_private_ip_configs, tally);
        self.cluster(&expect.cluster, tally);
        tally.set_waiting(None);
        for (name, expect) in &expect.egressservices {
            self.egress_service(name, expect, tally);
        }
        for (node, expect) in &expect.node_labels {
            self.node_labels(node, expect, tally);
        }
        self.events(&expect.events, tally);
        self.probes(&expect.probes, tally);
        if !self.cloud_waits {
            invariants::check(&self.now.statuses, tally);
        }
    }

    /// How many expectations these are.
    pub(super) fn count(expect: &Expect) -> usize {
        let world = World::new(&super::Settings::default()).expect("a world without settings");
        let mut tally = Tally::default();
        Scene::new(&world, &Memory::default(), false).check(expect, &mut tally);
        tally.checked + tally.skipped.values().sum::<usize>()
    }

    fn egress_service(&self, name: &str, expect: &EgressServiceExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, format!("egressservices.{name}"));
        let missing = String::from("no such object");
        let host = self.now.hosts.get(name).unwrap_or(&missing);
        section.equal("host", expect.host.as_ref(), host);
        section.subset("host_one_of", expect.host_one_of.as_ref(), &[host.as_str()].into());
        let before = self.before.hosts.get(name);
        if let Some(unchanged) = expect.unchanged {
            section.holds("unchanged", unchanged == (Some(host) == before), &before, host);
        }
    }

    fn node_labels(&self, node: &str, expect: &NodeLabelsExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, format!("node_labels.{node}"));
        let keys = self.world.label_keys(node).unwrap_or_default();
        let keys: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
        section.contains("present", expect.present.as_ref(), &keys);
        section.lacks("absent", expect.absent.as_ref(), &keys);
        for (prefix, count) in expect.prefixed.iter().flatten() {
            let found = keys.iter().filter(|key| key.starts_with(prefix.as_str())).count();
            section.holds(&format!("prefixed[{prefix:?}]"), *count == found, count, &found);
        }
    }

    fn cluster(&self, expect: &ClusterExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, "cluster");
        let items: Vec<&(String, String)> = self.now.statuses.values().flatten().collect();
        if let Some(spread) = expect.per_node_max_minus_min {
            let on = |node: &String| items.iter().filter(|(_, host)| host == node).count();
            let counts: BTreeMap<&String, usize> = expect.among.iter().flatten().map(|node| (node, on(node))).collect();
            let (most, least) = (counts.values().max().unwrap_or(&0), counts.values().min().unwrap_or(&0));
            section.holds("per_node_max_minus_min", most - least == spread, &spread, &counts);
        }
        section.equal("total_items", expect.total_items.as_ref(), &items.len());
        let addresses: BTreeSet<&str> = items.iter().map(|(address, _)| address.as_str()).collect();
        section.equal("no_duplicate_ips", expect.no_duplicate_ips.as_ref(), &(addresses.len() == items.len()));
        section.skip(Wait::Marks, usize::from(expect.marks_distinct.is_some()));
        if let Some(services) = &expect.egressservice_hosts_distinct {
            let hosts: Vec<Option<&String>> = services.iter().map(|name| self.now.hosts.get(name)).collect();
            let distinct: BTreeSet<&String> = hosts.iter().flatten().copied().filter(|host| !host.is_empty()).collect();
            section.holds("egressservice_hosts_distinct", distinct.len() == services.len(), services, &hosts);
        }
    }

    fn events(&self, expect: &EventsExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, "events");
        let lists = [("include", true, &expect.include), ("exclude", false, &expect.exclude)];
        for (key, wanted, events) in lists {
            for event in events {
                let reasons = self.world.journal().reasons.get(&EgressIpName::from(event.name.as_str()));
                let reasons: Vec<&str> = reasons.into_iter().flatten().map(|reason| reason.as_str()).collect();
                let found = event.kind == "EgressIP" && reasons.contains(&event.reason.as_str());
                section.holds(
                    &format!("{key}[{} {}]", event.kind, event.name),
                    found == wanted,
                    &event.reason,
                    &reasons,
                );
            }
        }
    }

    fn probes(&self, expect: &ProbesExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, "probes");
        let targets = self.world.probe_targets();
        let targets = targets.iter().map(NodeName::as_str).collect();
        section.contains("probed", expect.probed.as_ref(), &targets);
        section.lacks("not_probed", expect.not_probed.as_ref(), &targets);
    }
}
