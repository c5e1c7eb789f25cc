//! What the API server stores, as it changes: one watch for each kind.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Config, Event, InitialListStrategy};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::{Jitter, Resource, Stored};

/// How many changes may wait for the loop; then the connection has to, which the API server copes with.
pub const WAITING: usize = 1024;

/// Seconds until the API server is asked to end a watch and it is begun again where it was. kube takes a connection for
/// dead 5 s after that; its own default would leave a controller blind for five minutes.
const WATCH_SECONDS: u32 = 55;

/// After a failure: first this, doubled each time up to the longest, and up to half as much again by chance.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(3300);
/// A failure after so long is a new one.
const FORGIVEN: Duration = Duration::from_mins(1);

/// How often a kind that is not installed is looked for.
const ABSENT_PAUSE: Duration = Duration::from_secs(2);
/// A kind counts as not installed only if it is so twice, this far apart: an API server that is about to be up, or to
/// go, may say it once, and an empty list takes things down.
pub const ABSENT_AGAIN: Duration = Duration::from_millis(500);

/// How often the kinds that a definition defines are listed anew. A watch that began before the definition was upgraded goes
/// on for a while (a second and more; 1.36, seen) without what the old one did not know, and nobody tells later what it
/// has left out: an `egressNodeSelector` would never be followed. Counted from the end of a list, so that a slow one is
/// not cut short.
pub const RELIST: Duration = Duration::from_mins(1);

/// After so many failures in a row that the API server itself gave, it gets a plain list instead of a streaming one.
const STREAMING_FAILURES: u32 = 2;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub resource: Resource,
    /// A definition defines it: it may be not installed, which counts as an empty list, and it is listed anew this often.
    /// Kubernetes' own kinds are always there, whatever an API server says.
    pub defined: Option<Duration>,
    /// Only objects with such labels.
    pub labels: Option<String>,
    /// Only objects with such fields.
    pub fields: Option<String>,
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// These are all objects there are.
    Listed(Vec<Value>),
    /// An object is new or different.
    Seen(Value),
    /// An object is gone; this is how it was.
    Gone(Value),
}

/// Watches one kind until its task is ended or nobody listens any more. `K` is what its owner calls the kind, `T` is what
/// its owner makes of a change.
pub struct Watch<K, T> {
    kind: K,
    target: Target,
    api: Api<Stored>,
    changes: mpsc::Sender<T>,
    tell: fn(K, Change) -> T,
    failures: Arc<dyn Fn(K) + Send + Sync>,
    streaming: Streaming,
    pauses: Pauses,
    /// What has been listed since the last list began.
    listing: Vec<Value>,
    /// When everything is to be listed anew; `None` while it is, and for kinds that no definition defines.
    relist: Option<Instant>,
    absent: Absent,
    failing: bool,
}

/// Nobody listens to changes any more.
struct Deaf;

/// How the first list is asked for.
#[derive(Debug, Default)]
struct Streaming {
    refused: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    No,
    Suspected,
    Said,
}

impl<K: Copy + Display + Send + Sync, T: Send> Watch<K, T> {
    /// Watches with the client's rights, and says what changes; `failures` hears of each failure.
    #[must_use]
    pub fn new(
        client: Client,
        (kind, target): (K, Target),
        (changes, tell): (mpsc::Sender<T>, fn(K, Change) -> T),
        failures: Arc<dyn Fn(K) + Send + Sync>,
    ) -> Self {
        Self {
            kind,
            api: Api::all_with(client, &target.resource.api()),
            target,
            changes,
            tell,
            failures,
            streaming: Streaming::default(),
            pauses: Pauses::new(),
            listing: Vec::new(),
            relist: None,
            absent: Absent::No,
            failing: false,
        }
    }

    /// Ends when nobody listens any more.
    pub async fn run(mut self) {
        while let Ok(()) = self.watch().await {}
    }

    /// One watcher, until it has to be replaced by another one.
    async fn watch(&mut self) -> Result<(), Deaf> {
        let config = self.config();
        let mut events = std::pin::pin!(watcher::watcher(self.api.clone(), config.clone()));
        self.relist = None;
        loop {
            let next = match self.relist {
                Some(at) => tokio::time::timeout_at(at, events.next()).await,
                None => Ok(events.next().await),
            };
            // Another watcher begins with a list.
            let Ok(Some(event)) = next else { return Ok(()) };
            let error = match event {
                Ok(event) => {
                    self.take(event).await?;
                    continue;
                }
                Err(error) => error,
            };
            (self.failures)(self.kind);
            if is_absent(&self.target, &error) {
                self.absent().await?;
                // What comes back is another kind of the same name: what was known of the old one is worth nothing.
                return Ok(());
            }
            self.failed(&error).await;
            if self.config() != config {
                return Ok(());
            }
        }
    }

    async fn take(&mut self, event: Event<Stored>) -> Result<(), Deaf> {
        let (kind, resource) = (self.kind, self.target.resource);
        match event {
            Event::Init => {
                self.relist = None;
                self.listing.clear();
                return Ok(());
            }
            Event::InitApply(object) => {
                self.listing.push(object.into_value(resource));
                return Ok(());
            }
            Event::InitDone => {
                let objects = std::mem::take(&mut self.listing);
                tracing::debug!(%kind, objects = objects.len(), "listed");
                self.send(Change::Listed(objects)).await?;
                let again = |gap| Instant::now() + self.pauses.jitter.stretch(gap, 0.2);
                self.relist = self.target.defined.map(again);
            }
            Event::Apply(object) => self.send(Change::Seen(object.into_value(resource))).await?,
            Event::Delete(object) => self.send(Change::Gone(object.into_value(resource))).await?,
        }
        self.absent = Absent::No;
        self.streaming.worked();
        if std::mem::take(&mut self.failing) {
            tracing::info!(%kind, "watched again");
        }
        Ok(())
    }

