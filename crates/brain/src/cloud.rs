//! CloudPrivateIPConfigs: what is stored, what is under way, what the cloud has refused.
//!
//! An address moves in three steps, and every step is taken only when the API shows that the one before is done, so that
//! a restart between any two continues: its item leaves the status; the request changes (or is made, or withdrawn); the
//! cloud confirms, and the item enters the status.

use std::collections::BTreeMap;
use std::time::Duration;

use egret_api::annotation::egress_ip_owner;
use egret_api::cloud_private_ip_config::object_name;
use egret_api::{Kind, ObjectKey};
use egret_core::{Address, CloudPrivateIpConfig, CloudState, EgressIpName, NodeName};
use serde_json::{Value, json};

use crate::Action;
use crate::config::CoolDown;
use crate::meta::{Meta, escaped};

/// How long a refusal is remembered after its rest, so that the next one rests longer.
const REMEMBERED: Duration = Duration::from_hours(1);

/// A request as it is stored, and what is under way.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    pub(crate) config: CloudPrivateIpConfig,
    /// The object has an owner annotation, readable or not.
    owned: bool,
    /// What the cloud's answer is told from others of the same words by.
    answer: String,
    /// Nobody knows whether the last write of it has happened: this may be what it was, not what it is.
    pub(crate) doubtful: bool,
}

impl Entry {
    pub(crate) fn read(value: &Value, config: CloudPrivateIpConfig) -> Self {
        let answer = format!("{} {}", value["status"]["node"], value["status"]["conditions"]);
        let owned = value["metadata"]["annotations"].get(egress_ip_owner::KEY).is_some();
        Self { meta: Meta::of(value), config, owned, answer, doubtful: false }
    }

    /// The cloud has the address on `node` for `owner`.
    pub(crate) fn confirms(&self, owner: &EgressIpName, node: &NodeName) -> bool {
        let confirmed = self.config.state == CloudState::Confirmed && !self.meta.terminating;
        self.is_for(owner, node) && confirmed && !self.doubtful
    }

    fn is_for(&self, owner: &EgressIpName, node: &NodeName) -> bool {
        self.config.owner.as_ref() == Some(owner) && self.config.node == *node
    }

    /// Whether it says a refusal that `old` did not say.
    pub(crate) fn refuses_anew(&self, old: Option<&Self>) -> bool {
        let same = |old: &Self| (&old.meta.uid, &old.answer) == (&self.meta.uid, &self.answer);
        self.config.state == CloudState::Refused && !old.is_some_and(same)
    }
}

/// The next step for one address.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// There is nothing to do, or nothing that may be done yet.
    None,
    /// The request is made, moved or withdrawn, or looked at.
    Write(Action),
}

/// What to do about the request for `address`.
///
/// `wanted` is who should have it and where; `shown` whether it is in any status; `resting` whether the refusal that the
/// request carries is still to be respected; `asked_for` whether its owner still asks for the address.
pub(crate) fn step(
    address: Address,
    entry: Option<&Entry>,
    wanted: Option<&(EgressIpName, NodeName)>,
    shown: bool,
    resting: bool,
    asked_for: bool,
) -> Step {
    if shown && !entry.zip(wanted).is_some_and(|(entry, (owner, node))| entry.is_for(owner, node)) {
        return Step::None;
    }
    match (entry, wanted) {
        (None, None) => Step::None,
        (None, Some((owner, node))) => Step::Write(Action::Create(request(address, owner, node))),
        // It is somebody else's, or its finalizers are not done.
        (Some(entry), _) if !entry.owned || entry.meta.terminating => Step::None,
        (Some(entry), Some((owner, node))) if entry.is_for(owner, node) => {
            // Only a new request makes the cloud try again what it has refused.
            let again = entry.config.state == CloudState::Refused && !resting;
            match (again, shown, entry.doubtful) {
                (true, false, _) => Step::Write(withdrawal(entry)),
                (false, _, true) => Step::Write(look(entry)),
                _ => Step::None,
            }
        }
        (Some(entry), Some((owner, node))) if entry.config.owner.as_ref() == Some(owner) => {
            Step::Write(retarget(entry, node))
        }
        // What was refused holds nothing; should the cloud come to grant it, it is adopted.
        (Some(entry), None) if entry.config.state == CloudState::Refused && resting && asked_for => Step::None,
        (Some(entry), _) => Step::Write(withdrawal(entry)),
    }
}

