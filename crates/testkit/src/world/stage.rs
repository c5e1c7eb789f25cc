//! What a scenario is played on, whatever it is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use egret_api::ObjectKey;
use egret_core::{NodeName, Options};
use serde_json::Value;

use super::history::History;

/// What a controller is started with, and the API it meets.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// What no object says.
    pub options: Options,
    /// Whether nodes are probed at all.
    pub probing: bool,
    /// The definition of EgressIP that is installed.
    pub definition: Definition,
    /// Whether the outcome depends on which of two objects is older.
    pub age_matters: bool,
}

/// A definition of EgressIP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    /// Ours.
    #[default]
    Current,
    /// The one before `egressNodeSelector`: the API server drops that field and the conditions.
    Old,
}

/// Why a stage cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The store refuses a change.
    #[error("the store refuses {key}: {reason}")]
    Refused {
        /// The object.
        key: ObjectKey,
        /// Why.
        reason: String,
    },
    /// There is no such object.
    #[error("there is no {0}")]
    NoSuchObject(ObjectKey),
    /// Decisions undo each other.
    #[error("still writing after {turns} turns: {}", last.join("; "))]
    Endless {
        /// So many passes, rounds or writes were made.
        turns: usize,
        /// The last writes, oldest first.
        last: Vec<String>,
    },
    /// A second write of an object went out before the first had its result.
    #[error("two writes of {0} at once")]
    Overlapping(ObjectKey),
    /// It does not come to rest.
    #[error("no rest within {waited:?}: {missing}")]
    Restless {
        /// So long was waited.
        waited: Duration,
        /// What was waited for.
        missing: String,
    },
    /// The controller came to an end by itself.
    #[error("the controller ended: {0}")]
    Ended(String),
    /// The API server or the harness around it failed.
    #[error("failed to {action}")]
    Server {
        /// What was tried.
        action: &'static str,
        /// Why it did not work.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A Kubernetes API with a controller, a prober that answers only when it is told to, and nobody else.
///
/// Whoever plays on it is the user, the nodes and the cloud.
pub trait Stage {
    /// Through what scenarios are played here, for the report.
    fn name(&self) -> &'static str;

    /// Empties it and makes it ready for a scenario.
    ///
    /// # Errors
    /// If that is not possible.
    fn open(&mut self, setup: &Setup) -> Result<(), StageError>;

    /// Stores a new object, status included. Each is younger than those before it.
    ///
    /// # Errors
    /// If the store refuses it, or there is one of this name already.
    fn create(&mut self, object: Value) -> Result<(), StageError>;

    /// Changes a stored object, status included, as often as it takes for nobody to have interfered.
    ///
    /// # Errors
    /// If there is none, or the store refuses what it becomes.
    fn edit(&mut self, key: &ObjectKey, change: &dyn Fn(&mut Value)) -> Result<(), StageError>;

    /// Deletes an object.
    ///
    /// # Errors
    /// If there is none.
    fn delete(&mut self, key: &ObjectKey) -> Result<(), StageError>;

    /// Starts a controller on what is stored.
    ///
    /// # Errors
    /// If it does not start.
    fn start(&mut self) -> Result<(), StageError>;

    /// Stops the controller. What it knew is gone.
    ///
    /// # Errors
    /// If it does not stop, or had ended before.
    fn stop(&mut self) -> Result<(), StageError>;

    /// Waits until the controller has seen everything, has nothing under way, and nothing more comes of it by itself
    /// within the next seconds.
    ///
    /// # Errors
    /// If that does not come.
    fn rest(&mut self) -> Result<(), StageError>;

    /// Whom the controller wants to be probed.
    fn targets(&self) -> BTreeSet<NodeName>;

    /// Answers one probe of each target, all together: a node that `truth` does not call reachable stays silent.
    ///
    /// # Errors
    /// If the controller is not there to hear it.
    fn probe(&mut self, truth: &BTreeMap<NodeName, bool>) -> Result<(), StageError>;

    /// Lets the controller's watches list everything anew.
    ///
    /// # Errors
    /// If that is not possible.
    fn relist(&mut self) -> Result<(), StageError>;

    /// What happened since this was last asked, in the order in which it was stored.
    ///
    /// # Errors
    /// If it cannot be known in full.
    fn history(&mut self) -> Result<History, StageError>;
}
