//! What is said about objects that are not served in full: on the object as events, in its condition, in numbers.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::{Kind, ObjectKey};
use egret_core::{Address, EgressIp, EgressIpName, EventReason, NodeName, NodeSelector};
use egret_placement::{AddressReason, Availability, Outcome};

use crate::brain::Brain;
use crate::{Event, Output};

const NO_MARK: &str = "all packet marks are taken, so pods in primary user-defined networks are not served";
/// Enough to see that it is one event and not many.
const MOST_NODES_TOLD: usize = 20;

/// What an address waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wait {
    /// Another object's status still has the address.
    Release,
    /// A matching node's first probe.
    Probe,
    /// The first probe of a node that matches the selector of another object, which has the better claim.
    Claim,
    /// The silence of every matching node is in doubt.
    Doubt,
    /// The cloud's confirmation.
    Cloud,
}

impl Wait {
    fn reason(self) -> &'static str {
        match self {
            Self::Release => "WaitingForRelease",
            Self::Probe | Self::Claim => "WaitingForProbe",
            Self::Doubt => "NodesInDoubt",
            Self::Cloud => "WaitingForCloud",
        }
    }

    fn message(self, addresses: &str) -> String {
        match self {
            Self::Release => format!("another EgressIP is still letting go of {addresses}"),
            Self::Probe => format!("no matching node has answered its first probe yet: {addresses}"),
            Self::Claim => format!("no node that could take {addresses} has answered its first probe yet"),
            Self::Doubt => format!("matching nodes are silent, but so are most others at once: {addresses}"),
            Self::Cloud => format!("the cloud has not confirmed {addresses} yet"),
        }
    }
}

/// Why an EgressIP is not served in full.
#[derive(Debug, Default)]
pub(crate) struct Lack {
    /// By reason, what it is about: addresses, or a sentence about one.
    reasons: BTreeMap<EventReason, Vec<String>>,
    waits: BTreeMap<Wait, Vec<Address>>,
    selector: String,
    missing: BTreeMap<&'static str, usize>,
    /// It has no mark, and none is free.
    pub(crate) no_mark: bool,
}

impl Lack {
    pub(crate) fn wait(&mut self, wait: Wait, address: Address) {
        self.waits.entry(wait).or_default().push(address);
        *self.missing.entry(wait.reason()).or_default() += 1;
    }

    pub(crate) fn add(
        &mut self,
        address: Address,
        outcome: &Outcome,
        availability: Option<Availability>,
        object: &EgressIp,
    ) {
        match (outcome, availability) {
            (Outcome::Kept(_) | Outcome::Placed(_), _) => {}
            (Outcome::Refused(reason), _) => self.reason(reason.event(), refused(address, reason)),
            (Outcome::Unplaced, Some(Availability::NotProbed)) => self.wait(Wait::Probe, address),
            (Outcome::Unplaced, Some(Availability::InDoubt)) => self.wait(Wait::Doubt, address),
            (Outcome::Unplaced, availability) => {
                if let Some(reason) = availability.and_then(Availability::reason) {
                    self.selector = object.selector.to_string();
                    self.reason(reason, address.to_string());
                } else {
                    self.count(EventReason::InvalidEgressNodeSelector);
                }
            }
        }
    }

    fn reason(&mut self, reason: EventReason, about: String) {
        self.reasons.entry(reason).or_default().push(about);
        self.count(reason);
    }

    fn count(&mut self, reason: EventReason) {
        *self.missing.entry(reason.as_str()).or_default() += 1;
    }

    /// What is wrong with the object itself.
    pub(crate) fn faults(&mut self, object: &EgressIp) {
        for entry in &object.invalid {
            self.reason(EventReason::InvalidEgressIp, format!("{:?}: {}", entry.text, entry.fault));
        }
        if let NodeSelector::Faulty(faults) = &object.selector {
            let faults = faults.iter().map(ToString::to_string).collect();
            self.reasons.insert(EventReason::InvalidEgressNodeSelector, faults);
        }
    }

    /// Every address has its node.
    pub(crate) fn is_empty(&self) -> bool {
        self.reasons.is_empty() && self.waits.is_empty()
    }

    /// A first probe is under way.
    pub(crate) fn probing(&self) -> bool {
        self.waits.contains_key(&Wait::Probe) || self.waits.contains_key(&Wait::Claim)
    }

    /// What is missing will be known, or done, within a moment.
    pub(crate) fn passing(&self) -> bool {
        self.probing() || self.blocked()
    }

    /// It waits for something that no input about the object itself announces.
    pub(crate) fn blocked(&self) -> bool {
        self.waits.contains_key(&Wait::Release) || self.waits.contains_key(&Wait::Claim)
    }

    /// The reasons, gravest first, each with its message.
    pub(crate) fn reasons(&self) -> Vec<(EventReason, String)> {
        self.reasons.iter().map(|(reason, about)| (*reason, self.message(*reason, &about.join(", ")))).collect()
    }