fn request(address: Address, owner: &EgressIpName, node: &NodeName) -> Value {
    json!({
        "apiVersion": Kind::CloudPrivateIpConfig.api_version(),
        "kind": Kind::CloudPrivateIpConfig.name(),
        "metadata": {
            "name": object_name(address),
            "annotations": { egress_ip_owner::KEY: egress_ip_owner::encode(owner) },
        },
        "spec": { "node": node.as_str() },
    })
}

fn retarget(entry: &Entry, node: &NodeName) -> Action {
    let owner = entry.config.owner.as_ref().map(EgressIpName::as_str);
    let owner_path = format!("/metadata/annotations/{}", escaped(egress_ip_owner::KEY));
    let operations = vec![
        entry.meta.test(),
        json!({ "op": "test", "path": owner_path, "value": owner }),
        json!({ "op": "replace", "path": "/spec/node", "value": node.as_str() }),
    ];
    Action::Patch { subresource: None, operations }
}

/// Changes nothing, and is answered with the request as it is: whether it is still what was seen last.
fn look(entry: &Entry) -> Action {
    Action::Patch { subresource: None, operations: vec![entry.meta.test()] }
}

fn withdrawal(entry: &Entry) -> Action {
    Action::Delete { uid: entry.meta.uid.clone(), resource_version: entry.meta.resource_version.clone() }
}

/// The key of an address's request.
pub(crate) fn key(address: Address) -> ObjectKey {
    ObjectKey::cluster(Kind::CloudPrivateIpConfig, &object_name(address))
}

/// What the cloud has refused, and until when it is not asked again.
#[derive(Debug)]
pub(crate) struct CoolDowns {
    config: CoolDown,
    pairs: BTreeMap<(Address, NodeName), Rest>,
    /// How often the cloud has refused anything.
    pub(crate) refusals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Duration,
    times: u32,
}

impl CoolDowns {
    pub(crate) fn new(config: CoolDown) -> Self {
        Self { config, pairs: BTreeMap::new(), refusals: 0 }
    }

    pub(crate) fn refused(&mut self, address: Address, node: &NodeName, now: Duration) {
        self.refusals += 1;
        let rest = self.pairs.entry((address, node.clone())).or_insert(Rest { until: now, times: 0 });
        let doubled = self.config.first.saturating_mul(2_u32.saturating_pow(rest.times));
        *rest = Rest { until: now + doubled.min(self.config.longest), times: rest.times.saturating_add(1) };
    }

    /// The cloud has granted the pair: what it refused before is forgotten.
    pub(crate) fn granted(&mut self, address: Address, node: &NodeName) {
        self.pairs.remove(&(address, node.clone()));
    }

    pub(crate) fn rests(&self, address: Address, node: &NodeName, now: Duration) -> bool {
        self.pairs.get(&(address, node.clone())).is_some_and(|rest| rest.until > now)
    }

    /// The pairs that rest, and until when.
    pub(crate) fn resting(&self, now: Duration) -> impl Iterator<Item = (&(Address, NodeName), Duration)> {
        self.pairs.iter().filter(move |(_, rest)| rest.until > now).map(|(pair, rest)| (pair, rest.until))
    }

    /// When the next rest ends.
    pub(crate) fn wake(&self, now: Duration) -> Option<Duration> {
        self.resting(now).map(|(_, until)| until).min()
    }

