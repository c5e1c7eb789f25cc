//! The steps from what is there to what should be.
//!
//! What a source meets changes in one transaction, which also holds it: nothing that it sends leaves the cluster until its
//! new way is whole, so that after every single step a packet goes the old way, the new way, or nowhere. Routes and rules
//! come before, for nobody asks them yet, and go after, when nobody asks them any more. The order:
//!
//! 1. kernel parameters are set;
//! 2. sources that ask rules already, and would ask the new ones, are held; routes come, then rules: where to jump to
//!    first, then the end of each block, then the jump past it, then the lookups;
//! 3. sets and maps become what they should be, and changing sources are held, in one transaction;
//! 4. egress addresses that are not ours any more go, so that the next owner finds the wire silent; then new ones come;
//! 5. rules go, in the opposite order; the connections of the changed sources are forgotten; routes go;
//! 6. the holds go, or the whole table; addresses are announced; kernel parameters that are not needed any more go back.
//!
//! A table that is new first knows what is inside the cluster, and nobody. One that is not as we made it, or with other
//! marks, is replaced first by one that holds everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::nft::{Element, Elements, Key, Role, Shape, Table};
use crate::{Route, Rule, RuleAction, State, Step};

/// The steps that make `found` into `wanted`; none if they are equal.
#[must_use]
pub fn diff(found: &State, wanted: &State) -> Vec<Step> {
    let changed = changed_sources(found, wanted);
    let mut steps = Vec::new();
    let set = wanted.sysctls.iter().filter(|(path, value)| found.sysctls.get(*path) != Some(value));
    steps.extend(set.map(|(path, value)| Step::SetSysctl { path: path.clone(), value: value.clone() }));
    let mut table = relied_on(found, wanted, &changed, &mut steps);
    if let Some(table) = &mut table {
        let mut elements = table.elements.clone();
        merge(&mut elements, &held(&asking(found, wanted)));
        change(&table.elements, &elements, &mut steps);
        table.elements = elements;
    }
    steps.extend(wanted.routes.difference(&found.routes).map(|route| Step::AddRoute { route: route.clone() }));
    steps.extend(sorted(wanted.rules.difference(&found.rules)).map(|rule| Step::AddRule { rule: rule.clone() }));
    let whole = switch(table, wanted, &changed, &mut steps);
    let gone = found.addresses.difference(&wanted.addresses);
    steps.extend(gone.map(|address| Step::DropAddress { address: address.clone() }));
    let new: Vec<_> = wanted.addresses.difference(&found.addresses).cloned().collect();
    steps.extend(new.iter().map(|address| Step::TakeAddress { address: address.clone() }));
    steps.extend(
        sorted(found.rules.difference(&wanted.rules)).rev().map(|rule| Step::DeleteRule { rule: rule.clone() }),
    );
    steps.extend(changed.iter().map(|source| Step::ForgetConnections { source: *source }));
    steps.extend(gone_routes(found, wanted).map(|route| Step::DeleteRoute { route: route.clone() }));
    release(whole, wanted, &mut steps);
    steps.extend(new.into_iter().map(|address| Step::Announce { address }));
    let back = found.sysctls.keys().filter(|path| !wanted.sysctls.contains_key(*path));
    steps.extend(back.map(|path| Step::RestoreSysctl { path: path.clone() }));
    steps
}

/// Sources for which anything is different.
fn changed_sources(found: &State, wanted: &State) -> BTreeSet<IpAddr> {
    let (before, after) = (treatments(found), treatments(wanted));
    let keys: BTreeSet<&IpAddr> = before.keys().chain(after.keys()).collect();
    let settings = |state: &State| Some(state.table.as_ref()?.shape.as_ref()?.settings);
    // Other marks are another way for everybody.
    let all = found.table.is_some() && wanted.table.is_some() && settings(found) != settings(wanted);
    let changed = keys.into_iter().filter(|source| all || before.get(*source) != after.get(*source));
    // What is still held from a pass that did not come to its end is released by one that does.
    changed.copied().chain(holds(found)).collect()
}

fn holds(state: &State) -> impl Iterator<Item = IpAddr> + '_ {
    elements(state).filter(|(role, _, _)| *role == Role::Hold).filter_map(|(_, key, _)| source(key))
}

