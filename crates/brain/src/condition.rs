//! The condition `Assigned`: whether an EgressIP is served in full, and if not why.

use egret_api::timestamp;
use egret_core::{EventReason, Timestamp};
use serde_json::{Value, json};

/// Its type.
const ASSIGNED: &str = "Assigned";

/// The condition `Assigned`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) status: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// As it is written in the object; absent in one that is not written yet.
    since: Option<String>,
}

impl Condition {
    /// Every address has a node.
    pub(crate) fn assigned(addresses: usize) -> Self {
        let message = match addresses {
            0 => "no address is requested".to_owned(),
            1 => "the address has a node".to_owned(),
            count => format!("all {count} addresses have a node"),
        };
        Self::new(true, "AllAssigned", message)
    }

    /// Not every address has one: the reasons, gravest first, each with its message, then what is only being waited for.
    pub(crate) fn unassigned(reasons: &[(EventReason, String)], waiting: &[(&'static str, String)]) -> Self {
        let reasons = reasons.iter().map(|(reason, message)| (reason.as_str(), message));
        let all: Vec<(&str, &String)> =
            reasons.chain(waiting.iter().map(|(reason, message)| (*reason, message))).collect();
        let message = match all.as_slice() {
            [(_, message)] => (*message).clone(),
            all => all.iter().map(|(reason, message)| format!("{reason}: {message}")).collect::<Vec<_>>().join("; "),
        };
        Self::new(false, all.first().map_or("Pending", |(reason, _)| reason), message)
    }

    fn new(status: bool, reason: &str, message: String) -> Self {
        Self { status, reason: reason.to_owned(), message, since: None }
    }

    pub(crate) fn is_ours(condition: &Value) -> bool {
        condition["type"] == ASSIGNED
    }

    /// The one among an object's conditions.
    pub(crate) fn find(conditions: &[Value]) -> Option<Self> {
        let found = conditions.iter().find(|condition| Self::is_ours(condition))?;
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        Some(Self {
            status: found["status"] == "True",
            reason: text("reason"),
            message: text("message"),
            since: found["lastTransitionTime"].as_str().map(str::to_owned),
        })
    }

    /// Whether both say the same, whenever they began to.
    pub(crate) fn says(&self, other: &Self) -> bool {
        (self.status, &self.reason, &self.message) == (other.status, &other.reason, &other.message)
    }

    /// As it is written; the time stays that of the `old` one unless the status has changed.
    pub(crate) fn render(&self, old: Option<&Self>, wall: Timestamp) -> Value {
        let since = old.filter(|old| old.status == self.status).and_then(|old| old.since.clone());
        json!({
            "type": ASSIGNED,
            "status": if self.status { "True" } else { "False" },
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": since.unwrap_or_else(|| timestamp::render(wall)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_changes_only_with_the_status() {
        let old = Condition::find(&[Condition::assigned(1).render(None, Timestamp(0))]).unwrap();
        let same = Condition::assigned(2).render(Some(&old), Timestamp(60));
        assert_eq!(same["lastTransitionTime"], "1970-01-01T00:00:00Z");
        let other = Condition::unassigned(&[(EventReason::NoMatchingNodeFound, "x".to_owned())], &[]);
        assert_eq!(other.render(Some(&old), Timestamp(60))["lastTransitionTime"], "1970-01-01T00:01:00Z");
    }

    #[test]
    fn the_gravest_reason_leads_and_every_message_is_there() {
        let reasons =
            [(EventReason::NoMatchingNodeFound, "a".to_owned()), (EventReason::EgressIpConflict, "b".to_owned())];
        let condition = Condition::unassigned(&reasons, &[("WaitingForCloud", "c".to_owned())]);
        assert_eq!(condition.reason, "NoMatchingNodeFound");
        assert_eq!(condition.message, "NoMatchingNodeFound: a; EgressIPConflict: b; WaitingForCloud: c");
        assert_eq!(Condition::unassigned(&reasons[..1], &[]).message, "a");
    }
}
