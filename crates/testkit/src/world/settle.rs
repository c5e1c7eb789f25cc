//! How a world comes to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use egret_core::{NodeName, Reachability};
use egret_placement::{decide, probe_targets};

use super::World;

/// No world of these scenarios needs more than a handful; a decision that is not stable needs infinitely many.
const MOST_PASSES: usize = 64;
/// Mass silence is only told from this many targets that had answered (design, "Prober").
const MASS_TARGETS: usize = 5;
/// More than this share of them silent at once is mass silence.
const MASS_PERCENT: usize = 55;

/// So many nodes fell silent at once that the fault is probably the prober's own. What follows needs a controller that
/// holds still, which a decision alone does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MassSilence;

/// Why a world does not come to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loop {
    /// See [`MassSilence`].
    MassSilence(MassSilence),
    /// Decisions undo each other. The last writes, oldest first.
    Endless(Vec<String>),
}

impl From<MassSilence> for Loop {
    fn from(silence: MassSilence) -> Self {
        Self::MassSilence(silence)
    }
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MassSilence(_) => f.write_str("most targets fell silent at once"),
            Self::Endless(writes) => write!(f, "no rest after {MOST_PASSES} passes: {}", writes.join("; ")),
        }
    }
}

impl World {
    /// Decides and writes until nothing changes; with `rounds`, until a reachability round changes nothing either.
    ///
    /// # Errors
    /// If it never ends, or a round finds mass silence.
    pub fn settle(&mut self, rounds: bool) -> Result<(), Loop> {
        let mut last_writes = Vec::new();
        for _ in 0..MOST_PASSES {
            let writes = self.pass();
            if !writes.is_empty() {
                last_writes.push(writes.join(", "));
                continue;
            }
            if !rounds || !self.round()? {
                return Ok(());
            }
        }
        Err(Loop::Endless(last_writes.split_off(last_writes.len().saturating_sub(6))))
    }

    /// One reachability round: every target answers or does not; who is no target any more is forgotten. Returns whether
    /// anything was learnt.
    ///
    /// # Errors
    /// [`MassSilence`]; nothing is learnt then.
    pub fn round(&mut self) -> Result<bool, MassSilence> {
        let targets = self.probe_targets();
        let answered = targets.iter().filter(|node| self.knowledge.get(*node) == Some(&Reachability::Reachable));
        let answered: Vec<&NodeName> = answered.collect();
        let silent = answered.iter().filter(|node| !self.answers(node)).count();
        if answered.len() >= MASS_TARGETS && silent * 100 > answered.len() * MASS_PERCENT {
            return Err(MassSilence);
        }
        let answer = |node: NodeName| {
            let answer = if self.answers(&node) { Reachability::Reachable } else { Reachability::Unreachable };
            (node, answer)
        };
        let knowledge: BTreeMap<NodeName, Reachability> = targets.into_iter().map(answer).collect();
        let learnt = knowledge != self.knowledge;
        self.drained.retain(|node| knowledge.get(node) == Some(&Reachability::Unreachable));
        self.knowledge = knowledge;
        Ok(learnt)
    }

    fn answers(&self, node: &NodeName) -> bool {
        self.truth.get(node).copied().unwrap_or(false)
    }

    /// The nodes that a reachability round would probe now.
    #[must_use]
    pub fn probe_targets(&self) -> BTreeSet<NodeName> {
        if self.probing { probe_targets(&self.observe(), &self.drained) } else { BTreeSet::new() }
    }

    /// One pass of the controller. Returns what it wrote.
    fn pass(&mut self) -> Vec<String> {
        let snapshot = self.observe();
        let decision = decide(&snapshot);
        self.journal.note_reasons(&snapshot, &decision);
        self.write(&snapshot, &decision)
    }
}