/// Everything that decides about a source's packets. Comments do not.
type Treatment<'a> = BTreeSet<Part<'a>>;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Element(Role, &'a Key, Option<&'a crate::Value>),
    Rule(&'a Rule),
}

fn treatments(state: &State) -> BTreeMap<IpAddr, Treatment<'_>> {
    let mut treatments: BTreeMap<IpAddr, Treatment<'_>> = BTreeMap::new();
    for (role, key, element) in elements(state) {
        // Replies are not held: they have the right source whichever way they go, and their map changes at once.
        if let Some(source) = source(key).filter(|_| !matches!(role, Role::Hold | Role::Reply)) {
            treatments.entry(source).or_default().insert(Part::Element(role, key, element.value.as_ref()));
        }
    }
    let mut by_rule: Vec<(IpAddr, &Rule)> = Vec::new();
    for rule in &state.rules {
        if let Some(from) = rule.from {
            by_rule.push((from.addr(), rule));
        }
    }
    for (source, rule) in by_rule {
        // A rule for a ClusterIP or a node port is about replies only.
        if let Some(treatment) = treatments.get_mut(&source) {
            treatment.insert(Part::Rule(rule));
        }
    }
    treatments
}

fn elements(state: &State) -> impl Iterator<Item = (Role, &Key, &Element)> {
    let sets = state.table.iter().flat_map(|table| &table.elements);
    sets.flat_map(|(set, elements)| elements.iter().map(|(key, element)| (set.role, key, element)))
}

fn source(key: &Key) -> Option<IpAddr> {
    match key {
        Key::Source(ip) | Key::Pair(ip, _) | Key::Exit(ip, _) => Some(*ip),
        Key::Prefix(_) | Key::Entry(..) => None,
    }
}

/// The table that is there, if what it says can be relied on. Else one that holds everybody, so that nobody asks the rules
/// that come next, in its place; where there is none, one that holds nobody.
fn relied_on(found: &State, wanted: &State, changed: &BTreeSet<IpAddr>, steps: &mut Vec<Step>) -> Option<Table> {
    let aim = wanted.table.as_ref().and_then(|table| Some((table.shape.as_ref()?, &table.elements)));
    let Some(present) = found.table.as_ref() else {
        // First what is inside the cluster, and nobody's business: in the moment in which a table comes it is not known yet.
        let (shape, mut elements) = aim.map(|(shape, elements)| (shape.clone(), elements.clone()))?;
        elements.retain(|set, _| set.role == Role::Cluster);
        return Some(replace(shape, elements, steps));
    };
    match (&present.shape, aim) {
        (Some(shape), aim) if aim.is_none_or(|(aim, _)| aim.settings == shape.settings) => Some(present.clone()),
        (_, None) => {
            steps.push(Step::DeleteTable);
            None
        }
        (_, Some((shape, elements))) => {
            let mut elements = elements.clone();
            elements.retain(|set, _| matches!(set.role, Role::Cluster | Role::Reply));
            // The rules of a reply's way come before it.
            let known = |set, key: &Key| present.elements.get(set).is_some_and(|keys| keys.contains_key(key));
            for (set, elements) in elements.iter_mut().filter(|(set, _)| set.role == Role::Reply) {
                elements.retain(|key, _| known(set, key));
            }
            merge(&mut elements, &held(changed));
            Some(replace(shape.clone(), elements, steps))
        }
    }
}

/// Makes sets and maps what they should be, and holds the changing sources.
fn switch(table: Option<Table>, wanted: &State, changed: &BTreeSet<IpAddr>, steps: &mut Vec<Step>) -> Option<Table> {
    let mut elements = wanted.table.as_ref().map(|table| table.elements.clone()).unwrap_or_default();
    merge(&mut elements, &held(changed));
    let shape = wanted.table.as_ref().and_then(|table| table.shape.as_ref());
    let table = table?;
    if wanted.table.is_none() {
        // The holds are about what goes to the outside, and only these prefixes say what that is.
        let prefixes = table.elements.iter().filter(|(set, _)| set.role == Role::Cluster);
        elements.extend(prefixes.map(|(set, prefixes)| (*set, prefixes.clone())));
    }
    let mut present = table.shape.clone()?;
    let paths = shape.map(|shape| shape.paths.clone()).unwrap_or_default();
    if paths.iter().any(|(number, name)| present.paths.get(number) != Some(name)) {
        present.paths.extend(paths);
        return Some(replace(present, elements, steps));
    }
    change(&table.elements, &elements, steps);
    Some(Table { elements, ..table })
}

