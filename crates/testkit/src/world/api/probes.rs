//! A prober without a wire: it answers when it is told to, and for all targets together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use egret_brain::Answer;
use egret_controller::probe::Probes;
use egret_core::NodeName;
use tokio::sync::mpsc::UnboundedSender;

type Answers = UnboundedSender<(NodeName, Answer)>;

/// What the controller's prober and the stage share.
#[derive(Clone, Default)]
pub(super) struct Played(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    targets: BTreeSet<NodeName>,
    answers: Option<Answers>,
}

impl Played {
    /// The controller's end.
    pub(super) fn prober(&self, answers: Answers) -> Box<dyn Probes> {
        self.with(|state| *state = State { targets: BTreeSet::new(), answers: Some(answers) });
        Box::new(PlayedProber(self.clone()))
    }

    pub(super) fn targets(&self) -> BTreeSet<NodeName> {
        self.with(|state| state.targets.clone())
    }

    /// Answers for every target. Whether there was a controller to hear it.
    pub(super) fn answer(&self, truth: &BTreeMap<NodeName, bool>) -> bool {
        self.with(|state| {
            let alive = |node: &&NodeName| truth.get(*node) == Some(&true);
            let (alive, silent): (Vec<&NodeName>, Vec<&NodeName>) = state.targets.iter().partition(alive);
            let Some(answers) = &state.answers else { return false };
            [(&alive, Answer::Alive), (&silent, Answer::Late), (&silent, Answer::Silent)]
                .into_iter()
                .all(|(nodes, answer)| nodes.iter().all(|node| answers.send(((*node).clone(), answer)).is_ok()))
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct PlayedProber(Played);

impl Probes for PlayedProber {
    fn set_targets(&mut self, targets: BTreeMap<NodeName, Vec<IpAddr>>) {
        self.0.with(|state| state.targets = targets.into_keys().collect());
    }
}
