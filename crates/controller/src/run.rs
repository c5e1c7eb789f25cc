//! The loop: everything that happens goes into the brain, one after the other, and what it says is done.

mod anew;
mod inlets;
mod parts;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use egret_api::Kind;
use egret_brain::{Answer, Brain, Input, Now};
use egret_core::{NodeName, Timestamp};
use egret_daemon::watch as watches;
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::anew::Anew;
use self::inlets::{Arrival, Inlets};
pub use self::parts::Part;
use self::parts::Parts;
use crate::config::Config;
use crate::events::{self, Events};
use crate::lease::Candidate;
use crate::metrics::Metrics;
use crate::probe::Probes;
use crate::shared::{Question, Questions, Shared};
use crate::write::{Order, Writer};

/// The loop turns at least this often, so that one that stands still can be told from one that has nothing to do.
const BEAT: Duration = Duration::from_secs(1);
/// So many changes go into one pass at most: a flood must not keep the first of them waiting for ever.
const MOST: usize = 20_000;
/// When it stops: for writes under way, and then for what else has to be said.
const LAST_WRITES: Duration = Duration::from_secs(5);
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why the controller ended though nobody told it to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A part of it ended, which none does by itself.
    #[error("the {part} ended by itself")]
    Ended {
        /// Which.
        part: Part,
    },
    /// A part of it panicked.
    #[error("the {part} failed by a mistake in it")]
    Panicked {
        /// Which.
        part: Part,
        /// Where the panic's words are.
        #[source]
        source: tokio::task::JoinError,
    },
}

/// What a controller works with.
pub struct Surroundings {
    /// To the API server; see [`crate::client`].
    pub client: Client,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is shown.
    pub shared: Arc<Shared>,
    /// The other end of `shared`.
    pub questions: Questions,
    /// Ends the controller in good order.
    pub stop: CancellationToken,
}

/// Runs the controller until it is told to stop. It then writes nothing new, lets the writes under way end, gives the
/// lease up and stops probing.
///
/// # Errors
/// If one of its parts ends: whoever runs the process has to start it again.
pub async fn run(
    config: &Config,
    surroundings: Surroundings,
    probes: impl FnOnce(mpsc::UnboundedSender<(NodeName, Answer)>) -> Box<dyn Probes>,
) -> Result<(), RunError> {
    let Surroundings { client, metrics, shared, questions, stop } = surroundings;
    let election = &config.election;
    let (candidate, standing) =
        Candidate::new(client.clone(), &election.namespace, &election.name, election.identity.clone(), election.terms);
    let brain = Brain::new(config.brain());
    let (changes_in, changes) = mpsc::channel(watches::WAITING);
    let (results_in, results) = mpsc::unbounded_channel();
    let (answers_in, answers) = mpsc::unbounded_channel();
    let (orders, ordered) = mpsc::unbounded_channel();
    let (events, recorder) = events::recorder(client.clone(), election.identity.clone(), Arc::clone(&metrics));
    let writing =
        Writer::new(client.clone(), standing.clone(), results_in, Arc::clone(&metrics), config.writes_at_once);

    let anew = Anew::new(client.clone(), brain.kinds());
    let mut parts = Parts::new(candidate);
    for kind in brain.kinds() {
        let watch = crate::watch(client.clone(), kind, changes_in.clone(), Arc::clone(&metrics));
        parts.add_watch(kind, watch.run());
    }
    parts.add(Part::Writer, writing.run(ordered, parts.stopping()));
    parts.add(Part::Recorder, recorder.run());
    let mut turning = Loop {
        brain,
        started: Instant::now(),
        metrics,
        shared,
        inlets: Inlets { changes, results, answers, standing, questions },
        orders,
        events,
        probes: probes(answers_in),
        targets: Arc::default(),
        term: None,
        accepted: None,
        outstanding: 0,
        anew,
        wake: None,
    };
    let ended = turning.run(config.coalesce, &mut parts, &stop).await;
    turning.probes.stop();
    turning.show_leading(false);
    // With the loop go the ends of the channels: the recorder says what it has and ends.
    drop(turning);
    parts.end(LAST_WRITES, LAST_WORDS).await;
    ended
}

struct Loop {
    brain: Brain,
    started: Instant,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    inlets: Inlets,
    orders: mpsc::UnboundedSender<Order>,
    events: Events,
    probes: Box<dyn Probes>,
    targets: Arc<BTreeMap<NodeName, Vec<IpAddr>>>,
    /// The term in which the brain believes to lead.
    term: Option<u64>,
    /// What the brain was last told in this term.
    accepted: Option<u64>,
    /// Writes whose results are not in.
    outstanding: usize,
    anew: Anew,
    wake: Option<Instant>,
}

