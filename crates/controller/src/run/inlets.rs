//! Where things come into the loop.

use egret_brain::{Answer, Input};
use egret_core::NodeName;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::lease::Standing;
use crate::shared::{Question, Questions};

/// One for each part that has something to say.
pub(super) struct Inlets {
    pub(super) changes: mpsc::Receiver<Input>,
    pub(super) results: mpsc::UnboundedReceiver<Input>,
    pub(super) answers: mpsc::UnboundedReceiver<(NodeName, Answer)>,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) questions: Questions,
}

/// What has come in.
pub(super) enum Arrival {
    Input(Input),
    Question(Question),
    /// What leaders write, as it is in this term; see [`super::anew`].
    Lists(Vec<Input>),
    /// The election has got on.
    Standing,
    /// It is time for something.
    Time,
}

impl Inlets {
    /// Waits for the next arrival. Losing the other end of a channel is no arrival: the part that had it has ended, which
    /// is seen elsewhere.
    pub(super) async fn next(&mut self, until: Instant) -> Arrival {
        tokio::select! {
            Some(input) = self.changes.recv() => Arrival::Input(input),
            Some(input) = self.results.recv() => Arrival::Input(input),
            Some((node, answer)) = self.answers.recv() => Arrival::Input(Input::Probed { node, answer }),
            Some(question) = self.questions.recv() => Arrival::Question(question),
            Ok(()) = self.standing.changed() => Arrival::Standing,
            () = tokio::time::sleep_until(until) => Arrival::Time,
        }
    }

    /// What is there already.
    pub(super) fn more(&mut self) -> Option<Input> {
        let change = self.changes.try_recv().ok();
        let result = change.or_else(|| self.results.try_recv().ok());
        result.or_else(|| self.answers.try_recv().ok().map(|(node, answer)| Input::Probed { node, answer }))
    }
}
