//! The tasks that a controller consists of. None ends by itself: if one does, all do.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use egret_api::Kind;
use tokio::task::{Id, JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::RunError;
use crate::lease::Candidate;

/// A part of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Watches a kind.
    Watch(Kind),
    /// Writes.
    Writer,
    /// Raises events.
    Recorder,
    /// Takes part in the election.
    Candidate,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watch(kind) => write!(f, "watch of {}s", kind.name()),
            Self::Writer => f.write_str("writer"),
            Self::Recorder => f.write_str("event recorder"),
            Self::Candidate => f.write_str("leader election"),
        }
    }
}

pub(super) struct Parts {
    watches: JoinSet<()>,
    others: JoinSet<()>,
    names: BTreeMap<Id, Part>,
    candidate: JoinHandle<Candidate>,
    /// It has ended and been asked for its result, which it has only once.
    candidate_asked: bool,
    stopping: CancellationToken,
}

impl Parts {
    /// The candidate runs from now on.
    pub(super) fn new(mut candidate: Candidate) -> Self {
        let stopping = CancellationToken::new();
        let stop = stopping.clone();
        let candidate = tokio::spawn(async move {
            candidate.run(&stop).await;
            candidate
        });
        Self {
            watches: JoinSet::new(),
            others: JoinSet::new(),
            names: BTreeMap::new(),
            candidate,
            candidate_asked: false,
            stopping,
        }
    }

    /// Cancelled when nothing new is to be begun.
    pub(super) fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    pub(super) fn add_watch(&mut self, kind: Kind, part: impl Future<Output = ()> + Send + 'static) {
        self.names.insert(self.watches.spawn(part).id(), Part::Watch(kind));
    }

    pub(super) fn add(&mut self, name: Part, part: impl Future<Output = ()> + Send + 'static) {
        self.names.insert(self.others.spawn(part).id(), name);
    }

    /// The end of a part. Can be cancelled and asked again.
    pub(super) async fn ended(&mut self) -> RunError {
        let (id, result) = tokio::select! {
            Some(ended) = self.watches.join_next_with_id() => split(ended),
            Some(ended) = self.others.join_next_with_id() => split(ended),
            ended = &mut self.candidate => {
                self.candidate_asked = true;
                return error(Part::Candidate, ended.map(drop));
            }
        };
        error(self.names.get(&id).copied().unwrap_or(Part::Writer), result)
    }

    /// Lets the writer end what it has begun and the recorder what it knows, then gives the lease up.
    pub(super) async fn end(mut self, writes: Duration, words: Duration) {
        self.stopping.cancel();
        self.watches.abort_all();
        let all = async { while self.others.join_next().await.is_some() {} };
        if timeout(writes, all).await.is_err() {
            tracing::warn!("not everything under way has ended in time");
            self.others.shutdown().await;
        }
        if self.candidate_asked {
            return;
        }
        if let Ok(Ok(candidate)) = timeout(words, &mut self.candidate).await
            && let Err(error) = candidate.release().await
        {
            tracing::warn!(error = egret_daemon::chain(&error), "failed to give the lease up");
        }
    }
}

fn split(ended: Result<(Id, ()), tokio::task::JoinError>) -> (Id, Result<(), tokio::task::JoinError>) {
    match ended {
        Ok((id, ())) => (id, Ok(())),
        Err(error) => (error.id(), Err(error)),
    }
}

fn error(part: Part, result: Result<(), tokio::task::JoinError>) -> RunError {
    match result {
        Ok(()) => RunError::Ended { part },
        Err(source) => RunError::Panicked { part, source },
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};

    use super::*;
    use crate::lease::Terms;

    fn parts() -> Parts {
        // Nobody listens there.
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        Parts::new(Candidate::new(client, "default", "egret", "a".to_owned(), Terms::default()).0)
    }

    #[tokio::test]
    async fn a_part_that_panics_or_ends_is_named() {
        let mut panics = parts();
        panics.add(Part::Recorder, std::future::pending());
        panics.add(Part::Writer, async { panic!("a mistake") });
        assert!(matches!(panics.ended().await, RunError::Panicked { part: Part::Writer, .. }));
        let mut ends = parts();
        ends.add_watch(Kind::EgressIp, async {});
        let error = ends.ended().await;
        assert_eq!(error.to_string(), "the watch of EgressIPs ended by itself");
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_does_not_end_keeps_the_process_only_so_long() {
        let mut parts = parts();
        parts.add(Part::Writer, std::future::pending());
        parts.add_watch(Kind::Node, std::future::pending());
        let began = tokio::time::Instant::now();
        parts.end(Duration::from_secs(5), Duration::from_secs(1)).await;
        assert!(began.elapsed() <= Duration::from_secs(7), "{:?}", began.elapsed());
    }
}
