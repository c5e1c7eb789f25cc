//! Every version of every object, and every event, as watches bring them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use egret_api::{Kind, ObjectKey};
use futures::StreamExt;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::JoinSet;

use super::objects::{is_the_servers_own, path, version_of};
use crate::world::history::Raised;
use crate::world::object::{key_of, text};

const EVENTS: &str = "/apis/events.k8s.io/v1/events";

/// A version of an object.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// The version, over all kinds.
    pub(super) at: u64,
    /// The object.
    pub(super) key: ObjectKey,
    /// Its `metadata.uid`.
    pub(super) uid: String,
    /// `None` when it was deleted.
    pub(super) object: Option<Value>,
}

/// What the watches have brought.
#[derive(Clone, Default)]
pub(super) struct Tape(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    versions: Vec<Recorded>,
    raised: Vec<(u64, Raised)>,
    latest: BTreeMap<ObjectKey, u64>,
    failed: Option<String>,
}

/// Watches everything for as long as it is held.
pub(super) struct Recorder {
    tape: Tape,
    _watches: JoinSet<()>,
}

impl Recorder {
    /// Watches `kinds` and events from now on.
    pub(super) async fn start(client: &Client, kinds: &[Kind]) -> kube::Result<Self> {
        let tape = Tape::default();
        let mut watches = JoinSet::new();
        for path in kinds.iter().map(|kind| path(*kind, None)).chain([EVENTS.to_owned()]) {
            let from = tape.list(client, &path).await?;
            watches.spawn(tape.clone().watch(client.clone(), path, from));
        }
        Ok(Self { tape, _watches: watches })
    }

    pub(super) fn tape(&self) -> &Tape {
        &self.tape
    }
}

impl Tape {
    /// Whether these are the latest versions.
    pub(super) fn is_at(&self, stored: &BTreeMap<ObjectKey, u64>) -> bool {
        self.with(|heard| heard.latest == *stored)
    }

    /// The objects that are stored as far as the watches know.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.with(|heard| heard.latest.keys().cloned().collect())
    }

    /// What was brought since this was last asked, in the order in which it was stored.
    pub(super) fn take(&self) -> (Vec<Recorded>, Vec<Raised>) {
        self.with(|heard| {
            let mut versions = std::mem::take(&mut heard.versions);
            versions.sort_by_key(|version| version.at);
            let mut raised = std::mem::take(&mut heard.raised);
            raised.sort_by_key(|(at, _)| *at);
            (versions, raised.into_iter().map(|(_, raised)| raised).collect())
        })
    }

    /// Why it is not complete, if it is not.
    pub(super) fn failure(&self) -> Option<String> {
        self.with(|heard| heard.failed.clone())
    }

    fn with<T>(&self, look: impl FnOnce(&mut Heard) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is there already is no history.
    async fn list(&self, client: &Client, path: &str) -> kube::Result<u64> {
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let list: Value = client.request(request).await?;
        Ok(version_of(&list))
    }

    async fn watch(self, client: Client, path: String, mut from: u64) {
        loop {
            match self.watch_once(&client, &path, &mut from).await {
                Ok(()) => {}
                Err(error) => return self.with(|heard| heard.failed = Some(format!("{path}: {error}"))),
            }
        }
    }

    async fn watch_once(&self, client: &Client, path: &str, from: &mut u64) -> kube::Result<()> {
        let path = format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={from}");
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let mut events = std::pin::pin!(client.request_events::<Value>(request).await?);
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    *from = version_of(&object);
                    self.note(object, false);
                }
                WatchEvent::Deleted(object) => {
                    *from = version_of(&object);
                    self.note(object, true);
                }
                WatchEvent::Bookmark(bookmark) => {
                    *from = bookmark.metadata.resource_version.parse().unwrap_or(*from);
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(())
    }

    fn note(&self, mut object: Value, deleted: bool) {
        let at = version_of(&object);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        if let Some(key) = key_of(&object).filter(|key| !is_the_servers_own(key)) {
            self.with(|heard| {
                if deleted {
                    heard.latest.remove(&key);
                } else {
                    heard.latest.insert(key.clone(), at);
                }
                let uid = text(&object["metadata"]["uid"]);
                heard.versions.push(Recorded { at, key, uid, object: (!deleted).then_some(object) });
            });
        } else if object["kind"] == "Event" && !deleted {
            let about = &object["regarding"];
            let raised = Raised {
                kind: text(&about["kind"]),
                name: text(&about["name"]),
                uid: text(&about["uid"]),
                reason: text(&object["reason"]),
                message: text(&object["note"]),
            };
            self.with(|heard| heard.raised.push((at, raised)));
        }
    }
}
