//! The record: every version of every EgressIP, EgressService and Node, and every event.
//!
//! It does not miss a version when the API server is killed: a new one has forgotten what came before it started, but
//! lists what was stored at any moment of the past, for etcd has it.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egret_api::{Kind, ObjectKey};
use egret_testkit::patience::PATIENCE;
use egret_testkit::world::{State, Version, Writer, items};
use futures::StreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::host_of;

const KINDS: [Kind; 3] = [Kind::EgressIp, Kind::EgressService, Kind::Node];
const EVENTS: &str = "/apis/events.k8s.io/v1/events";
/// While the server does not answer.
const PAUSE: Duration = Duration::from_millis(50);

/// Records in the background until it is dropped.
pub(crate) struct Recorder {
    client: Client,
    tape: Tape,
    watches: JoinSet<()>,
}

#[derive(Clone)]
struct Tape {
    recorded: Arc<Mutex<Recorded>>,
    /// Counts up with the record.
    grows: watch::Sender<usize>,
}

#[derive(Default)]
struct Recorded {
    versions: BTreeMap<u64, (ObjectKey, Option<Value>)>,
    state: State,
    /// The uid it is about, reason, text.
    events: Vec<(String, String, String)>,
    /// As far as each path was read.
    read: BTreeMap<String, u64>,
    forgotten: usize,
    broken: Option<String>,
}

impl Recorder {
    /// What is there already is no history.
    pub(crate) async fn start(client: &Client) -> Self {
        let tape = Tape { recorded: Arc::default(), grows: watch::Sender::new(0) };
        let mut watches = JoinSet::new();
        for path in KINDS.map(|kind| path(kind, None, None)).into_iter().chain([EVENTS.to_owned()]) {
            let from = version_of(&get(client, &path).await.unwrap());
            watches.spawn(tape.clone().follow(client.clone(), path, from));
        }
        Self { client: client.clone(), tape, watches }
    }

    /// Begins its watches anew, and reads once more what is stored: a watch goes by the definition of when it began.
    pub(crate) async fn renew(&mut self) {
        self.watches.shutdown().await;
        for (path, mut from) in self.tape.with(|recorded| recorded.read.clone()) {
            self.tape.fill_in(&self.client, &path, &mut from).await.unwrap();
            self.watches.spawn(self.tape.clone().follow(self.client.clone(), path, from));
        }
    }

    pub(crate) fn state(&self) -> State {
        self.tape.with(|recorded| recorded.state.clone())
    }

    pub(crate) fn forgotten(&self) -> usize {
        self.tape.with(|recorded| recorded.forgotten)
    }

    pub(crate) fn broken(&self) -> Option<String> {
        self.tape.with(|recorded| recorded.broken.clone())
    }

    pub(crate) fn events(&self, uid: &str) -> Vec<(String, String)> {
        self.tape.with(|recorded| {
            let about = recorded.events.iter().filter(|(about, ..)| about == uid);
            about.map(|(_, reason, text)| (reason.clone(), text.clone())).collect()
        })
    }

    pub(crate) async fn until(&self, reached: impl Fn(&State) -> bool) {
        let mut grows = self.tape.grows.subscribe();
        while !self.tape.with(|recorded| reached(&recorded.state)) {
            grows.changed().await.unwrap();
        }
    }

    pub(crate) async fn until_event(&self, uid: &str, reason: &str) {
        let mut grows = self.tape.grows.subscribe();
        while !self.events(uid).iter().any(|(event, _)| event == reason) {
            grows.changed().await.unwrap();
        }
    }

    /// Waits until it has this version of an object, if it looks at such objects.
    pub(crate) async fn until_at(&self, at: u64, key: &ObjectKey) {
        let reached = |state: &State| state.get(key).is_none_or(|object| version_of(object) >= at);
        if KINDS.contains(&key.kind) {
            tokio::time::timeout(PATIENCE, self.until(reached)).await.expect("the record goes on");
        }
    }

    pub(crate) fn history(&self, own: &BTreeSet<u64>, deleted: &BTreeSet<ObjectKey>) -> History {
        assert_eq!(self.broken(), None, "the record is complete");
        self.tape.with(|recorded| {
            let versions = recorded.versions.iter().map(|(at, (key, object))| {
                let other = own.contains(at) || (object.is_none() && deleted.contains(key));
                let writer = if other { Writer::Other } else { Writer::Controller };
                Version { key: key.clone(), object: object.clone(), writer }
            });
            History(versions.collect())
        })
    }
}

impl Tape {
    fn with<T>(&self, look: impl FnOnce(&mut Recorded) -> T) -> T {
        look(&mut self.recorded.lock().unwrap())
    }

    fn change(&self, change: impl FnOnce(&mut Recorded)) {
        self.with(change);
        self.grows.send_modify(|count| *count += 1);
    }

