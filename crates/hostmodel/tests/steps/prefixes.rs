//! What holds after every single step.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_hostmodel::{Datapath, Key, Role, State, Step, Surroundings, diff, wanted};

use crate::model::{Kernel, Outcome};
use crate::policies::{INSIDE, OUTSIDE, PODS, ip, node, nothing, of_family};

fn sources() -> impl Iterator<Item = IpAddr> {
    PODS.into_iter().map(ip)
}

/// Where packets go in a state that is whole.
struct Whole {
    sent: BTreeMap<IpAddr, Outcome>,
    strays: BTreeMap<IpAddr, Outcome>,
    replies: BTreeMap<(IpAddr, Key), Option<String>>,
}

fn entries(states: &[&State]) -> BTreeSet<Key> {
    let tables = states.iter().filter_map(|state| state.table.as_ref());
    let sets = tables.flat_map(|table| &table.elements).filter(|(set, _)| set.role == Role::Reply);
    sets.flat_map(|(_, keys)| keys.keys().cloned()).collect()
}

fn entry_family(entry: &Key) -> bool {
    matches!(entry, Key::Entry(IpAddr::V6(_), ..))
}

/// The node port of the service that has the entry.
fn node_port(entry: &Key) -> u16 {
    if matches!(entry, Key::Entry(_, _, 80)) { 30080 } else { 30081 }
}

/// Who sends replies: pods; or ClusterIPs, where a second DNAT is elsewhere.
fn repliers(datapath: Datapath) -> Vec<IpAddr> {
    match datapath {
        Datapath::Direct => sources().collect(),
        Datapath::Ovn => ["10.96.0.10", "10.96.0.11", "169.254.169.3"].map(ip).into(),
    }
}

fn whole(kernel: &Kernel, datapath: Datapath, entries: &BTreeSet<Key>) -> Whole {
    let mut kernel = kernel.clone();
    let sent = sources().map(|source| (source, kernel.open(source, of_family(OUTSIDE, source)))).collect();
    let strays = sources().map(|source| (source, kernel.stray(source, of_family(OUTSIDE, source)))).collect();
    let pairs = repliers(datapath).into_iter().flat_map(|source| entries.iter().map(move |entry| (source, entry)));
    let pairs = pairs.filter(|(source, entry)| source.is_ipv6() == entry_family(entry));
    let replies = pairs.map(|(source, entry)| {
        let reply = kernel.reply(source, node_port(entry), entry, of_family(OUTSIDE, source));
        ((source, entry.clone()), reply)
    });
    Whole { sent, strays, replies: replies.collect() }
}

/// Applies the steps that lead to `to` and checks after each; stops after `most` of them, as an agent that is killed does.
/// `before` is the state in which the last whole pass ended.
pub(crate) fn walk(kernel: &mut Kernel, datapath: Datapath, before: &State, to: &State, most: usize) {
    let surroundings = node();
    let steps = diff(&kernel.state, to);
    let entries = entries(&[before, &kernel.state, to]);
    let at = |state: &State| {
        let mut kernel = Kernel::new(&surroundings, nothing(datapath).settings);
        kernel.put(state.clone());
        whole(&kernel, datapath, &entries)
    };
    let (old, new) = (at(before), at(to));
    let marks = |state: &State| state.table.as_ref().and_then(|table| Some(table.shape.as_ref()?.settings));
    let all: BTreeSet<u32> =
        [before, &kernel.state, to].into_iter().filter_map(marks).map(|settings| settings.mark_flag).collect();
    let same_marks = all.len() < 2;
    for (number, step) in steps.iter().take(most).enumerate() {
        kernel.apply(step);
        let place = || format!("after step {number}, {step}, of\n{}", list(&steps));
        for source in sources() {
            let outside = of_family(OUTSIDE, source);
            let outcomes = kernel.go_on(source, outside).into_iter().chain([kernel.open(source, outside)]);
            for outcome in outcomes {
                let fine = outcome == Outcome::Dropped || outcome == old.sent[&source] || outcome == new.sent[&source];
                assert!(
                    fine,
                    "{source} {outcome:?}, before {:?}, to be {:?} {}",
                    old.sent[&source],
                    new.sent[&source],
                    place()
                );
            }
            let stray = kernel.stray(source, outside);
            let fine = stray == Outcome::Dropped || [&old.strays[&source], &new.strays[&source]].contains(&&stray);
            assert!(fine, "{source} of no connection: {stray:?} {}", place());
            let inside = kernel.open(source, of_family(INSIDE, source));
            let untouched = matches!(&inside, Outcome::Leaves { link, .. } if link == "eth0");
            assert!(untouched, "{source} into the cluster: {inside:?} {}", place());
        }
        let now = whole(kernel, datapath, &entries);
        // While marks change, a reply may go by the default network for a moment; the page about the options says so.
        for (pair, reply) in now.replies.into_iter().filter(|_| same_marks) {
            // Where the source chooses, it does for all connections of the service: one of its ways, old or new.
            let known = old.replies.iter().chain(&new.replies);
            let mut known =
                known.filter(|(other, _)| **other == pair || datapath == Datapath::Ovn && other.0 == pair.0);
            let fine = reply.is_none() || known.any(|(_, known)| *known == reply);
            let (before, after) = (&old.replies[&pair], &new.replies[&pair]);
            assert!(fine, "reply of {pair:?} by {reply:?}, before {before:?}, to be {after:?} {}", place());
        }
        foreign(kernel, &place);
    }
    if most >= steps.len() {
        assert_eq!(&kernel.state, to, "{}", list(&steps));
        assert_eq!(diff(&kernel.state, to), []);
    }
}

/// A pod that nobody opted in goes as if there were nothing.
fn foreign(kernel: &mut Kernel, place: &dyn Fn() -> String) {
    for pod in ["10.244.1.99", "fd00:10:244:1::99"].map(ip) {
        let outcome = kernel.open(pod, of_family(OUTSIDE, pod));
        let untouched =
            matches!(&outcome, Outcome::Leaves { link, seen: crate::model::Seen::Masqueraded } if link == "eth0");
        assert!(untouched, "{outcome:?} {}", place());
    }
}

fn list(steps: &[Step]) -> String {
    steps.iter().enumerate().map(|(number, step)| format!("{number:3} {step}")).collect::<Vec<_>>().join("\n")
}

/// The state that `policy` wants on a node where `found` is.
pub(crate) fn state_of(policy: &egret_hostmodel::Policy, surroundings: &Surroundings, found: &State) -> State {
    wanted(policy, surroundings, found).state
}