/// Sources that ask rules already, and would ask the new ones, before the rest of their new way is there.
fn asking(found: &State, wanted: &State) -> BTreeSet<IpAddr> {
    let sets = |role| matches!(role, Role::ServiceSource | Role::AddressSource);
    let steered: BTreeSet<IpAddr> =
        elements(found).filter(|(role, ..)| sets(*role)).filter_map(|(_, key, _)| source(key)).collect();
    let new = wanted.rules.difference(&found.rules).filter_map(|rule| Some(rule.from?.addr()));
    new.filter(|source| steered.contains(source)).collect()
}

fn held(sources: &BTreeSet<IpAddr>) -> Elements {
    let mut holds = Elements::new();
    for source in sources {
        holds.entry(Role::Hold.of(*source)).or_default().insert(Key::Source(*source), Element::default());
    }
    holds
}

fn merge(elements: &mut Elements, more: &Elements) {
    for (set, more) in more {
        elements.entry(*set).or_default().extend(more.clone());
    }
}

fn replace(shape: Shape, elements: Elements, steps: &mut Vec<Step>) -> Table {
    let table = Table { shape: Some(shape), elements };
    steps.push(Step::ReplaceTable { table: table.clone() });
    table
}

/// The one transaction that makes `from` into `to`.
fn change(from: &Elements, to: &Elements, steps: &mut Vec<Step>) {
    let (remove, add) = (without(from, to), without(to, from));
    if !remove.is_empty() || !add.is_empty() {
        steps.push(Step::ChangeElements { remove, add });
    }
}

/// The elements of `these` that are not the same in `present`.
fn without(these: &Elements, present: &Elements) -> Elements {
    let mut left = Elements::new();
    for (set, elements) in these {
        let others = present.get(set);
        let differ = |key: &Key, element: &Element| others.and_then(|others| others.get(key)) != Some(element);
        let elements: BTreeMap<Key, Element> = elements
            .iter()
            .filter(|(key, element)| differ(key, element))
            .map(|(key, element)| (key.clone(), element.clone()))
            .collect();
        if !elements.is_empty() {
            left.insert(*set, elements);
        }
    }
    left
}

/// Lets the held sources out.
fn release(table: Option<Table>, wanted: &State, steps: &mut Vec<Step>) {
    match (&wanted.table, table) {
        (Some(wanted), Some(table)) if table.shape != wanted.shape => {
            replace(wanted.shape.clone().expect("what is wanted has a shape"), wanted.elements.clone(), steps);
        }
        (Some(wanted), Some(table)) => change(&table.elements, &wanted.elements, steps),
        (None, Some(_)) => steps.push(Step::DeleteTable),
        (_, None) => {}
    }
}

/// A route of the same table, destination and metric is replaced by the one that is added.
fn gone_routes<'a>(found: &'a State, wanted: &'a State) -> impl Iterator<Item = &'a Route> {
    let key = |route: &Route| (route.table, route.destination, route.metric);
    let kept: BTreeSet<_> = wanted.routes.iter().map(key).collect();
    found.routes.difference(&wanted.routes).filter(move |route| !kept.contains(&key(route)))
}

/// Rules in the order in which they come, which is safe after each: where jumps end, then what stops there, then the jumps
/// past the block, then what looks up.
fn sorted<'a>(rules: impl Iterator<Item = &'a Rule>) -> impl DoubleEndedIterator<Item = &'a Rule> {
    let mut rules: Vec<&Rule> = rules.collect();
    rules.sort_by_key(|rule| {
        let turn = match rule.action {
            RuleAction::Nop => 0,
            RuleAction::Unreachable => 1,
            RuleAction::Goto(_) => 2,
            RuleAction::Lookup(_) => 3,
        };
        (turn, *rule)
    });
    rules.into_iter()
}
