//! EgressIPs: which status and which mark an object should have, and the write that gets it there.

use std::collections::BTreeMap;
use std::time::Duration;

use egret_api::annotation::egress_ip_mark::{self, Mark};
use egret_api::{Kind, ObjectKey};
use egret_core::{Address, EgressIpName, NodeName, RecordedItem};
use egret_placement::{AddressReason, Availabilities, Availability, Outcome, Touched, lost};
use serde_json::{Value, json};

use crate::brain::{Brain, Pruned};
use crate::condition::Condition;
use crate::egress_ip::{Entry, Status};
use crate::meta::escaped;
use crate::tell::{self, Lack};
use crate::{Action, Now, Output, Write, WriteError};

/// A mark that is refused for good is tried this seldom.
const LONGEST_MARK_REST: Duration = Duration::from_mins(10);

/// What an object should become, as far as it may already.
struct Wanted {
    status: Status,
    lack: Lack,
    /// A change of it would be overtaken at once: what is missing is known within a probe's time.
    provisional: bool,
}

impl Brain {
    /// Brings the snapshot and the claims in line with what is known of an EgressIP.
    pub(crate) fn sync_egress_ip(&mut self, name: &EgressIpName) {
        let new = self.egress_ips.get(name).map(|entry| {
            let mut object = entry.object.clone();
            object.recorded = entry.recorded().to_vec();
            object
        });
        let claims = self.egress_ips.get(name).map(Entry::claims).unwrap_or_default();
        let freed = self.claims.set(name, claims);
        self.dirty_addresses.extend(freed);
        self.dirty.insert(name.clone());
        let old = self.snapshot.egress_ips.get(name);
        if old == new.as_ref() {
            return;
        }
        self.touched.push(Touched::EgressIp(name.clone()));
        self.targets_stale |= self.selectors.replace(old, new.as_ref());
        let requested = |object: Option<&egret_core::EgressIp>| object.map(|o| o.requested.clone()).unwrap_or_default();
        let (before, after) = (requested(old), requested(new.as_ref()));
        match new {
            Some(object) => drop(self.snapshot.egress_ips.insert(name.clone(), object)),
            None => drop(self.snapshot.egress_ips.remove(name)),
        }
        // Whether a request to the cloud is ours depends on whether its owner still asks for the address.
        for address in before.iter().filter(|address| !after.contains(address)) {
            if self.placed.get(address).is_some_and(|(owner, _)| owner == name)
                && let Some((_, node)) = self.placed.remove(address)
            {
                self.depart((*address, node));
            }
        }
        if before != after {
            before.into_iter().chain(after).for_each(|address| self.sync_request(address));
        }
    }

    pub(crate) fn write_egress_ips(&mut self, now: Now, output: &mut Output) {
        let dirty = std::mem::take(&mut self.dirty);
        let lacks = self.lacks(&dirty);
        for name in dirty {
            let Some(wanted) = self.wanted(&name, &lacks) else { continue };
            self.count_missing(&name, &wanted.lack);
            // What would be said is overtaken at once, too.
            if !wanted.provisional {
                self.tell_egress_ip(&name, &wanted.lack, output);
            }
            let key = ObjectKey::cluster(Kind::EgressIp, name.as_str());
            if !self.flights.free(&key, now.elapsed) {
                // Looked at again when the write, or the rest after one that failed, has ended.
                self.dirty.insert(name);
                continue;
            }
            if wanted.lack.blocked() {
                self.dirty.insert(name.clone());
            }
            let change = if wanted.provisional { None } else { self.change(&name, &wanted.status, now) };
            if let Some(action) = change {
                self.count_moves(&name, &wanted.status.items);
                if let Some(entry) = self.egress_ips.get_mut(&name) {
                    (entry.attempt, entry.overtaken) = (Some(wanted.status.items), false);
                }
                self.sync_egress_ip(&name);
                self.dirty.remove(&name);
                let id = self.flights.begin(&key);
                output.writes.push(Write { id, object: key, action });
            } else if let Some(action) = self.look(&name) {
                let id = self.flights.begin(&key);
                output.writes.push(Write { id, object: key, action });
            }
        }
        if let Some(pruned) = &mut self.pruned {
            pruned.trial = false;
        }
    }

    /// Changes nothing, and is answered with the object as it is: what became of a write whose outcome is unknown, where
    /// there is nothing else to write.
    fn look(&mut self, name: &EgressIpName) -> Option<Action> {
        let entry = self.egress_ips.get_mut(name).filter(|entry| entry.in_doubt())?;
        entry.doubt();
        entry.attempt = None;
        let operations = vec![entry.meta.test()];
        self.sync_egress_ip(name);
        Some(Action::Patch { subresource: None, operations })
    }

