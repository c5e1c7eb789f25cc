//! Warning events on objects. They are for people: one that cannot be raised is counted and let go.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use egret_brain::Event;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event as Stored, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use tokio::sync::mpsc;

use crate::metrics::Metrics;
use crate::write::class;

/// `reportingController`.
pub(crate) const REPORTER: &str = "egret-controller";

/// So many events wait; those beyond are dropped. A thousand objects that fail at once still get theirs.
const WAITING: usize = 2048;
const PATIENCE: Duration = Duration::from_secs(5);
/// What happens again within this time is a series of one event. Longer, and the API server may have dropped the event.
const SERIES: Duration = Duration::from_mins(6);
/// Events in a namespace that none of their objects have: where kubectl looks for those of cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";
/// What the API server takes at most.
const LONGEST_NOTE: usize = 1024;

/// Where events are handed in.
#[derive(Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<Event>,
    metrics: Arc<Metrics>,
}

/// What writes them.
pub(crate) struct Recorder {
    client: Client,
    queue: mpsc::Receiver<Event>,
    instance: String,
    metrics: Arc<Metrics>,
    /// What has been raised of late. kube's own recorder takes events of one reason for one series and keeps the first
    /// message, so that people would read an old one.
    recent: HashMap<(String, &'static str, String), Stored>,
}

/// The two ends of a queue; `instance` says which of several controllers it was.
pub(crate) fn recorder(client: Client, instance: String, metrics: Arc<Metrics>) -> (Events, Recorder) {
    let (sender, queue) = mpsc::channel(WAITING);
    let events = Events { queue: sender, metrics: Arc::clone(&metrics) };
    (events, Recorder { client, queue, instance, metrics, recent: HashMap::new() })
}

impl Events {
    /// Never waits.
    pub(crate) fn raise(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            self.metrics.event("transient");
        }
    }
}

impl Recorder {
    /// Raises what comes until nothing can come any more.
    pub(crate) async fn run(mut self) {
        while let Some(event) = self.queue.recv().await {
            let result = match tokio::time::timeout(PATIENCE, self.raise(&event)).await {
                Ok(Ok(())) => "ok",
                Ok(Err(error)) => {
                    let failure = class::of(&error);
                    tracing::warn!(object = %event.object, reason = event.reason, error = %failure, "no event");
                    failure.class()
                }
                Err(_) => "transient",
            };
            self.metrics.event(result);
        }
    }

    async fn raise(&mut self, event: &Event) -> kube::Result<()> {
        let now = Timestamp::now();
        self.recent
            .retain(|_, stored| last(stored).is_some_and(|last| now.duration_since(last).unsigned_abs() < SERIES));
        let namespace = event.object.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let api: Api<Stored> = Api::namespaced(self.client.clone(), namespace);
        let key = (event.uid.clone(), event.reason, event.message.clone());
        let again = self.recent.get(&key).map(|stored| (stored.name_any(), next(stored, now)));
        let stored = match again {
            Some((name, series)) => {
                let patch = Patch::Merge(serde_json::json!({"series": series}));
                match api.patch(&name, &PatchParams::default(), &patch).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => self.create(&api, event, now).await?,
                    patched => patched?,
                }
            }
            None => self.create(&api, event, now).await?,
        };
        self.recent.insert(key, stored);
        Ok(())
    }

    async fn create(&self, api: &Api<Stored>, event: &Event, now: Timestamp) -> kube::Result<Stored> {
        api.create(&PostParams::default(), &new(event, &self.instance, now)).await
    }
}

fn new(event: &Event, instance: &str, now: Timestamp) -> Stored {
    let object = &event.object;
    let regarding = ObjectReference {
        api_version: Some(object.kind.api_version().to_owned()),
        kind: Some(object.kind.name().to_owned()),
        namespace: object.namespace.clone(),
        name: Some(object.name.clone()),
        uid: Some(event.uid.clone()),
        ..ObjectReference::default()
    };
    Stored {
        action: Some("Placing".to_owned()),
        event_time: Some(MicroTime(now)),
        metadata: ObjectMeta {
            name: Some(format!("{}.{:x}", object.name, now.as_nanosecond())),
            namespace: Some(object.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
            ..ObjectMeta::default()
        },
        note: Some(shortened(&event.message)),
        reason: Some(event.reason.to_owned()),
        regarding: Some(regarding),
        reporting_controller: Some(REPORTER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        type_: Some("Warning".to_owned()),
        ..Stored::default()
    }
}

fn next(stored: &Stored, now: Timestamp) -> EventSeries {
    let count = stored.series.as_ref().map_or(1, |series| series.count) + 1;
    EventSeries { count, last_observed_time: MicroTime(now) }
}

fn last(stored: &Stored) -> Option<Timestamp> {
    let series = stored.series.as_ref().map(|series| series.last_observed_time.0);
    series.or_else(|| stored.event_time.as_ref().map(|time| time.0))
}

fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_NOTE {
        return message.to_owned();
    }
    let mut end = LONGEST_NOTE - '…'.len_utf8();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}

#[cfg(test)]
mod tests {
    use egret_api::{Kind, ObjectKey};

    use super::*;

    fn event(object: ObjectKey) -> Event {
        Event { object, uid: "u".to_owned(), reason: "NoMatchingNodeFound", message: "none".to_owned() }
    }

    #[test]
    fn kubectl_describe_finds_the_event_by_kind_name_and_uid() {
        let stored = new(&event(ObjectKey::cluster(Kind::EgressIp, "a")), "pod", Timestamp::UNIX_EPOCH);
        let regarding = stored.regarding.unwrap();
        assert_eq!(
            (regarding.kind.as_deref(), regarding.name.as_deref(), regarding.uid.as_deref(), regarding.namespace),
            (Some("EgressIP"), Some("a"), Some("u"), None)
        );
        assert_eq!(stored.metadata.namespace.as_deref(), Some("default"));
        let service = new(&event(ObjectKey::namespaced(Kind::EgressService, "ns", "a")), "pod", Timestamp::UNIX_EPOCH);
        assert_eq!(service.metadata.namespace.as_deref(), Some("ns"));
        assert_eq!(service.regarding.unwrap().namespace.as_deref(), Some("ns"));
    }

    #[test]
    fn a_message_that_the_api_server_would_refuse_is_shortened_between_letters() {
        let message = "é".repeat(1000);
        let note = shortened(&message);
        assert!(note.len() <= LONGEST_NOTE && note.ends_with("é…"), "{}", note.len());
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn what_happens_again_is_counted() {
        let mut stored = new(&event(ObjectKey::cluster(Kind::EgressIp, "a")), "pod", Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(5).unwrap();
        stored.series = Some(next(&stored, later));
        assert_eq!((next(&stored, later).count, last(&stored)), (3, Some(later)));
    }
}
