//! Writes under way, and how long an object rests after one that failed.

use std::collections::BTreeMap;
use std::time::Duration;

use egret_api::ObjectKey;
use egret_placement::hash::{pair, stable};

use crate::{WriteError, WriteId};

/// Writes under way: never more than one for an object.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    last: u64,
    flying: BTreeMap<ObjectKey, WriteId>,
    objects: BTreeMap<WriteId, ObjectKey>,
    /// The `uid` of an object that went while a write of it was under way: its answer comes from before that.
    gone: BTreeMap<ObjectKey, String>,
    resting: BTreeMap<ObjectKey, Rest>,
}

/// What an object waits for after a failure.
#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Duration,
    failures: u32,
    /// A change of the object may cure it.
    curable: bool,
}

impl Flights {
    /// Whether a write of the object may begin now.
    pub(crate) fn free(&self, object: &ObjectKey, now: Duration) -> bool {
        !self.flies(object) && self.resting.get(object).is_none_or(|rest| rest.until <= now)
    }

    /// Whether a write of the object is under way.
    pub(crate) fn flies(&self, object: &ObjectKey) -> bool {
        self.flying.contains_key(object)
    }

    pub(crate) fn begin(&mut self, object: &ObjectKey) -> WriteId {
        self.last += 1;
        let id = WriteId(self.last);
        self.flying.insert(object.clone(), id);
        self.objects.insert(id, object.clone());
        id
    }

    /// The object whose write ended; `None` for a write that was forgotten.
    pub(crate) fn end(&mut self, id: WriteId) -> Option<ObjectKey> {
        let object = self.objects.remove(&id)?;
        self.flying.remove(&object);
        Some(object)
    }

    /// The `uid` of the object that went while this write of it was under way.
    pub(crate) fn went(&mut self, object: &ObjectKey) -> Option<String> {
        self.gone.remove(object)
    }

    pub(crate) fn succeeded(&mut self, object: &ObjectKey) {
        self.resting.remove(object);
    }

    pub(crate) fn failed(&mut self, object: &ObjectKey, error: &WriteError, now: Duration) {
        let failures = self.resting.get(object).map_or(0, |rest| rest.failures) + 1;
        let curable = matches!(error, WriteError::Invalid { .. } | WriteError::Denied { .. });
        let pause = spread(pause(error, failures), object, failures);
        self.resting.insert(object.clone(), Rest { until: now + pause, failures, curable });
    }

    /// The object is another now: what was wrong with it may not be any more.
    pub(crate) fn changed(&mut self, object: &ObjectKey) {
        if self.resting.get(object).is_some_and(|rest| rest.curable) {
            self.resting.remove(object);
        }
    }

    /// There is no such object any more; `uid` was its.
    pub(crate) fn gone(&mut self, object: &ObjectKey, uid: Option<String>) {
        self.resting.remove(object);
        if let Some(uid) = uid.filter(|_| self.flies(object)) {
            self.gone.insert(object.clone(), uid);
        }
    }

    /// What was wrong is no reason to wait any more.
    pub(crate) fn forgive(&mut self, object: &ObjectKey) {
        self.resting.remove(object);
    }

    /// When the next rest ends.
    pub(crate) fn wake(&self, now: Duration) -> Option<Duration> {
        self.resting.values().map(|rest| rest.until).filter(|until| *until > now).min()
    }

    /// How many writes are under way.
    pub(crate) fn len(&self) -> usize {
        self.flying.len()
    }

    /// Forgets everything. The objects whose writes nobody knows the outcome of.
    pub(crate) fn clear(&mut self) -> Vec<ObjectKey> {
        self.objects.clear();
        self.gone.clear();
        self.resting.clear();
        std::mem::take(&mut self.flying).into_keys().collect()
    }
}

/// How long after the n-th failure in a row. A first conflict is no failure: the object was only read anew.
fn pause(error: &WriteError, failures: u32) -> Duration {
    let doubled = |first: Duration, longest: Duration| {
        first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(longest)
    };
    match error {
        WriteError::Conflict { current: Some(_) } if failures == 1 => Duration::ZERO,
        WriteError::Conflict { .. } | WriteError::Gone => doubled(Duration::from_millis(50), Duration::from_secs(2)),
        WriteError::Transient { retry_after, .. } => {
            doubled(Duration::from_millis(100), Duration::from_secs(5)).max(retry_after.unwrap_or_default())
        }
        WriteError::Denied { .. } | WriteError::Invalid { .. } => {
            doubled(Duration::from_secs(1), Duration::from_mins(5))
        }
    }
}