    /// What the nodes can do for each object that has an address without a node, and for each in whose favour one is
    /// refused to it.
    fn lacks(&self, names: &std::collections::BTreeSet<EgressIpName>) -> BTreeMap<EgressIpName, Availability> {
        let mut availabilities = Availabilities::new(&self.snapshot);
        let mut lacks = BTreeMap::new();
        for name in names {
            for (address, outcome) in self.outcomes(name) {
                let name = match outcome {
                    Outcome::Unplaced => name,
                    Outcome::Refused(AddressReason::HeldByAnother(other)) if self.is_unplaced(other, *address) => other,
                    _ => continue,
                };
                let object = self.snapshot.egress_ips.get(name).filter(|_| !lacks.contains_key(name));
                lacks.extend(object.and_then(|object| Some((name.clone(), availabilities.of(object)?))));
            }
        }
        lacks
    }

    fn outcomes(&self, name: &EgressIpName) -> &[(Address, Outcome)] {
        self.decision().and_then(|decision| decision.egress_ips.get(name)).map_or(&[], Vec::as_slice)
    }

    fn is_unplaced(&self, name: &EgressIpName, address: Address) -> bool {
        self.outcomes(name).contains(&(address, Outcome::Unplaced))
    }

    /// Whether the address is refused in favour of an object that has no node for it yet, and a node of that waits for its
    /// first probe: should that not answer, the address is free. A controller that has just begun to lead would say
    /// otherwise than the one before it for a moment.
    fn is_open(&self, address: Address, outcome: &Outcome, lacks: &BTreeMap<EgressIpName, Availability>) -> bool {
        let Outcome::Refused(AddressReason::HeldByAnother(other)) = outcome else { return false };
        self.is_unplaced(other, address) && lacks.get(other) == Some(&Availability::NotProbed)
    }

    fn wanted(&self, name: &EgressIpName, lacks: &BTreeMap<EgressIpName, Availability>) -> Option<Wanted> {
        let entry = self.egress_ips.get(name)?;
        let outcomes = self.decision()?.egress_ips.get(name)?;
        let mut items = Vec::new();
        let mut lack = Lack::default();
        for (address, outcome) in outcomes {
            match outcome.node() {
                Some(node) => match self.may_show(name, entry, *address, node) {
                    Ok(()) => items.push(RecordedItem { address: *address, node: node.clone() }),
                    Err(wait) => lack.wait(wait, *address),
                },
                None if self.is_open(*address, outcome, lacks) => lack.wait(tell::Wait::Claim, *address),
                None => lack.add(*address, outcome, lacks.get(name).copied(), &entry.object),
            }
        }
        lack.faults(&entry.object);
        lack.no_mark = !self.marks.holds(name) && self.marks.full();
        let condition = if lack.is_empty() {
            Condition::assigned(outcomes.len())
        } else {
            Condition::unassigned(&lack.reasons(), &lack.waits())
        };
        let told_true = entry.condition().is_some_and(|condition| condition.status);
        // The first status of a new object comes as a whole: all its nodes are probed for the first time just now.
        let as_it_was = entry.says(&items) || (!entry.has_status && lack.probing());
        let provisional = lack.passing() && as_it_was && !told_true;
        Some(Wanted { status: Status { items, condition }, lack, provisional })
    }

    /// Whether the status may say that `node` has `address`: no other status does, and on a cloud the cloud has said so.
    fn may_show(
        &self,
        name: &EgressIpName,
        entry: &Entry,
        address: Address,
        node: &NodeName,
    ) -> Result<(), tell::Wait> {
        let shown = entry.object.recorded.iter().any(|item| item.address == address && item.node == *node);
        if !shown && self.claims.by_another(address, name) {
            return Err(tell::Wait::Release);
        }
        let confirmed = || {
            let request = self.cloud.get(&address);
            request.is_some_and(|request| request.confirms(name, node))
                && !self.flights.flies(&crate::cloud::key(address))
        };
        if self.on_cloud() && !confirmed() { Err(tell::Wait::Cloud) } else { Ok(()) }
    }

    /// The patch that makes the object what it should be; `None` if it is.
    fn change(&mut self, name: &EgressIpName, status: &Status, now: Now) -> Option<Action> {
        let entry = self.egress_ips.get(name)?;
        let same_items = entry.says(&status.items) && entry.has_status;
        let same_condition = entry.condition().is_some_and(|condition| condition.says(&status.condition));
        let taken = self.pruned.is_none_or(|pruned| pruned.trial);
        let write_status = !same_items || (!same_condition && taken);
        let mark = self.mark_for(name, now.elapsed);
        let entry = self.egress_ips.get(name)?;
        let mut operations = vec![entry.meta.test()];
        if let Some(mark) = mark {
            operations.extend(mark_operations(entry, mark));
        }
        if write_status {
            let value = status.render(entry, now.wall);
            operations.push(
                json!({ "op": if entry.has_status { "replace" } else { "add" }, "path": "/status", "value": value }),
            );
            if let Some(pruned) = &mut self.pruned {
                pruned.trial &= same_condition;
            }
        }
        (operations.len() > 1).then_some(Action::Patch { subresource: None, operations })
    }

