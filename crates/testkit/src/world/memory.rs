//! The stage in memory: the real brain before a store that answers at once, and made-up time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use egret_api::{Kind, ObjectKey};
use egret_brain::{Answer, Brain, Config, Input, Now, Output, Write, WriteError};
use egret_core::{NodeName, Timestamp};
use serde_json::Value;

use super::disorder::Disorder;
use super::history::{History, Raised, Writer};
use super::stage::{Setup, Stage, StageError};
use super::store::Store;

/// A controller that is content needs a handful of passes.
const MOST_PASSES: usize = 200;
/// A wake that is nearer than this is part of coming to rest (an object rests after a failed write), one that is
/// farther is a wait of its own (a cool-down lasts 30 s).
const SOON: Duration = Duration::from_secs(20);
/// Between two passes.
const INSTANT: Duration = Duration::from_millis(1);
/// Between two reachability rounds: the prober's interval.
const INTERVAL: Duration = Duration::from_millis(400);
/// Noon of 2026-01-02: later than every object.
const WALL: i64 = 1_767_355_200;

/// The stage in memory.
pub struct Memory {
    setup: Setup,
    store: Store,
    brain: Option<Brain>,
    /// The kinds that it watches.
    kinds: Vec<Kind>,
    clock: Duration,
    /// How many versions of each kind the brain has seen, counted over all kinds.
    seen: BTreeMap<Kind, usize>,
    targets: BTreeSet<NodeName>,
    wake: Option<Duration>,
    /// Writes that went out and have no result yet.
    pub(super) flying: Vec<Write>,
    /// Results that the brain has not heard of.
    pub(super) results: Vec<Input>,
    /// The objects of these results.
    pub(super) unheard: Vec<ObjectKey>,
    raised: Vec<Raised>,
    attempts: Vec<ObjectKey>,
    told: usize,
    disorder: Option<Disorder>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// Everything happens at once and in order.
    #[must_use]
    pub fn new() -> Self {
        Self::with(None)
    }

    /// Watches, writes and their results overtake each other and fail as the seed says; what is under way comes to its
    /// end all the same.
    #[must_use]
    pub fn disordered(seed: u64) -> Self {
        Self::with(Some(Disorder::new(seed)))
    }

    fn with(disorder: Option<Disorder>) -> Self {
        Self {
            setup: Setup::default(),
            store: Store::default(),
            brain: None,
            kinds: Vec::new(),
            clock: Duration::ZERO,
            seen: BTreeMap::new(),
            targets: BTreeSet::new(),
            wake: None,
            flying: Vec::new(),
            results: Vec::new(),
            unheard: Vec::new(),
            raised: Vec::new(),
            attempts: Vec::new(),
            told: 0,
            disorder,
        }
    }

    fn now(&self) -> Now {
        let seconds = i64::try_from(self.clock.as_secs()).unwrap_or(i64::MAX);
        Now { elapsed: self.clock, wall: Timestamp(WALL.saturating_add(seconds)) }
    }

    /// Nothing happens where no controller runs.
    pub(super) fn take(&mut self, input: Input) {
        let now = self.now();
        if let Some(brain) = &mut self.brain {
            brain.take(input, now);
        }
    }

    /// One pass. Whether anything came of it.
    pub(super) fn pass(&mut self) -> Result<bool, StageError> {
        self.clock += INSTANT;
        let now = self.now();
        let Some(brain) = &mut self.brain else { return Ok(false) };
        let Output { writes, events, targets, wake } = brain.pass(now);
        self.targets = targets.keys().cloned().collect();
        self.wake = wake;
        let active = !writes.is_empty() || !events.is_empty();
        self.raised.extend(events.into_iter().map(|event| Raised {
            kind: event.object.kind.name().to_owned(),
            name: event.object.name,
            uid: event.uid,
            reason: event.reason.to_owned(),
            message: event.message,
        }));
        for write in writes {
            let flies = self.flying.iter().map(|other| &other.object).chain(&self.unheard);
            if flies.into_iter().any(|other| *other == write.object) {
                return Err(StageError::Overlapping(write.object));
            }
            self.attempts.push(write.object.clone());
            self.flying.push(write);
        }
        Ok(active)
    }

    /// Executes a write that went out; its result waits to be heard.
    pub(super) fn execute(&mut self, write: &Write) -> Result<Option<Value>, WriteError> {
        self.store.execute(&write.object, &write.action)
    }

    /// The kinds of which the brain has not seen everything.
    pub(super) fn behind(&self) -> Vec<Kind> {
        let versions = self.store.versions();
        let unseen = |kind: &Kind| {
            let seen = self.seen.get(kind).copied().unwrap_or_default();
            versions[seen..].iter().any(|version| version.key.kind == *kind)
        };
        self.kinds.iter().copied().filter(unseen).collect()
    }

