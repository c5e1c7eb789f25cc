//! The election on the real API server.

use std::future::Future;
use std::time::Duration;

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{ACCEPT_MASS_SILENCE, Election, Observed, Record, Right, Standing, Step, Terms};

/// Why a request of the election failed. It is tried again; what an operator needs to know is that it happens.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The API server said no, or could not be reached.
    #[error("failed to reach the lease {namespace}/{name}")]
    Request {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// There was no answer in time.
    #[error("no answer about the lease {namespace}/{name} for {waited:?}")]
    Timeout {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// How long.
        waited: Duration,
    },
}

/// One instance that wants to lead.
pub struct Candidate {
    api: Api<DynamicObject>,
    resource: ApiResource,
    namespace: String,
    name: String,
    terms: Terms,
    election: Election,
    /// The Lease as last stored: what others have put into it outlives our renewals.
    object: Option<DynamicObject>,
    /// When it was first taken by us, as it is to be written.
    acquired: String,
    standing: watch::Sender<Standing>,
    started: Instant,
    failing: bool,
}

impl Candidate {
    /// Somebody who has not tried yet, and where to see how it stands. The identity must differ at every start.
    #[must_use]
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: String,
        terms: Terms,
    ) -> (Self, watch::Receiver<Standing>) {
        let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
        let resource = ApiResource::from_gvk_with_plural(&kind, "leases");
        let (standing, published) = watch::channel(Standing::default());
        let candidate = Self {
            api: Api::namespaced_with(client, namespace, &resource),
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            terms,
            election: Election::new(identity, terms),
            object: None,
            acquired: String::new(),
            standing,
            started: Instant::now(),
            failing: false,
        };
        (candidate, published)
    }

    /// Tries to lead, and to go on leading, until it is told to stop. The right still stands then: [`Candidate::release`]
    /// ends it.
    pub async fn run(&mut self, stop: &CancellationToken) {
        let mut jitter = egret_daemon::Jitter::new();
        loop {
            let began = Instant::now();
            self.election.attempt();
            // An attempt that has begun ends, or nobody would know which version of the Lease to give up.
            self.attempt().await;
            // A holder renews on the beat; those who wait must not all come at once.
            let leads = self.election.right(self.elapsed()).is_some();
            let pause = if leads { self.terms.retry } else { jitter.stretch(self.terms.retry, 1.2) };
            if stop.run_until_cancelled(tokio::time::sleep_until(began + pause)).await.is_none() {
                return;
            }
        }
    }

    /// Gives the Lease up, so that another can have it at once. No write may be under way any more.
    ///
    /// # Errors
    /// If that could not be written: then the others wait until it runs out.
    pub async fn release(mut self) -> Result<(), LeaseError> {
        let resigned = self.election.resign();
        self.publish();
        let (Some((version, transitions)), Some(object)) = (resigned, self.object.clone()) else { return Ok(()) };
        let record = Record::released(transitions, micro_time());
        let object = with_record(object, &record, &record.renewed, Some(version));
        let (api, name) = (self.api.clone(), self.name.clone());
        self.in_time(async move { api.replace(&name, &PostParams::default(), &object).await }).await.map(drop)
    }

    async fn attempt(&mut self) {
        loop {
            match self.election.next(self.elapsed()) {
                Step::Rest => return,
                Step::Read => self.read().await,
                Step::Write { over, transitions, acquires } => self.write(over, transitions, acquires).await,
            }
            self.publish();
        }
    }

    async fn read(&mut self) {
        let (api, name) = (self.api.clone(), self.name.clone());
        match self.in_time(async move { api.get_opt(&name).await }).await {
            Ok(object) => {
                self.object = object;
                let observed = self.object.as_ref().map(|object| observed(object, self.terms.duration));
                self.election.read(observed, self.elapsed());
                self.worked();
            }
            Err(error) => self.failed(&error),
        }
    }

    async fn write(&mut self, over: Option<String>, transitions: u64, acquires: bool) {
        let renewed = micro_time();
        if acquires || self.acquired.is_empty() {
            self.acquired.clone_from(&renewed);
        }
        let record =
            Record { holder: self.election.identity().to_owned(), duration: self.terms.duration, transitions, renewed };
        let creates = over.is_none();
        let object = self.object.clone().unwrap_or_else(|| DynamicObject::new(&self.name, &self.resource));
        let object = with_record(object, &record, &self.acquired, over);
        let (api, name) = (self.api.clone(), self.name.clone());
        let began = self.elapsed();
        let written = self.in_time(async move {
            let parameters = PostParams::default();
            if creates {
                api.create(&parameters, &object).await
            } else {
                api.replace(&name, &parameters, &object).await
            }
        });
        match written.await {
            Ok(object) => {
                self.election.wrote(observed(&object, self.terms.duration), began, self.elapsed());
                self.object = Some(object);
                self.worked();
                if acquires {
                    tracing::info!(lease = self.name, "this instance leads");
                }
            }
            Err(LeaseError::Request { source, .. }) if is_outdated(&source) => self.election.conflicted(),
            Err(error) => self.failed(&error),
        }
    }

    /// Half the deadline for a request: one that hangs leaves time for another.
    async fn in_time<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, LeaseError> {
        let waited = self.terms.deadline / 2;
        let (namespace, name) = (self.namespace.clone(), self.name.clone());
        match tokio::time::timeout(waited, request).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(source)) => Err(LeaseError::Request { namespace, name, source: Box::new(source) }),
            Err(_) => Err(LeaseError::Timeout { namespace, name, waited }),
        }
    }

    fn worked(&mut self) {
        self.failing = false;
    }

    /// Once a row of failures: every two seconds the same line helps nobody.
    fn failed(&mut self, error: &LeaseError) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(error = egret_daemon::chain(error), "the election is in trouble");
        }
        self.election.failed();
    }

    fn publish(&self) {
        let right = self.election.right(self.elapsed());
        let right = right.map(|(term, until)| Right { term, until: self.started + until });
        let annotation = self.object.as_ref().and_then(|object| object.annotations().get(ACCEPT_MASS_SILENCE));
        let silence_accepted = annotation.and_then(|number| number.trim().parse().ok());
        let standing = Standing { right, silence_accepted };
        self.standing.send_if_modified(|last| std::mem::replace(last, standing) != standing);
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Somebody was faster: the Lease has changed, exists already or is gone.
fn is_outdated(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 || status.code == 404)
}

