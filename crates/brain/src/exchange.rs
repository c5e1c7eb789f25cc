//! What goes into a brain and what comes out: values only.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use egret_api::{Kind, ObjectKey};
use egret_core::{NodeName, Timestamp};
use serde_json::Value;

/// A moment, as the shell hands it in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Since any fixed start, on a clock that only goes forward: what every wait is measured with.
    pub elapsed: Duration,
    /// UTC, whole seconds: only ever written down (`lastTransitionTime`), never compared.
    pub wall: Timestamp,
}

/// Something that the brain learns.
#[derive(Clone, Debug)]
pub enum Input {
    /// A watch has listed everything of a kind (which is nothing if the kind is not installed): what is not in the list
    /// is gone.
    Listed {
        /// The kind.
        kind: Kind,
        /// All its objects, as stored.
        objects: Vec<Value>,
    },
    /// An object was added or changed.
    Seen {
        /// Its kind.
        kind: Kind,
        /// The object as stored.
        object: Value,
    },
    /// An object was deleted.
    Gone {
        /// Its kind.
        kind: Kind,
        /// The object as it was last stored.
        object: Value,
    },
    /// A probe ended, or takes long.
    Probed {
        /// The node.
        node: NodeName,
        /// What is known.
        answer: Answer,
    },
    /// A write ended.
    Written {
        /// Which.
        id: WriteId,
        /// How.
        result: Result<Option<Value>, WriteError>,
    },
    /// Whether this instance leads. One that does not lead learns and decides, but writes, tells and probes nothing.
    Leading(bool),
    /// The operator says that the mass silence of this number is real (see [`crate::Silence`]).
    SilenceAccepted(u64),
}

/// What a probe says of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It answered.
    Alive,
    /// It should have answered by now; the probe goes on. Only mass silence is judged by it.
    Late,
    /// The whole time passed without an answer, or the answer was no.
    Silent,
}

/// Names a write until its result is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// A change of one object in the API. There is never more than one under way for an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// To be given back with the result.
    pub id: WriteId,
    /// The object.
    pub object: ObjectKey,
    /// What to do.
    pub action: Action,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A JSON patch (RFC 6902) that begins with a `test`.
    Patch {
        /// `status` where the kind has that subresource.
        subresource: Option<&'static str>,
        /// The operations.
        operations: Vec<Value>,
    },
    /// A new object.
    Create(Value),
    /// The object goes, if it is still exactly this one.
    Delete {
        /// Its `metadata.uid`.
        uid: String,
        /// Its `metadata.resourceVersion`.
        resource_version: String,
    },
}

/// Why a write did not happen, by what there is to do about it. Success carries the object as it is stored now (`None`
/// after a deletion).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WriteError {
    /// The object is not as the write's guard says: somebody else has changed or created it.
    #[error("the object has changed")]
    Conflict {
        /// The object as it is stored now, if it could be read.
        current: Option<Value>,
    },
    /// There is no such object (any more), or no such kind.
    #[error("the object is gone")]
    Gone,
    /// The API server forbids it: access rights, or an admission policy.
    #[error("denied: {message}")]
    Denied {
        /// Its words.
        message: String,
    },
    /// The API server says that the object would be wrong.
    #[error("invalid: {message}")]
    Invalid {
        /// Its words.
        message: String,
    },
    /// Overload, time-out, no connection: it may or may not have happened, and is worth trying again.
    #[error("failed for now: {message}")]
    Transient {
        /// The cause.
        message: String,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
}

impl WriteError {
    /// The class: metric label, and what back-off follows.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Gone => "gone",
            Self::Denied { .. } => "denied",
            Self::Invalid { .. } => "invalid",
            Self::Transient { .. } => "transient",
        }
    }
}

/// A Warning event to put on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object.
    pub object: ObjectKey,
    /// Its `metadata.uid`: without it `kubectl describe` does not find the event.
    pub uid: String,
    /// One word for machines.
    pub reason: &'static str,
    /// The rest for people.
    pub message: String,
}

/// What is to be done now.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Output {
    /// Writes that may go out at once and in any order.
    pub writes: Vec<Write>,
    /// Events to raise.
    pub events: Vec<Event>,
    /// Whom to probe from now on and where; who is not in it is not to be probed. Empty while not leading. As long as
    /// nothing changes it is the same allocation.
    pub targets: Arc<BTreeMap<NodeName, Vec<IpAddr>>>,
    /// When to ask again even if nothing has come in: a value of [`Now::elapsed`].
    pub wake: Option<Duration>,
}
