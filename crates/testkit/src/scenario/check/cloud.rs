//! Expectations about the CloudPrivateIPConfigs.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::cloud_private_ip_config::object_name;
use egret_core::Address;

use super::super::expect::{CloudExpect, Pairs};
use super::super::tally::{Section, Tally};
use super::Scene;
use crate::world::CloudConfig;

pub(super) fn check(scene: &Scene<'_>, expect: &CloudExpect, tally: &mut Tally) {
    let mut section = Section::new(tally, "cloud_private_ip_configs");
    let configs = scene.now.cloud_requests();
    let names: BTreeSet<&str> = configs.keys().map(String::as_str).collect();
    section.same_set("names_exact", expect.names_exact.as_ref(), &names);
    section.contains("names_include", expect.names_include.as_ref(), &names);
    section.lacks("absent", expect.absent.as_ref(), &names);
    section.equal("count", expect.count.as_ref(), &configs.len());
    values(&mut section, "nodes", expect.nodes.as_ref(), &configs, |config| &config.node);
    values(&mut section, "owner", expect.owner.as_ref(), &configs, |config| &config.owner);
    let nodes = configs.values().map(|config| config.node.as_str()).collect();
    section.subset("nodes_subset_of", expect.nodes_subset_of.as_ref(), &nodes);
    if let Some(matches) = expect.spec_node_matches_egressip_status {
        let statuses = scene.now.statuses();
        let items = statuses.values().flatten();
        let status: BTreeMap<String, &str> = items.map(|(address, node)| (name(address), node.as_str())).collect();
        let spec = configs.iter().map(|(name, config)| (name.clone(), config.node.as_str())).collect();
        section.holds("spec_node_matches_egressip_status", matches == (status == spec), &status, &spec);
    }
    if let Some(first) = expect.status_first {
        let early = &scene.replay.changed_while_in_status;
        section.holds("status_first", first == early.is_empty(), &first, early);
    }
}

fn values(
    section: &mut Section<'_>,
    key: &str,
    expected: Option<&Pairs>,
    configs: &BTreeMap<String, CloudConfig>,
    value: impl Fn(&CloudConfig) -> &String,
) {
    for (name, expected) in expected.into_iter().flatten() {
        let found = configs.get(name).map(&value);
        section.holds(&format!("{key}.{name}"), Some(expected) == found, expected, &found);
    }
}

fn name(address: &str) -> String {
    Address::parse(address).map_or_else(|_| address.to_owned(), object_name)
}
