//! What a new server holds, and how one that was used is brought back to it.
//!
//! Not through the API server: it deletes a custom resource definition or a namespace only after controllers have looked
//! after each object, kind by kind, which takes seconds. It learns what others do to its store by watching it, as each
//! of several API servers does, so the keys are simply taken away under it, all at once.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::Client;
use thiserror::Error;

use super::admission;
use super::crds::{self, CrdError, Definition};
use super::store::{Change, Entry, PREFIX, Store, StoreError};
use super::wait::until;

/// What the API server writes by itself, again and again.
const ITS_OWN: &[&str] = &[
    "/registry/apiregistration.k8s.io/",
    "/registry/flowschemas/",
    "/registry/leases/kube-system/",
    "/registry/masterleases/",
    "/registry/peerserverleases/",
    "/registry/prioritylevelconfigurations/",
];

/// What the API server makes some time after it says that it is ready.
const LATE: &[&str] = &[
    "/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
    "/registry/ipaddresses/10.96.0.1",
    "/registry/namespaces/default",
    "/registry/namespaces/kube-node-lease",
    "/registry/namespaces/kube-public",
    "/registry/namespaces/kube-system",
    "/registry/servicecidrs/kubernetes",
    "/registry/services/specs/default/kubernetes",
];

const DEFINITIONS: &[u8] = b"/registry/apiextensions.k8s.io/customresourcedefinitions/";
const POLICIES: &[u8] = b"/registry/validatingadmissionpolic";

/// Much longer than either ever takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a server could not be emptied, or not be made known as empty.
#[derive(Debug, Error)]
pub enum EmptyError {
    /// Its store does not answer.
    #[error("failed to empty a test server")]
    Store {
        /// Why.
        #[from]
        source: StoreError,
    },
    /// The API server did not make what it usually does.
    #[error("the API server has not made {}", missing.join(", "))]
    Incomplete {
        /// Keys that are not there.
        missing: Vec<&'static str>,
    },
    /// A definition that was removed cannot be read.
    #[error("failed to understand a stored definition")]
    Definition {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The API server still serves what was defined.
    #[error("what was removed is still served")]
    Crds {
        /// Why.
        #[from]
        source: CrdError,
    },
    /// The API server still asks admission policies that are gone.
    #[error("failed to wait for admission policies to be forgotten")]
    Admission {
        /// Why.
        #[source]
        source: kube::Error,
    },
}

/// What a new server holds.
#[derive(Debug)]
pub(crate) struct Baseline {
    entries: BTreeMap<Vec<u8>, Kept>,
}

#[derive(Debug)]
struct Kept {
    revision: String,
    value: Vec<u8>,
}

impl Baseline {
    /// Looked at as soon as all is there that the server makes for itself.
    pub(crate) async fn observe(store: &Store) -> Result<Self, EmptyError> {
        let mut missing = Vec::new();
        let whole = until(LIMIT, async || {
            let entries = store.read(PREFIX).await?;
            let there = |key: &str| entries.iter().any(|entry| entry.key() == key.as_bytes());
            missing = LATE.iter().copied().filter(|key| !there(key)).collect();
            Ok::<_, StoreError>(missing.is_empty().then_some(entries))
        });
        let Some(entries) = whole.await? else { return Err(EmptyError::Incomplete { missing }) };
        let kept = |entry: &Entry| Kept { revision: entry.revision().to_owned(), value: entry.value().to_vec() };
        Ok(Self { entries: entries.iter().map(|entry| (entry.key().to_vec(), kept(entry))).collect() })
    }

    /// Brings the store back, and returns when the API server behaves like a new one.
    pub(crate) async fn restore(&mut self, store: &Store, client: &Client) -> Result<(), EmptyError> {
        let now = store.keys(PREFIX).await?;
        let definitions = definitions(store).await?;
        let policies = now.iter().any(|entry| entry.key().starts_with(POLICIES));
        let changes = self.changes(&now);
        if changes.is_empty() {
            return Ok(());
        }
        let revision = store.change(&changes).await?;
        store.advance().await?;
        for change in changes {
            if let Change::Put { key, value } = change {
                self.entries.insert(key.0, Kept { revision: revision.clone(), value: value.0 });
            }
        }
        for definition in &definitions {
            crds::wait_until_gone(client, definition).await?;
        }
        if policies {
            admission::settle(client).await.map_err(|source| EmptyError::Admission { source })?;
        }
        Ok(())
    }

    fn changes(&self, now: &[Entry]) -> Vec<Change> {
        let mut changes = self.deletions(now);
        changes.extend(self.repairs(now));
        changes
    }

    /// A run of keys that a new server does not have is one deletion, so there are never more of them than of kept keys.
    fn deletions(&self, now: &[Entry]) -> Vec<Change> {
        let delete = |(first, last): (&[u8], &[u8])| Change::Delete {
            key: ByteString(first.to_vec()),
            range_end: ByteString([last, b"\0"].concat()),
        };
        let mut deletions = Vec::new();
        let mut run: Option<(&[u8], &[u8])> = None;
        for entry in now {
            let key = entry.key();
            if self.entries.contains_key(key) || its_own(key) {
                deletions.extend(run.take().map(delete));
            } else {
                run = Some((run.map_or(key, |(first, _)| first), key));
            }
        }
        deletions.extend(run.map(delete));
        deletions
    }

    /// What a new server has, where it was changed or deleted.
    fn repairs(&self, now: &[Entry]) -> Vec<Change> {
        let revisions: BTreeMap<&[u8], &str> = now.iter().map(|entry| (entry.key(), entry.revision())).collect();
        let intact = |key: &[u8], kept: &Kept| revisions.get(key).is_some_and(|revision| *revision == kept.revision);
        let lost = self.entries.iter().filter(|(key, kept)| !its_own(key) && !intact(key, kept));
        let put = |(key, kept): (&Vec<u8>, &Kept)| Change::Put {
            key: ByteString(key.clone()),
            value: ByteString(kept.value.clone()),
        };
        lost.map(put).collect()
    }
}

fn its_own(key: &[u8]) -> bool {
    ITS_OWN.iter().any(|prefix| key.starts_with(prefix.as_bytes()))
}

/// Those that are stored, which may be more than the API server has got round to serving.
async fn definitions(store: &Store) -> Result<Vec<Definition>, EmptyError> {
    let entries = store.read(DEFINITIONS).await?;
    let parse = |entry: &Entry| serde_json::from_slice(entry.value());
    entries.iter().map(parse).collect::<Result<_, _>>().map_err(|source| EmptyError::Definition { source })
}
