//! Expectations about one EgressIP.

use std::collections::BTreeSet;

use super::super::expect::{EgressIpExpect, MarkExpect, Pairs};
use super::super::tally::{Section, Tally};
use super::Scene;
use crate::world::Items;

pub(super) fn check(scene: &Scene<'_>, name: &str, expect: &EgressIpExpect, tally: &mut Tally) {
    let mut section = Section::new(tally, format!("egressips.{name}"));
    let nothing = Items::new();
    let statuses = scene.now.statuses();
    let items = statuses.get(name);
    if items.is_none() {
        section.fail("exists", "an object", "no such object");
    }
    let items = items.unwrap_or(&nothing);
    let before = scene.before.statuses().remove(name).unwrap_or_default();
    placement(&mut section, expect, items);
    history(&mut section, scene, name, expect, (&before, items));
    if let Some(wanted) = &expect.annotations {
        let found = scene.now.annotations(name).unwrap_or_default();
        let there = wanted.iter().all(|(key, value)| found.get(key) == Some(value));
        section.holds("annotations", there, wanted, &found);
    }
    if let Some(expect) = &expect.mark {
        let [before, now] = [scene.before, scene.now].map(|state| state.marks().remove(name));
        mark(&mut section, expect, before.as_ref(), now.as_ref());
    }
}

fn placement(section: &mut Section<'_>, expect: &EgressIpExpect, items: &Items) {
    if let Some(assignments) = &expect.assignments {
        let wanted = pairs(assignments);
        section.holds("assignments", wanted == *items, &wanted, items);
    }
    if let Some(includes) = &expect.includes {
        let wanted = pairs(includes);
        section.holds("includes", wanted.iter().all(|pair| items.contains(pair)), &wanted, items);
    }
    section.equal("count", expect.count.as_ref(), &items.len());
    if let Some(least) = expect.min_count {
        section.holds("min_count", items.len() >= least, &least, items);
    }
    if let Some(most) = expect.max_count {
        section.holds("max_count", items.len() <= most, &most, items);
    }
    let addresses: BTreeSet<&str> = items.iter().map(|(address, _)| address.as_str()).collect();
    section.same_set("ips_set", expect.ips_set.as_ref(), &addresses);
    section.subset("ips_subset_of", expect.ips_subset_of.as_ref(), &addresses);
    let nodes: BTreeSet<&str> = items.iter().map(|(_, node)| node.as_str()).collect();
    section.same_set("nodes_set", expect.nodes_set.as_ref(), &nodes);
    section.subset("nodes_subset_of", expect.nodes_subset_of.as_ref(), &nodes);
    if let Some(distinct) = expect.distinct_nodes {
        section.holds("distinct_nodes", distinct == (nodes.len() == items.len()), &distinct, items);
    }
}

fn history(
    section: &mut Section<'_>,
    scene: &Scene<'_>,
    name: &str,
    expect: &EgressIpExpect,
    (before, items): (&Items, &Items),
) {
    if let Some(unchanged) = expect.unchanged {
        section.holds("unchanged", unchanged == (before == items), before, items);
    }
    if let Some(kept) = expect.previous_kept {
        section.holds("previous_kept", kept == before.iter().all(|pair| items.contains(pair)), before, items);
    }
    if let Some(direct) = expect.direct {
        let seen = scene.pairs_of(name);
        let stray = |pair: &&(String, String)| !before.contains(pair) && !items.contains(pair);
        let strays: Vec<_> = seen.iter().filter(stray).collect();
        section.holds("direct", direct == strays.is_empty(), &(before, items), &seen);
    }
}

fn mark(section: &mut Section<'_>, expect: &MarkExpect, before: Option<&String>, now: Option<&String>) {
    let number = now.and_then(|mark| mark.parse::<u32>().ok());
    if let Some(present) = expect.present {
        section.holds("mark.present", present == now.is_some(), &present, &now);
    }
    if let Some(least) = expect.min {
        section.holds("mark.min", number.is_some_and(|mark| mark >= least), &least, &now);
    }
    if let Some(most) = expect.max {
        section.holds("mark.max", number.is_some_and(|mark| mark <= most), &most, &now);
    }
    if let Some(value) = expect.equals {
        section.holds("mark.equals", number == Some(value), &value, &now);
    }
    if let Some(value) = expect.not_equals {
        section.holds("mark.not_equals", number.is_some_and(|mark| mark != value), &value, &now);
    }
    if let Some(unchanged) = expect.unchanged {
        section.holds("mark.unchanged", unchanged == (now.is_some() && before == now), &before, &now);
    }
}

fn pairs(pairs: &Pairs) -> Items {
    pairs.iter().map(|(address, node)| (address.clone(), node.clone())).collect()
}
