//! Every kind, all of it or an error.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use egret_api::{Kind, Manifests};
use futures::future::join_all;
use kube::Client;
use serde_json::Value;

/// What the API server stores.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) manifests: Manifests,
    /// The kinds that are not installed.
    pub(super) absent: BTreeSet<Kind>,
}

/// The kinds that cannot be read, each with the reason: whoever has to ask for rights wants to ask once.
#[derive(Debug)]
pub(crate) struct ListingError(Vec<(Kind, kube::Error)>);

impl fmt::Display for ListingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An API server that does not answer does not answer for six kinds.
        let mut told: Vec<String> = Vec::new();
        for (kind, error) in &self.0 {
            let text = in_words(*kind, error);
            if !told.contains(&text) {
                told.push(text);
            }
        }
        match told.as_slice() {
            [one] => f.write_str(one),
            many => many.iter().try_for_each(|line| write!(f, "\n  {line}")),
        }
    }
}

impl Error for ListingError {}

/// What is wrong, and what to do about it.
pub(super) fn in_words(kind: Kind, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            format!("the API server does not accept the credentials ({})", status.message)
        }
        kube::Error::Api(status) if status.code == 403 => {
            format!("the right to list {}s is missing: {}", kind.as_str(), status.message)
        }
        kube::Error::Api(status) => {
            format!("the API server refused to list {}s: {} ({})", kind.as_str(), status.message, status.code)
        }
        error => format!("the API server cannot be reached: {}", causes(error)),
    }
}

/// The last causes tell what happened; the first only in which layer.
pub(super) fn causes(error: &(dyn Error + 'static)) -> String {
    let chain: Vec<String> = anyhow::Chain::new(error).map(ToString::to_string).collect();
    let mut told: Vec<&str> = Vec::new();
    for text in chain.iter().rev() {
        if !told.iter().any(|inner| text.contains(inner)) {
            told.insert(0, text);
        }
    }
    told.join(": ")
}

/// Reads all kinds at once.
pub(super) async fn read(client: &Client) -> Result<Listed, ListingError> {
    let asked = Kind::ALL.map(|kind| async move { (kind, egret_daemon::list(client, kind.into()).await) });
    let (mut manifests, mut absent, mut failed) = (Manifests::default(), BTreeSet::new(), Vec::new());
    for (kind, answer) in join_all(asked).await {
        match answer {
            Ok(Some(objects)) => insert(&mut manifests, objects),
            Ok(None) => drop(absent.insert(kind)),
            Err(error) => failed.push((kind, error)),
        }
    }
    if failed.is_empty() { Ok(Listed { manifests, absent }) } else { Err(ListingError(failed)) }
}

/// The API server names every object that it stores, so none can be faulty in that.
pub(super) fn insert(manifests: &mut Manifests, objects: Vec<Value>) {
    for object in objects {
        let stored = manifests.insert(object);
        debug_assert!(stored.is_ok(), "{stored:?}");
    }
}