    async fn follow(self, client: Client, path: String, mut from: u64) {
        loop {
            self.with(|recorded| recorded.read.insert(path.clone(), from));
            let ended = self.watch(&client, &path, &mut from).await;
            if let Err(kube::Error::Api(status)) = &ended
                && status.code == 410
            {
                self.change(|recorded| recorded.forgotten += 1);
                if let Err(error) = self.fill_in(&client, &path, &mut from).await {
                    self.change(|recorded| recorded.broken = Some(error.to_string()));
                    return;
                }
            } else if ended.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn watch(&self, client: &Client, path: &str, from: &mut u64) -> kube::Result<()> {
        let query = format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={from}");
        let request = Request::get(query).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let mut events = pin!(client.request_events::<Value>(request).await?);
        while let Some(event) = events.next().await {
            let (object, deleted) = match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    *from = bookmark.metadata.resource_version.parse().unwrap_or(*from);
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
            *from = version_of(&object);
            self.with(|recorded| recorded.read.insert(path.to_owned(), *from));
            self.note(*from, object, deleted);
        }
        Ok(())
    }

    /// What was stored at each moment since `from`.
    async fn fill_in(&self, client: &Client, path: &str, from: &mut u64) -> kube::Result<()> {
        let now = version_of(&get(client, path).await?);
        let mut before = None;
        for at in *from..=now {
            let list = get(client, &format!("{path}?resourceVersion={at}&resourceVersionMatch=Exact")).await?;
            let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default().to_owned();
            let complete = |item: &Value| {
                let mut item = item.clone();
                (item["apiVersion"], item["kind"]) = (list["apiVersion"].clone(), kind.as_str().into());
                (item["metadata"]["uid"].to_string(), item)
            };
            let items: BTreeMap<_, _> = list["items"].as_array().into_iter().flatten().map(complete).collect();
            let old = before.replace(items.clone()).unwrap_or_default();
            // What a watch has told may have been cut.
            for item in items.values().filter(|item| version_of(item) == at || at == now) {
                self.note(version_of(item), item.clone(), false);
            }
            for (_, gone) in old.into_iter().filter(|(uid, _)| !items.contains_key(uid)) {
                self.note(at, gone, true);
            }
        }
        *from = now;
        Ok(())
    }

    fn note(&self, at: u64, mut object: Value, deleted: bool) {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let Some(key) = key(&object) else {
            let about = (text(&object["regarding"]["uid"]), text(&object["reason"]), text(&object["note"]));
            return self.change(|recorded| recorded.events.extend(Some(about).filter(|_| !deleted)));
        };
        let object = (!deleted).then_some(object);
        let version = Version { key: key.clone(), object: object.clone(), writer: Writer::Other };
        self.change(|recorded| {
            recorded.state.apply(&version);
            recorded.versions.insert(at, (key, object));
        });
    }
}

/// Everything that was stored, in order.
pub(crate) struct History(pub(crate) Vec<Version>);

impl History {
    /// No version that the controller stored gives an address to two owners.
    pub(crate) fn assert_one_owner(&self) {
        let mut holders: BTreeMap<ObjectKey, Vec<(String, String)>> = BTreeMap::new();
        for version in self.0.iter().filter(|version| version.key.kind == Kind::EgressIp) {
            let held = version.object.as_ref().map(items).unwrap_or_default();
            let before = holders.remove(&version.key).unwrap_or_default();
            if version.writer == Writer::Controller {
                for (address, node) in held.iter().filter(|item| !before.contains(item)) {
                    let others = holders.values().flatten().filter(|(other, _)| other == address).count();
                    let own = held.iter().filter(|(other, _)| other == address).count();
                    assert_eq!((others, own), (0, 1), "{address} gets a second owner on {node}: {version:?}");
                }
            }
            holders.insert(version.key.clone(), held);
        }
    }

    /// The nodes that an address has had, one after the other.
    pub(crate) fn places(&self, name: &str, address: &str) -> Vec<String> {
        let key = egress_ip_key(name);
        let versions = self.0.iter().filter(|version| version.key == key);
        let places = versions.filter_map(|version| host_of(version.object.as_ref()?, address));
        let mut places: Vec<String> = places.collect();
        places.dedup();
        places
    }

    /// How many versions of an object the controller stored.
    pub(crate) fn by_controller(&self, key: &ObjectKey) -> usize {
        self.0.iter().filter(|version| version.key == *key && version.writer == Writer::Controller).count()
    }
}

pub(crate) fn egress_ip_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::EgressIp, name)
}

/// How many addresses have a node.
pub(crate) fn placed(state: &State) -> usize {
    state.statuses().values().map(Vec::len).sum()
}

/// Whether every object says that each of its addresses has a node.
pub(crate) fn everyone_is_placed(state: &State) -> bool {
    state.iter().filter(|(key, _)| key.kind == Kind::EgressIp).all(|(_, object)| {
        let wanted = object["spec"]["egressIPs"].as_array().map_or(0, Vec::len);
        let assigned = object["status"]["conditions"].as_array().into_iter().flatten();
        let assigned = assigned.filter(|condition| condition["type"] == "Assigned" && condition["status"] == "True");
        items(object).len() == wanted && assigned.count() == 1
    })
}

/// The key of an object of a kind that we know.
pub(crate) fn key(object: &Value) -> Option<ObjectKey> {
    let kind = Kind::of(object["apiVersion"].as_str()?, object["kind"].as_str()?)?;
    let name = object["metadata"]["name"].as_str()?.to_owned();
    let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
    Some(ObjectKey { kind, namespace, name })
}

pub(crate) fn has_status_subresource(kind: Kind) -> bool {
    !matches!(kind, Kind::EgressIp | Kind::EndpointSlice)
}

pub(crate) fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Where the objects of a kind are, or one of them.
pub(crate) fn path(kind: Kind, namespace: Option<&str>, name: Option<&str>) -> String {
    let version = kind.api_version();
    let root = if version.contains('/') { "apis" } else { "api" };
    let namespace = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    let name = name.map(|name| format!("/{name}")).unwrap_or_default();
    format!("/{root}/{version}/{namespace}{}s{name}", kind.as_str())
}

async fn get(client: &Client, path: &str) -> kube::Result<Value> {
    client.request(Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?).await
}