    async fn absent(&mut self) -> Result<(), Deaf> {
        match self.absent {
            Absent::No => {
                self.absent = Absent::Suspected;
                tokio::time::sleep(ABSENT_AGAIN).await;
            }
            Absent::Suspected => {
                self.absent = Absent::Said;
                tracing::info!(
                    kind = %self.kind,
                    "this kind is not installed; looking for it from time to time"
                );
                self.send(Change::Listed(Vec::new())).await?;
            }
            Absent::Said => tokio::time::sleep(self.pauses.jitter.stretch(ABSENT_PAUSE, 0.5)).await,
        }
        Ok(())
    }

    async fn failed(&mut self, error: &watcher::Error) {
        if self.absent == Absent::Suspected {
            self.absent = Absent::No;
        }
        self.streaming.failed(error);
        // A connection that ends, or a history that is too short, is daily life.
        if is_remarkable(error) && !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(kind = %self.kind, error = crate::chain(error), "watching failed, trying again");
        } else {
            tracing::debug!(kind = %self.kind, error = crate::chain(error), "watching failed");
        }
        tokio::time::sleep(self.pauses.next(Instant::now())).await;
    }

    async fn send(&self, change: Change) -> Result<(), Deaf> {
        self.changes.send((self.tell)(self.kind, change)).await.map_err(|_| Deaf)
    }

    fn config(&self) -> Config {
        let (label_selector, field_selector) = (self.target.labels.clone(), self.target.fields.clone());
        Config { label_selector, field_selector, ..self.streaming.config() }
    }
}

impl Streaming {
    fn config(&self) -> Config {
        let streams = self.refused < STREAMING_FAILURES;
        let initial_list_strategy =
            if streams { InitialListStrategy::StreamingList } else { InitialListStrategy::ListWatch };
        Config { initial_list_strategy, timeout: Some(WATCH_SECONDS), ..Config::default() }
    }

    /// What was found out about the API server stays.
    fn worked(&mut self) {
        if self.refused < STREAMING_FAILURES {
            self.refused = 0;
        }
    }

    /// Counts answers that may mean that this API server, or the etcd behind it, cannot stream lists.
    fn failed(&mut self, error: &watcher::Error) {
        let code = status(error).map(|status| status.code);
        let refusal = matches!(code, Some(400 | 405 | 422 | 500));
        if refusal && self.refused < STREAMING_FAILURES {
            self.refused += 1;
        }
    }
}

/// The pauses after failures.
pub struct Pauses {
    next: Duration,
    failed_at: Option<Instant>,
    jitter: Jitter,
}

impl Default for Pauses {
    fn default() -> Self {
        Self::new()
    }
}

impl Pauses {
    /// The first is the shortest.
    #[must_use]
    pub fn new() -> Self {
        Self { next: FIRST_PAUSE, failed_at: None, jitter: Jitter::new() }
    }

    /// How long to wait after a failure at `now`.
    pub fn next(&mut self, now: Instant) -> Duration {
        if self.failed_at.is_none_or(|at| now.duration_since(at) > FORGIVEN) {
            self.next = FIRST_PAUSE;
        }
        self.failed_at = Some(now);
        let base = self.next;
        self.next = (base * 2).min(LONGEST_PAUSE);
        self.jitter.stretch(base, 0.5)
    }
}

fn status(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

/// Kubernetes' own kinds are always there, whatever an API server says.
fn is_absent(target: &Target, error: &watcher::Error) -> bool {
    target.defined.is_some() && status(error).is_some_and(|status| status.code == 404)
}

fn is_remarkable(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchFailed(_) => false,
        error => status(error).is_none_or(|status| status.code != 410),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api_error(code: u16) -> watcher::Error {
        let status = kube::core::Status { code, ..kube::core::Status::default() };
        watcher::Error::WatchStartFailed(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn the_first_pause_is_short_and_none_is_longer_than_five_seconds() {
        let mut pauses = Pauses::new();
        let now = Instant::now();
        assert!(pauses.next(now) <= Duration::from_millis(150));
        let longest = (0..20).map(|_| pauses.next(now)).max().unwrap();
        assert!(longest > Duration::from_secs(3) && longest < Duration::from_secs(5), "{longest:?}");
        assert!(pauses.next(now + FORGIVEN * 2) <= Duration::from_millis(150), "an old failure is forgiven");
    }

    #[test]
    fn an_api_server_that_refuses_streaming_lists_gets_plain_ones() {
        let mut streaming = Streaming::default();
        assert_eq!(streaming.config().initial_list_strategy, InitialListStrategy::StreamingList);
        for code in [429, 503, 410, 403] {
            streaming.failed(&api_error(code));
            streaming.failed(&api_error(code));
        }
        assert_eq!(streaming.config().initial_list_strategy, InitialListStrategy::StreamingList);
        streaming.failed(&api_error(422));
        streaming.failed(&api_error(422));
        assert_eq!(streaming.config().initial_list_strategy, InitialListStrategy::ListWatch);
    }

    #[test]
    fn nodes_are_never_believed_to_be_not_installed() {
        let target =
            |kind: egret_api::Kind, defined| Target { resource: kind.into(), defined, labels: None, fields: None };
        let defined = target(egret_api::Kind::EgressIp, Some(RELIST));
        assert!(is_absent(&defined, &api_error(404)));
        assert!(!is_absent(&defined, &api_error(403)));
        assert!(!is_absent(&target(egret_api::Kind::Node, None), &api_error(404)));
    }
}