/// Up to half as long again: objects that were refused together, by a server that has too much to do, do not come back
/// together. It follows from the object and the attempt, so that the same inputs give the same outputs.
fn spread(pause: Duration, object: &ObjectKey, failures: u32) -> Duration {
    let hash = pair(stable(object.to_string().as_bytes()), failures.into());
    // 32 bits are exact in an f64.
    let share = f64::from(u32::try_from(hash >> 32).unwrap_or_default()) / f64::from(u32::MAX);
    pause + pause.mul_f64(share / 2.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use egret_api::Kind;

    use super::*;

    fn transient(retry_after: Option<Duration>) -> WriteError {
        WriteError::Transient { message: String::new(), retry_after }
    }

    #[test]
    fn one_write_at_a_time_and_a_rest_after_a_failure() {
        let (mut flights, object) = (Flights::default(), ObjectKey::cluster(Kind::EgressIp, "a"));
        let id = flights.begin(&object);
        assert!(!flights.free(&object, Duration::ZERO));
        assert_eq!(flights.end(id), Some(object.clone()));
        flights.failed(&object, &transient(None), Duration::ZERO);
        assert!(!flights.free(&object, Duration::from_millis(99)));
        let rest = flights.wake(Duration::ZERO).unwrap();
        assert!((Duration::from_millis(100)..=Duration::from_millis(150)).contains(&rest), "{rest:?}");
        assert!(flights.free(&object, rest));
        assert_eq!(flights.end(id), None, "an answer counts once");
    }

    #[test]
    fn rests_grow_up_to_a_bound_and_the_server_may_ask_for_more() {
        assert_eq!(pause(&transient(None), 3), Duration::from_millis(400));
        assert_eq!(pause(&transient(None), 90), Duration::from_secs(5));
        assert_eq!(pause(&transient(Some(Duration::from_secs(9))), 1), Duration::from_secs(9));
        assert_eq!(pause(&WriteError::Conflict { current: Some(serde_json::Value::Null) }, 1), Duration::ZERO);
    }

    /// 120 objects were refused with 429 and all tried again in the same millisecond, each time.
    #[test]
    fn objects_that_were_refused_together_do_not_come_back_together() {
        let rests = || {
            let mut flights = Flights::default();
            let objects: Vec<_> = (0..120).map(|i| ObjectKey::cluster(Kind::EgressIp, &format!("e{i}"))).collect();
            let times = [1, 2].map(|second| {
                let now = Duration::from_secs(second * 100);
                let error = transient(Some(Duration::from_secs(9)));
                for object in &objects {
                    flights.failed(object, &error, now);
                }
                objects.iter().map(|object| flights.resting[object].until.saturating_sub(now)).collect::<Vec<_>>()
            });
            assert_ne!(times[0], times[1], "nor in the same order each time");
            times
        };
        for times in rests() {
            let asked = Duration::from_secs(9);
            assert!(times.iter().all(|time| (asked..=asked * 3 / 2).contains(time)), "no sooner than it was asked for");
            let different: BTreeSet<u128> = times.iter().map(Duration::as_millis).collect();
            assert!(different.len() > 110, "{}", different.len());
        }
        assert_eq!(rests(), rests(), "the brain knows no chance");
    }

    #[test]
    fn a_change_of_the_object_ends_the_rest_after_a_refusal_but_not_after_an_overload() {
        let (mut flights, object) = (Flights::default(), ObjectKey::cluster(Kind::EgressIp, "a"));
        for (error, free) in [(WriteError::Invalid { message: String::new() }, true), (transient(None), false)] {
            flights.failed(&object, &error, Duration::ZERO);
            flights.changed(&object);
            assert_eq!(flights.free(&object, Duration::ZERO), free, "{error:?}");
            flights.forgive(&object);
        }
    }
}