    /// The mark to give to an object that has none of its own.
    fn mark_for(&mut self, name: &EgressIpName, now: Duration) -> Option<Mark> {
        let denied = self.egress_ips.get(name)?.mark_denied.is_some_and(|(until, _)| until > now);
        if denied || self.marks.holds(name) { None } else { self.marks.next(name) }
    }

    pub(crate) fn egress_ip_written(
        &mut self,
        name: &EgressIpName,
        result: &Result<Option<Value>, WriteError>,
        now: Duration,
    ) {
        // After a transient failure the mark may be in the object already: it stays reserved for it.
        let carried_mark = match result {
            Err(WriteError::Transient { .. }) => false,
            _ => self.marks.settle(name),
        };
        if carried_mark && matches!(result, Err(WriteError::Denied { .. } | WriteError::Invalid { .. })) {
            self.mark_refused(name, now);
            self.flights.forgive(&ObjectKey::cluster(Kind::EgressIp, name.as_str()));
        }
        let Some(entry) = self.egress_ips.get_mut(name) else { return };
        match result {
            Ok(Some(object)) => {
                // Its guard held: no write before it has happened.
                entry.doubtful.clear();
                let wrote = entry.attempt.take().is_some();
                let kept =
                    object["status"]["conditions"].as_array().is_some_and(|list| list.iter().any(Condition::is_ours));
                if kept {
                    if self.pruned.take().is_some() {
                        self.dirty.extend(self.snapshot.egress_ips.keys().cloned());
                    }
                } else if wrote && object["status"].is_object() {
                    // What an old definition does not know it drops; written again it would be dropped again.
                    self.pruned = Some(Pruned { until: now + self.config.retrial, trial: false });
                }
                if object["metadata"]["annotations"][egress_ip_mark::KEY].is_string() {
                    entry.mark_denied = None;
                }
            }
            // It may have happened: until the object is seen again it counts as done.
            Err(WriteError::Transient { .. }) if !entry.overtaken => entry.doubt(),
            Ok(None) | Err(_) => entry.attempt = None,
        }
        self.sync_egress_ip(name);
    }

    /// A write that carried a mark was refused: perhaps by a policy that protects marks. The rest is written without it.
    fn mark_refused(&mut self, name: &EgressIpName, now: Duration) {
        let Some(entry) = self.egress_ips.get_mut(name) else { return };
        let times = entry.mark_denied.map_or(0, |(_, times)| times);
        let rest = self.config.retrial.saturating_mul(2_u32.saturating_pow(times)).min(LONGEST_MARK_REST);
        entry.mark_denied = Some((now + rest, times + 1));
        self.counters.marks_denied += 1;
    }

    /// Every address that leaves a node without being withdrawn by its owner is counted with the reason.
    fn count_moves(&mut self, name: &EgressIpName, items: &[RecordedItem]) {
        let Some(object) = self.egress_ips.get(name).map(|entry| &entry.object) else { return };
        let outcomes = self.decision().and_then(|decision| decision.egress_ips.get(name));
        let cause = |item: &RecordedItem| {
            if !object.requested.contains(&item.address) {
                return "Unrequested";
            }
            let Some(node) = self.snapshot.nodes.get(&item.node) else { return "NodeGone" };
            if let Err(reason) = lost(&self.snapshot.options, object, item.address, node) {
                return reason.name();
            }
            let outcome = outcomes.into_iter().flatten().find(|(address, _)| *address == item.address);
            match outcome {
                Some((_, Outcome::Refused(reason))) => reason.name(),
                _ if self.on_cloud() => "CloudChanged",
                _ => "Displaced",
            }
        };
        let left = object.recorded.iter().filter(|item| !items.contains(item));
        let causes: Vec<&'static str> = left.map(cause).collect();
        for cause in causes {
            *self.counters.moves.entry(cause).or_default() += 1;
            self.counters.rebalanced += u64::from(cause != "Unrequested");
        }
    }
}

/// Adds the mark and leaves every other annotation alone.
fn mark_operations(entry: &Entry, mark: Mark) -> Vec<Value> {
    let text = egress_ip_mark::encode(mark);
    let path = format!("/metadata/annotations/{}", escaped(egress_ip_mark::KEY));
    match (&entry.mark, entry.has_annotations) {
        (Some(old), _) => vec![
            json!({ "op": "test", "path": path, "value": old }),
            json!({ "op": "replace", "path": path, "value": text }),
        ],
        (None, true) => vec![json!({ "op": "add", "path": path, "value": text })],
        // There is no map yet; the guard on the version keeps this from replacing one that came in between.
        (None, false) => {
            vec![json!({ "op": "add", "path": "/metadata/annotations", "value": { egress_ip_mark::KEY: text } })]
        }
    }
}
