//! Whether a world is what a step expects, and came there as it should.

mod cloud;
mod egress_ip;
mod invariants;
mod replay;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use egret_api::Kind;
use egret_core::NodeName;

use super::expect::{ClusterExpect, EgressServiceExpect, EventsExpect, Expect, NodeLabelsExpect, ProbesExpect};
use super::op::Op;
use super::tally::{Section, Tally};
use crate::world::{History, State, World};
use replay::Replay;

/// A settled world, how it was at the end of the step before, and what happened between.
pub(super) struct Scene<'a> {
    before: &'a State,
    now: &'a State,
    probed: &'a BTreeSet<NodeName>,
    history: &'a History,
    op: &'a Op,
    cloud: bool,
    replay: Replay,
}

impl<'a> Scene<'a> {
    pub(super) fn new(world: &'a World<'_>, before: &'a State, history: &'a History, op: &'a Op, cloud: bool) -> Self {
        let replay = Replay::of(before, history);
        Self { before, now: world.state(), probed: world.probed(), history, op, cloud, replay }
    }

    /// Checks every expectation of the step, and what must hold after every step.
    pub(super) fn check(&self, expect: &Expect, tally: &mut Tally) {
        for (name, expect) in &expect.egressips {
            egress_ip::check(self, name, expect, tally);
        }
        cloud::check(self, &expect.cloud_private_ip_configs, tally);
        self.cluster(&expect.cluster, tally);
        for (name, expect) in &expect.egressservices {
            self.egress_service(name, expect, tally);
        }
        for (node, expect) in &expect.node_labels {
            self.node_labels(node, expect, tally);
        }
        self.events(&expect.events, tally);
        self.probes(&expect.probes, tally);
        invariants::check(self, tally);
    }

    /// Every pair that an EgressIP's status had at some time of the step.
    fn pairs_of(&self, name: &str) -> BTreeSet<(String, String)> {
        self.replay.pairs.get(name).cloned().unwrap_or_default()
    }

    fn egress_service(&self, name: &str, expect: &EgressServiceExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, format!("egressservices.{name}"));
        let missing = String::from("no such object");
        let hosts = self.now.hosts();
        let host = hosts.get(name).unwrap_or(&missing);
        section.equal("host", expect.host.as_ref(), host);
        section.subset("host_one_of", expect.host_one_of.as_ref(), &[host.as_str()].into());
        let before = self.before.hosts().remove(name);
        if let Some(unchanged) = expect.unchanged {
            section.holds("unchanged", unchanged == (Some(host) == before.as_ref()), &before, host);
        }
    }

    fn node_labels(&self, node: &str, expect: &NodeLabelsExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, format!("node_labels.{node}"));
        let keys = self.now.label_keys(node).unwrap_or_default();
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
        let statuses = self.now.statuses();
        let items: Vec<&(String, String)> = statuses.values().flatten().collect();
        if let Some(spread) = expect.per_node_max_minus_min {
            let on = |node: &String| items.iter().filter(|(_, host)| host == node).count();
            let counts: BTreeMap<&String, usize> = expect.among.iter().flatten().map(|node| (node, on(node))).collect();
            let (most, least) = (counts.values().max().unwrap_or(&0), counts.values().min().unwrap_or(&0));
            section.holds("per_node_max_minus_min", most - least == spread, &spread, &counts);
        }
        section.equal("total_items", expect.total_items.as_ref(), &items.len());
        let addresses: BTreeSet<&str> = items.iter().map(|(address, _)| address.as_str()).collect();
        section.equal("no_duplicate_ips", expect.no_duplicate_ips.as_ref(), &(addresses.len() == items.len()));
        if let Some(distinct) = expect.marks_distinct {
            let marks = self.now.marks();
            let different: BTreeSet<&String> = marks.values().collect();
            section.holds("marks_distinct", distinct == (different.len() == marks.len()), &distinct, &marks);
        }
        if let Some(services) = &expect.egressservice_hosts_distinct {
            let all = self.now.hosts();
            let hosts: Vec<Option<&String>> = services.iter().map(|name| all.get(name)).collect();
            let distinct: BTreeSet<&String> = hosts.iter().flatten().copied().filter(|host| !host.is_empty()).collect();
            section.holds("egressservice_hosts_distinct", distinct.len() == services.len(), services, &hosts);
        }
    }

    fn events(&self, expect: &EventsExpect, tally: &mut Tally) {
        let mut section = Section::new(tally, "events");
        let lists = [("include", true, &expect.include), ("exclude", false, &expect.exclude)];
        for (key, wanted, events) in lists {
            for event in events {
                let about =
                    self.history.raised.iter().filter(|raised| raised.kind == event.kind && raised.name == event.name);
                let reasons: Vec<&str> = about.map(|raised| raised.reason.as_str()).collect();
                let found = event.kind == Kind::EgressIp.name() && reasons.contains(&event.reason.as_str());
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
        let probed = self.probed.iter().map(NodeName::as_str).collect();
        section.contains("probed", expect.probed.as_ref(), &probed);
        section.lacks("not_probed", expect.not_probed.as_ref(), &probed);
    }
}