    pub(crate) fn waits(&self) -> Vec<(&'static str, String)> {
        let list = |addresses: &[Address]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        self.waits.iter().map(|(wait, addresses)| (wait.reason(), wait.message(&list(addresses)))).collect()
    }

    fn message(&self, reason: EventReason, about: &str) -> String {
        let selector = &self.selector;
        match reason {
            EventReason::InvalidEgressNodeSelector => {
                format!("egressNodeSelector does not compile, so nothing new is placed: {about}")
            }
            EventReason::NoMatchingNodeFound => format!("no node matches egressNodeSelector {selector}: {about}"),
            EventReason::MatchingNodesUnavailable => {
                format!("nodes match egressNodeSelector {selector}, but none is ready and reachable: {about}")
            }
            EventReason::UnassignedRequest => {
                format!("no available node that matches egressNodeSelector {selector} can take {about}")
            }
            EventReason::EgressIpConflict
            | EventReason::UnsupportedRequest
            | EventReason::InvalidEgressIp
            | EventReason::MarkPoolExhausted => about.to_owned(),
        }
    }
}

fn refused(address: Address, reason: &AddressReason) -> String {
    match reason {
        AddressReason::ConflictsWithHost(node) => format!("{address} is a host address of node {node}"),
        AddressReason::HeldByAnother(other) => format!("egressip/{other} has the better claim to {address}"),
        AddressReason::HeldInCloud => {
            format!("the CloudPrivateIPConfig of {address} belongs to nobody we know and is left alone")
        }
    }
}

impl Brain {
    /// Remembers how many addresses lack what.
    pub(crate) fn count_missing(&mut self, name: &EgressIpName, lack: &Lack) {
        if let Some(entry) = self.egress_ips.get_mut(name) {
            entry.missing.clone_from(&lack.missing);
        }
    }

    /// Raises an event for every reason that was not there before.
    pub(crate) fn tell_egress_ip(&mut self, name: &EgressIpName, lack: &Lack, output: &mut Output) {
        let Some(entry) = self.egress_ips.get_mut(name) else { return };
        let mut reasons: BTreeSet<(EventReason, String)> = lack.reasons().into_iter().collect();
        if lack.no_mark {
            reasons.insert((EventReason::MarkPoolExhausted, NO_MARK.to_owned()));
        }
        let key = ObjectKey::cluster(Kind::EgressIp, name.as_str());
        let event = |reason, message: &String| Event {
            object: key.clone(),
            uid: entry.meta.uid.clone(),
            reason,
            message: message.clone(),
        };
        // Whoever led before has told what the condition says.
        let condition = entry.condition().filter(|condition| !condition.status);
        let told_before = |message: &String| {
            entry.told.is_none() && condition.as_ref().is_some_and(|condition| condition.message.contains(message))
        };
        let new = reasons.iter().filter(|reason| !entry.told.as_ref().is_some_and(|told| told.contains(reason)));
        output.events.extend(
            new.filter(|(_, message)| !told_before(message)).map(|(reason, message)| event(reason.as_str(), message)),
        );
        if entry.faults != entry.told_faults && !entry.faults.is_empty() {
            output.events.push(event("InvalidObject", &entry.faults));
        }
        entry.told_faults.clone_from(&entry.faults);
        entry.told = Some(reasons);
    }

    /// Events about nodes: annotations that cannot be read, and silence that is in doubt.
    pub(crate) fn tell_nodes(&mut self, output: &mut Output) {
        let dirty = std::mem::take(&mut self.dirty_nodes);
        let silence = self.reach.silence().cloned();
        let mut in_doubt = 0;
        for name in dirty {
            let held = silence.as_ref().filter(|silence| silence.nodes.contains(&name));
            let doubt = held.map(|silence| {
                in_doubt += 1;
                format!(
                    "{} of {} probed nodes fell silent at once (mass silence {}): nothing moves until that is confirmed",
                    silence.nodes.len(),
                    silence.targets,
                    silence.number
                )
            });
            self.tell_node(&name, doubt.filter(|_| in_doubt <= MOST_NODES_TOLD), output);
        }
    }

    fn tell_node(&mut self, name: &NodeName, doubt: Option<String>, output: &mut Output) {
        let Some(entry) = self.nodes.get_mut(name) else { return };
        let faults = Some(entry.faults.clone()).filter(|faults| !faults.is_empty());
        let all = [("InvalidNodeAnnotation", faults), ("MassSilence", doubt)];
        for (reason, message) in all {
            match message {
                Some(message) if entry.told.get(reason) != Some(&message) => {
                    entry.told.insert(reason, message.clone());
                    let object = ObjectKey::cluster(Kind::Node, name.as_str());
                    output.events.push(Event { object, uid: entry.meta.uid.clone(), reason, message });
                }
                Some(_) => {}
                None => drop(entry.told.remove(reason)),
            }
        }
    }
}