fn observed(object: &DynamicObject, default: Duration) -> Observed {
    let field = |key: &str| object.data.get("spec").and_then(|spec| spec.get(key));
    let text = |key| field(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let record = Record {
        holder: text("holderIdentity"),
        duration: field("leaseDurationSeconds").and_then(Value::as_u64).map_or(default, Duration::from_secs),
        transitions: field("leaseTransitions").and_then(Value::as_u64).unwrap_or_default(),
        renewed: text("renewTime"),
    };
    Observed { record, version: object.resource_version().unwrap_or_default() }
}

/// The object with this record; what else is in it stays.
fn with_record(mut object: DynamicObject, record: &Record, acquired: &str, version: Option<String>) -> DynamicObject {
    object.metadata.resource_version = version;
    object.metadata.managed_fields = None;
    if !object.data.is_object() {
        object.data = json!({});
    }
    let spec = &mut object.data["spec"];
    if !spec.is_object() {
        *spec = json!({});
    }
    spec["holderIdentity"] = json!(record.holder);
    spec["leaseDurationSeconds"] = json!(record.duration.as_secs());
    spec["leaseTransitions"] = json!(record.transitions);
    spec["acquireTime"] = json!(acquired);
    spec["renewTime"] = json!(record.renewed);
    object
}

/// Now, as the API server takes it: with six digits. Only ever written for people and to be another text each time.
fn micro_time() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_renewal_leaves_what_others_have_put_into_the_lease() {
        let stored = object(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "x", "annotations": {ACCEPT_MASS_SILENCE: "7"}, "labels": {"team": "net"}},
            "spec": {"holderIdentity": "a", "strategy": "OldestEmulationVersion"},
        }));
        let record =
            Record { holder: "b".into(), duration: Duration::from_secs(15), transitions: 4, renewed: "r".into() };
        let written = with_record(stored, &record, "t", Some("9".into()));
        assert_eq!(written.annotations()[ACCEPT_MASS_SILENCE], "7");
        assert_eq!(written.labels()["team"], "net");
        assert_eq!(written.data["spec"]["strategy"], "OldestEmulationVersion");
        assert_eq!(observed(&written, Duration::ZERO), Observed { record, version: "9".into() });
    }

    #[test]
    fn a_lease_that_says_nothing_counts_with_our_own_duration() {
        let stored = object(json!({"metadata": {"name": "x"}, "spec": {"holderIdentity": 7}}));
        let duration = Duration::from_secs(15);
        let expected = Record { duration, ..Record::default() };
        assert_eq!(observed(&stored, duration).record, expected);
    }
}