impl Loop {
    async fn run(&mut self, coalesce: Duration, parts: &mut Parts, stop: &CancellationToken) -> Result<(), RunError> {
        loop {
            self.shared.beat();
            let until = self.next_time();
            let arrival = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                error = parts.ended() => return Err(error),
                lists = self.anew.next() => Arrival::Lists(lists),
                arrival = self.inlets.next(until) => arrival,
            };
            match arrival {
                Arrival::Question(question) => {
                    self.answer(question);
                    continue;
                }
                Arrival::Input(input) => {
                    if !self.take(input) {
                        continue;
                    }
                    // What belongs together comes together: one decision for all of it.
                    tokio::time::sleep(coalesce).await;
                    for _ in 0..MOST {
                        let Some(input) = self.inlets.more() else { break };
                        self.take(input);
                    }
                }
                Arrival::Lists(lists) => {
                    for list in lists {
                        self.brain.take(list, self.now());
                    }
                }
                Arrival::Time if !self.is_due() => continue,
                Arrival::Standing | Arrival::Time => {}
            }
            self.pass();
        }
    }

    /// When to look again though nothing comes in.
    fn next_time(&self) -> Instant {
        let ends = self.inlets.standing.borrow().right_now().map(|right| right.until);
        let beat = Instant::now() + BEAT;
        [self.wake, ends].into_iter().flatten().fold(beat, Instant::min)
    }

    fn is_due(&self) -> bool {
        let wake = self.wake.is_some_and(|wake| wake <= Instant::now());
        wake || self.inlets.standing.borrow().right_now().map(|right| right.term) != self.term
    }

    /// Hands it to the brain; says whether there is anything to decide.
    fn take(&mut self, input: Input) -> bool {
        match &input {
            Input::Written { .. } => self.outstanding = self.outstanding.saturating_sub(1),
            Input::Probed { .. } => {}
            told => self.anew.note(told),
        }
        // In a healthy cluster more than a thousand nodes a second say that they are alive, as they did before.
        let probed = matches!(input, Input::Probed { .. });
        self.brain.take(input, self.now());
        !probed || self.brain.due(self.now())
    }

    fn pass(&mut self) {
        self.stand();
        if self.brain.ready() {
            self.shared.set_listed();
        }
        let began = Instant::now();
        let output = self.brain.pass(self.now());
        if self.term.is_some() && self.brain.ready() {
            self.metrics.decided(began.elapsed());
        }
        if let Some(term) = self.term {
            self.outstanding += output.writes.len();
            for write in output.writes {
                // Without a writer the process is about to end.
                let _ = self.orders.send(Order { term, write });
            }
        }
        for event in output.events {
            self.events.raise(event);
        }
        if !Arc::ptr_eq(&output.targets, &self.targets) && output.targets != self.targets {
            self.probes.set_targets(BTreeMap::clone(&output.targets));
            self.targets = output.targets;
        }
        // What is due already has been done just now.
        let soon = Instant::now() + Duration::from_millis(1);
        self.wake = output.wake.map(|wake| (self.started + wake).max(soon));
    }

    /// Tells the brain whether it leads, as it is now.
    fn stand(&mut self) {
        let standing = *self.inlets.standing.borrow_and_update();
        let term = standing.right_now().map(|right| right.term);
        if self.term.is_some() && self.term != term {
            tracing::warn!("this instance leads no more");
            self.brain.take(Input::Leading(false), self.now());
            (self.term, self.accepted) = (None, None);
            self.anew.forget();
        }
        // What an earlier leadership has begun ends first: two writes of one object would be under way.
        if self.term.is_none()
            && let Some(new) = term
            && self.outstanding == 0
            && self.anew.listed(new)
        {
            self.brain.take(Input::Leading(true), self.now());
            self.term = term;
        }
        if let Some(number) = standing.silence_accepted.filter(|number| Some(*number) != self.accepted)
            && self.term.is_some()
        {
            self.accepted = Some(number);
            self.brain.take(Input::SilenceAccepted(number), self.now());
        }
        self.show_leading(self.term.is_some());
    }

    fn show_leading(&self, leading: bool) {
        self.shared.set_leading(leading);
        self.metrics.leading(leading);
    }

    fn answer(&self, question: Question) {
        // Whoever asked may have given up.
        match question {
            Question::View(asker) => drop(asker.send(self.brain.view(self.now()))),
            Question::Numbers(asker) => drop(asker.send(self.brain.numbers())),
        }
    }

    fn now(&self) -> Now {
        Now { elapsed: self.started.elapsed(), wall: Timestamp(jiff::Timestamp::now().as_second()) }
    }
}

/// The kinds that a controller watches, for whoever gives it its rights.
#[must_use]
pub fn watched(config: &Config) -> Vec<Kind> {
    Brain::new(config.brain()).kinds()
}