    /// Forgets refusals of long ago.
    pub(crate) fn forget_old(&mut self, now: Duration) {
        self.pairs.retain(|_, rest| rest.until + REMEMBERED > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address::parse("10.0.0.1").unwrap()
    }

    fn entry(owner: Option<&str>, node: &str, state: CloudState) -> Entry {
        let owner = owner.map(EgressIpName::from);
        Entry {
            meta: Meta { uid: "u".to_owned(), resource_version: "1".to_owned(), terminating: false },
            owned: owner.is_some(),
            config: CloudPrivateIpConfig { address: address(), owner, node: node.into(), state },
            answer: String::new(),
            doubtful: false,
        }
    }

    fn wanted(owner: &str, node: &str) -> (EgressIpName, NodeName) {
        (owner.into(), node.into())
    }

    fn is_create(step: &Step) -> bool {
        matches!(step, Step::Write(Action::Create(_)))
    }

    fn is_delete(step: &Step) -> bool {
        matches!(step, Step::Write(Action::Delete { .. }))
    }

    #[test]
    fn a_request_changes_only_while_its_address_is_in_no_status() {
        let (confirmed, n2) = (entry(Some("e"), "n1", CloudState::Confirmed), wanted("e", "n2"));
        assert_eq!(step(address(), Some(&confirmed), Some(&n2), true, false, true), Step::None);
        let moved = step(address(), Some(&confirmed), Some(&n2), false, false, true);
        let Step::Write(Action::Patch { operations, .. }) = moved else { panic!("{moved:?}") };
        assert_eq!(operations[0]["op"], "test");
        assert_eq!(step(address(), Some(&confirmed), None, true, false, false), Step::None);
        assert!(is_delete(&step(address(), Some(&confirmed), None, false, false, false)));
        assert_eq!(step(address(), None, Some(&n2), true, false, true), Step::None);
        assert!(is_create(&step(address(), None, Some(&n2), false, false, true)));
    }

    #[test]
    fn what_is_somebody_elses_or_going_is_left_alone() {
        let foreign = entry(None, "n1", CloudState::Confirmed);
        assert_eq!(step(address(), Some(&foreign), None, false, false, false), Step::None);
        let mut going = entry(Some("e"), "n1", CloudState::Confirmed);
        going.meta.terminating = true;
        assert_eq!(step(address(), Some(&going), None, false, false, false), Step::None);
        assert!(!going.confirms(&"e".into(), &"n1".into()));
    }

    #[test]
    fn what_was_refused_is_asked_for_anew_after_its_rest() {
        let (refused, n1) = (entry(Some("e"), "n1", CloudState::Refused), wanted("e", "n1"));
        assert_eq!(step(address(), Some(&refused), Some(&n1), false, true, true), Step::None);
        assert!(is_delete(&step(address(), Some(&refused), Some(&n1), false, false, true)));
        assert_eq!(step(address(), Some(&refused), None, false, true, true), Step::None);
        assert!(is_delete(&step(address(), Some(&refused), None, false, true, false)), "nobody asks for it any more");
    }

    #[test]
    fn what_may_have_been_changed_confirms_nothing_and_is_looked_at() {
        let (mut confirmed, n1) = (entry(Some("e"), "n1", CloudState::Confirmed), wanted("e", "n1"));
        assert!(confirmed.confirms(&n1.0, &n1.1));
        assert_eq!(step(address(), Some(&confirmed), Some(&n1), false, false, true), Step::None);
        confirmed.doubtful = true;
        assert!(!confirmed.confirms(&n1.0, &n1.1));
        let looked_at = step(address(), Some(&confirmed), Some(&n1), true, false, true);
        let Step::Write(Action::Patch { operations, .. }) = looked_at else { panic!("{looked_at:?}") };
        assert!(operations.iter().all(|operation| operation["op"] == "test"), "{operations:?}");
        let n2 = wanted("e", "n2");
        assert_eq!(step(address(), Some(&confirmed), Some(&n2), true, false, true), Step::None, "it is shown");
    }

    #[test]
    fn a_refusal_that_a_status_shows_all_the_same_is_not_withdrawn_before_it_is_not_shown() {
        let (refused, n1) = (entry(Some("e"), "n1", CloudState::Refused), wanted("e", "n1"));
        assert_eq!(step(address(), Some(&refused), Some(&n1), true, false, true), Step::None);
    }

    #[test]
    fn rests_double_up_to_ten_minutes_and_end_with_a_grant() {
        let (mut rests, node) = (CoolDowns::new(CoolDown::default()), NodeName::from("n1"));
        let mut now = Duration::ZERO;
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            rests.refused(address(), &node, now);
            assert!(rests.rests(address(), &node, now + Duration::from_secs(seconds - 1)), "{seconds}");
            now += Duration::from_secs(seconds);
            assert!(!rests.rests(address(), &node, now), "{seconds}");
        }
        rests.granted(address(), &node);
        rests.refused(address(), &node, now);
        assert_eq!(rests.wake(now), Some(now + Duration::from_secs(30)));
    }
}
