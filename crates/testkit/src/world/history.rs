//! What happened on a stage, version by version.

use egret_api::ObjectKey;
use serde_json::Value;

/// Who stored a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The controller.
    Controller,
    /// The user, a node, the cloud.
    Other,
}

/// One version of one object.
#[derive(Clone, Debug)]
pub struct Version {
    /// The object.
    pub key: ObjectKey,
    /// As it was stored; `None` when it was deleted.
    pub object: Option<Value>,
    /// Who did it.
    pub writer: Writer,
}

/// An event that the controller raised.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Raised {
    /// `kind` of the object it is about.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its `metadata.uid`, as the event says it.
    pub uid: String,
    /// The reason.
    pub reason: String,
    /// The text.
    pub message: String,
}

/// What happened between two moments.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every version of every object, in the order in which they were stored.
    pub versions: Vec<Version>,
    /// Every event, in order.
    pub raised: Vec<Raised>,
    /// The object of every write that the controller tried, whether or not it changed anything.
    pub attempts: Vec<ObjectKey>,
}

impl History {
    /// Adds what happened next.
    pub fn extend(&mut self, next: Self) {
        self.versions.extend(next.versions);
        self.raised.extend(next.raised);
        self.attempts.extend(next.attempts);
    }

    /// The versions that the controller stored.
    pub fn by_controller(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.writer == Writer::Controller)
    }
}