    /// The watch of a kind tells the next change.
    pub(super) fn tell_next(&mut self, kind: Kind) {
        let seen = self.seen.get(&kind).copied().unwrap_or_default();
        let versions = self.store.versions();
        let Some(next) = (seen..versions.len()).find(|i| versions[*i].key.kind == kind) else { return };
        self.seen.insert(kind, next + 1);
        let version = &versions[next];
        let input = match &version.object {
            Some(object) => Input::Seen { kind, object: object.clone() },
            None => Input::Gone { kind, object: self.last_of(&version.key, next) },
        };
        self.take(input);
    }

    /// The object as it was before its deletion at `index`.
    fn last_of(&self, key: &ObjectKey, index: usize) -> Value {
        let before = self.store.versions()[..index].iter().rev().find(|version| version.key == *key);
        before.and_then(|version| version.object.clone()).unwrap_or_default()
    }

    /// The watch of a kind lists anew.
    pub(super) fn list(&mut self, kind: Kind) {
        self.seen.insert(kind, self.store.versions().len());
        let objects = self.store.list(kind);
        self.take(Input::Listed { kind, objects });
    }

    /// Goes to the next wake if it is soon. Whether it was.
    pub(super) fn wait(&mut self) -> bool {
        let Some(wake) = self.wake.filter(|wake| *wake <= self.clock + SOON) else { return false };
        self.clock = self.clock.max(wake);
        true
    }

    fn rest_in_order(&mut self) -> Result<(), StageError> {
        let mut last = Vec::new();
        for _ in 0..MOST_PASSES {
            while let [kind, ..] = self.behind()[..] {
                self.tell_next(kind);
            }
            let active = self.pass()?;
            if !active && !self.wait() {
                return Ok(());
            }
            // In any order, so in the one that nobody would have in mind.
            for write in std::mem::take(&mut self.flying).into_iter().rev() {
                last.push(format!("{} {:?}", write.object, write.action));
                let result = self.execute(&write);
                self.take(Input::Written { id: write.id, result });
            }
        }
        Err(StageError::Endless { turns: MOST_PASSES, last: last.split_off(last.len().saturating_sub(6)) })
    }
}

impl Stage for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn open(&mut self, setup: &Setup) -> Result<(), StageError> {
        *self = Self::with(self.disorder.take());
        self.store = Store::new(setup.definition);
        self.setup = setup.clone();
        Ok(())
    }

    fn create(&mut self, object: Value) -> Result<(), StageError> {
        let key = super::object::key_of(&object);
        self.store.create(object, Writer::Other).map(drop).map_err(|error| match key {
            Some(key) => refused(key, &error),
            None => StageError::Refused { key: ObjectKey::cluster(Kind::Node, ""), reason: error.to_string() },
        })
    }

    fn edit(&mut self, key: &ObjectKey, change: &dyn Fn(&mut Value)) -> Result<(), StageError> {
        let mut object = self.store.get(key).ok_or_else(|| StageError::NoSuchObject(key.clone()))?.clone();
        change(&mut object);
        self.store.replace(key, object, Writer::Other).map(drop).map_err(|error| refused(key.clone(), &error))
    }

    fn delete(&mut self, key: &ObjectKey) -> Result<(), StageError> {
        self.store.delete(key, Writer::Other).map_err(|_| StageError::NoSuchObject(key.clone()))
    }

    fn start(&mut self) -> Result<(), StageError> {
        let options = self.setup.options.clone();
        let brain = Brain::new(Config { options, probing: self.setup.probing, ..Config::default() });
        self.kinds = brain.kinds();
        self.brain = Some(brain);
        self.take(Input::Leading(true));
        self.relist()
    }

    fn stop(&mut self) -> Result<(), StageError> {
        self.brain = None;
        self.targets.clear();
        self.wake = None;
        self.flying.clear();
        self.results.clear();
        self.unheard.clear();
        Ok(())
    }

    fn rest(&mut self) -> Result<(), StageError> {
        match self.disorder.take() {
            None => self.rest_in_order(),
            Some(mut disorder) => {
                let rest = disorder.rest(self);
                self.disorder = Some(disorder);
                rest
            }
        }
    }

    fn targets(&self) -> BTreeSet<NodeName> {
        self.targets.clone()
    }

    fn probe(&mut self, truth: &BTreeMap<NodeName, bool>) -> Result<(), StageError> {
        self.clock += INTERVAL;
        let (alive, silent): (Vec<NodeName>, Vec<NodeName>) =
            self.targets.clone().into_iter().partition(|node| truth.get(node) == Some(&true));
        for (nodes, answer) in [(&alive, Answer::Alive), (&silent, Answer::Late), (&silent, Answer::Silent)] {
            for node in nodes {
                self.take(Input::Probed { node: node.clone(), answer });
            }
        }
        Ok(())
    }

    fn relist(&mut self) -> Result<(), StageError> {
        self.kinds.clone().into_iter().for_each(|kind| self.list(kind));
        Ok(())
    }

    fn history(&mut self) -> Result<History, StageError> {
        let versions = self.store.versions()[self.told..].to_vec();
        self.told += versions.len();
        Ok(History { versions, raised: std::mem::take(&mut self.raised), attempts: std::mem::take(&mut self.attempts) })
    }
}

fn refused(key: ObjectKey, error: &WriteError) -> StageError {
    StageError::Refused { key, reason: error.to_string() }
}
