//! What the API server stores, read and written behind its back.

use std::io;
use std::path::PathBuf;

use k8s_openapi::ByteString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// Where the API server keeps everything.
pub(crate) const PREFIX: &[u8] = b"/registry/";

/// Where this harness keeps a key of its own, out of the API server's sight.
const SCRATCH: &[u8] = b"/egret";

/// An etcd that listens on a socket in the file system.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    socket: PathBuf,
}

/// Why etcd did not answer.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The connection could not be made or broke.
    #[error("failed to reach etcd")]
    Connection {
        /// Why.
        #[from]
        source: io::Error,
    },
    /// It refused.
    #[error("etcd answered: {answer}")]
    Refused {
        /// Status line and text.
        answer: String,
    },
    /// Its answer is not what etcd documents.
    #[error("failed to understand etcd")]
    Parse {
        /// Why.
        #[from]
        source: serde_json::Error,
    },
}

/// A key, and what was asked about it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Entry {
    key: ByteString,
    #[serde(default)]
    value: Option<ByteString>,
    mod_revision: String,
}

#[derive(Deserialize)]
struct Entries {
    #[serde(default)]
    kvs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Done {
    header: Header,
}

#[derive(Deserialize)]
struct Header {
    revision: String,
}

/// One change of several that are made at once.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// Everything from one key up to, but not including, another is removed.
    #[serde(rename = "request_delete_range")]
    Delete {
        /// The first key.
        key: ByteString,
        /// After the last key.
        range_end: ByteString,
    },
    /// A key is given a value.
    #[serde(rename = "request_put")]
    Put {
        /// The key.
        key: ByteString,
        /// Its value from now on.
        value: ByteString,
    },
}

impl Entry {
    pub(crate) fn key(&self) -> &[u8] {
        &self.key.0
    }

    /// Empty if only keys were asked for.
    pub(crate) fn value(&self) -> &[u8] {
        self.value.as_ref().map_or(&[], |value| &value.0)
    }

    /// When it was last written, to be compared only.
    pub(crate) fn revision(&self) -> &str {
        &self.mod_revision
    }
}

impl Store {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Everything below a prefix, in the order of the keys.
    pub(crate) async fn read(&self, prefix: &[u8]) -> Result<Vec<Entry>, StoreError> {
        self.range(prefix, false).await
    }

    /// The same without the values.
    pub(crate) async fn keys(&self, prefix: &[u8]) -> Result<Vec<Entry>, StoreError> {
        self.range(prefix, true).await
    }

    /// Makes all changes at once, and returns the revision that they share.
    pub(crate) async fn change(&self, changes: &[Change]) -> Result<String, StoreError> {
        let done: Done = self.ask("/v3/kv/txn", &json!({"success": changes})).await?;
        Ok(done.header.revision)
    }

    /// Makes the store one revision older than everything that was written before.
    ///
    /// A list from the API server's cache waits until the cache has seen the store's revision. It has seen a revision as
    /// soon as it has seen *one* change of it, and [`Store::change`] makes many.
    pub(crate) async fn advance(&self) -> Result<(), StoreError> {
        let put = json!({"key": ByteString(SCRATCH.to_vec()), "value": ByteString(Vec::new())});
        self.ask::<Value>("/v3/kv/put", &put).await.map(|_| ())
    }

    async fn range(&self, prefix: &[u8], keys_only: bool) -> Result<Vec<Entry>, StoreError> {
        let (key, range_end) = (ByteString(prefix.to_vec()), ByteString(after_prefix(prefix)));
        let range = json!({"key": key, "range_end": range_end, "keys_only": keys_only});
        let entries: Entries = self.ask("/v3/kv/range", &range).await?;
        Ok(entries.kvs)
    }

    /// By the JSON gateway: etcd's own protocol would need a client of its own for four kinds of requests. In HTTP/1.0
    /// the answer ends with the connection, and comes in one piece.
    async fn ask<T: DeserializeOwned>(&self, path: &str, question: &Value) -> Result<T, StoreError> {
        let body = question.to_string();
        let request = format!("POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = UnixStream::connect(&self.socket).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) != Some("200") {
            return Err(StoreError::Refused { answer: format!("{status}: {body}") });
        }
        Ok(serde_json::from_str(body)?)
    }
}

/// The first key that does not begin with the prefix, but would come after all that do.
fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut after = prefix.to_vec();
    let last = after.last_mut().expect("no prefix is empty");
    *last += 1;
    after
}
