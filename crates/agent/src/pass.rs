//! One pass: observe, decide, diff, apply, verify.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use egret_hostmodel::{EgressAddress, Policy, State, Step, Wanted, diff, wanted};
use egret_hostnet::{Kernel, ObserveError, Observed, StepError};
use kube::Client;
use tokio::time::Instant;

use crate::annotation::{Annotation, AnnotationError};
use crate::rights::{Rights, Said};
use crate::view::{View, sources};
use crate::{Objects, Options, told};

/// An address for which somebody else answers is asked for again after this long, doubled each time up to the longest.
/// Mostly it is the node that had it before, which hears of the move a few milliseconds later than this one.
const FIRST_CONTESTED: Duration = Duration::from_millis(100);
const LONGEST_CONTESTED: Duration = Duration::from_secs(10);

/// Why a pass did not make the kernel what it should be.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The kernel cannot be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The node's annotation.
    #[error(transparent)]
    Annotation(#[from] AnnotationError),
    /// Every step was done, and still something is different.
    #[error("after all steps were done the kernel differs: {first}, and {more} more")]
    Unsettled {
        /// The first step that would still have to be done.
        first: Box<Step>,
        /// How many others.
        more: usize,
    },
}

/// What a pass came to.
#[derive(Debug)]
pub(crate) struct Passed {
    /// How many changes were made.
    pub(crate) steps: usize,
    /// Changes were needed though nothing new had been told: somebody else had changed something.
    pub(crate) healed: bool,
    /// What to show.
    pub(crate) view: View,
    /// Why the kernel is not as it should be.
    pub(crate) failure: Option<PassError>,
}

/// An address that somebody else had.
struct Contest {
    /// When it is asked for again.
    again: Instant,
    /// How long that was from when it was asked for last.
    pause: Duration,
}

/// What makes passes over one node's kernel.
pub(crate) struct Passes {
    kernel: Kernel,
    options: Options,
    /// `None` where there is no API server to say it to.
    annotation: Option<Annotation>,
    rights: Rights,
    /// Addresses that somebody else had when they were asked for last.
    contested: BTreeMap<IpAddr, Contest>,
    /// What the last pass that came to its end made true.
    settled: Option<(Policy, State)>,
    /// Every address was announced once by this process: one before may have ended between taking and announcing it.
    announced: bool,
}

impl Passes {
    pub(crate) fn new(kernel: Kernel, client: Option<Client>, options: Options) -> Self {
        let annotation = client.clone().map(|client| Annotation::new(client, options.node.clone()));
        let rights = Rights::new(client, options.node.clone());
        Self { kernel, options, annotation, rights, contested: BTreeMap::new(), settled: None, announced: false }
    }

    /// When a pass is due though nothing happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        // One that failed is made again anyway, and has not dealt with those that were due.
        self.settled.as_ref()?;
        self.contested.values().map(|contest| contest.again).min()
    }

    /// Makes the kernel what `objects` say.
    pub(crate) async fn pass(&mut self, objects: &Objects) -> Result<Passed, ObserveError> {
        let began = Instant::now();
        let mut steps = 0;
        loop {
            let observed = self.kernel.observe().await?;
            let mut policy = self.policy(objects, &observed, began);
            let mut aim = wanted(&policy, &observed.surroundings, &observed.found);
            // First said, then taken: what the node does not say is an egress address, others take for its own.
            let new: BTreeSet<IpAddr> = ips(&aim.state).difference(&ips(&observed.found)).copied().collect();
            let all = ips(&observed.found).union(&new).copied().collect();
            let said = objects.said_addresses(&self.options.node);
            let unsaid = self.say(&policy, &all, &said).await.err();
            if unsaid.is_some() && !new.is_empty() {
                // Everything else is made all the same.
                policy.unconfirmed.extend(new);
                aim = wanted(&policy, &observed.surroundings, &observed.found);
            }
            let needed = diff(&observed.found, &aim.state);
            let told = self.settled.as_ref() != Some(&(policy.clone(), aim.state.clone()));
            let failure = match self.make(&policy, &aim, &needed, &mut steps).await {
                Err(PassError::Step(StepError::Contested { address, by })) => {
                    tracing::warn!(address = %address.ip, link = address.link, %by, "somebody else answers for an egress address");
                    self.contest(address.ip);
                    continue;
                }
                // No other object waits for somebody to take it away.
                Err(PassError::Step(StepError::OccupiedAddress { address })) => {
                    tracing::warn!(address = %address.ip, link = address.link, "somebody else put an egress address on the link");
                    self.contest(address.ip);
                    continue;
                }
                done => match (done, unsaid) {
                    (Ok(()), None) => self.say(&policy, &ips(&aim.state), &said).await.err().map(PassError::from),
                    (Ok(()), Some(unsaid)) => Some(unsaid.into()),
                    (Err(error), _) => Some(error),
                },
            };
            let healed = !needed.is_empty() && !told;
            let shown = if failure.is_none() { &aim.state } else { &observed.found };
            let view = View {
                node: self.options.node.to_string(),
                datapath: policy.datapath,
                others: policy.others,
                settled: failure.is_none(),
                failure: failure.as_ref().map(|error| egret_daemon::chain(error)),
                sources: sources(shown),
                reports: aim.reports,
            };
            if failure.is_none() {
                // Asked for again and got, or not wanted any more.
                self.contested.retain(|_, contest| contest.again > began);
            }
            self.settled = failure.is_none().then_some((policy, aim.state));
            return Ok(Passed { steps, healed, view, failure });
        }
    }

    fn contest(&mut self, ip: IpAddr) {
        let pause = self.contested.get(&ip).map_or(FIRST_CONTESTED, |before| (before.pause * 2).min(LONGEST_CONTESTED));
        self.contested.insert(ip, Contest { again: Instant::now() + pause, pause });
    }

    /// The policy of a pass that began then.
    fn policy(&self, objects: &Objects, observed: &Observed, began: Instant) -> Policy {
        let waiting = self.contested.iter().filter(|(_, contest)| contest.again > began);
        let contested: BTreeSet<IpAddr> = waiting.map(|(ip, _)| *ip).collect();
        let unconfirmed = self.rights.unconfirmed().clone();
        Policy { contested, unconfirmed, ..told::policy(objects, &self.options, observed.others) }
    }

    /// Waits until somebody claims an address of this node, and it is known whose it is.
    pub(crate) async fn doubted(&mut self) -> Said {
        self.rights.next().await
    }

    /// Tells who claimed an address that it is here.
    pub(crate) async fn defend(&mut self, ip: IpAddr) {
        let held = self.settled.iter().flat_map(|(_, state)| &state.addresses);
        let steps: Vec<Step> = held.filter(|address| address.ip == ip).cloned().map(announce).collect();
        if let Some(error) = self.kernel.apply(&steps).await.failed {
            tracing::warn!(address = %ip, error = egret_daemon::chain(&error), "failed to announce an egress address");
        }
    }

    async fn make(
        &mut self,
        policy: &Policy,
        aim: &Wanted,
        needed: &[Step],
        steps: &mut usize,
    ) -> Result<(), PassError> {
        for step in needed {
            tracing::debug!(%step, "to do");
        }
        let mut state = aim.state.clone();
        if !needed.is_empty() {
            self.apply(needed, steps).await?;
            let after = self.kernel.observe().await?;
            state = wanted(policy, &after.surroundings, &after.found).state;
            let left = diff(&after.found, &state);
            if let Some(first) = left.first() {
                return Err(PassError::Unsettled { first: Box::new(first.clone()), more: left.len() - 1 });
            }
        }
        if !self.announced {
            let all: Vec<Step> = state.addresses.iter().cloned().map(announce).collect();
            self.apply(&all, &mut 0).await?;
            self.announced = true;
        }
        let taken = needed.iter().any(|step| matches!(step, Step::TakeAddress { .. }));
        Ok(self.rights.hold(&self.kernel, policy, &state.addresses, taken).await?)
    }

    async fn apply(&self, needed: &[Step], steps: &mut usize) -> Result<(), StepError> {
        let applied = self.kernel.apply(needed).await;
        *steps += applied.done;
        applied.failed.map_or(Ok(()), Err)
    }

    /// Says which egress addresses the node has, unless ovnkube-node does.
    async fn say(
        &mut self,
        policy: &Policy,
        addresses: &BTreeSet<IpAddr>,
        said: &BTreeSet<IpAddr>,
    ) -> Result<(), AnnotationError> {
        match &mut self.annotation {
            Some(annotation) if !policy.others.addresses => annotation.say(addresses, said).await,
            _ => Ok(()),
        }
    }
}

fn ips(state: &State) -> BTreeSet<IpAddr> {
    state.addresses.iter().map(|address| address.ip).collect()
}

fn announce(address: EgressAddress) -> Step {
    Step::Announce { address }
}

/// Takes away everything that is ours.
///
/// # Errors
/// What could not be observed or undone.
pub async fn clean_up(kernel: &Kernel) -> Result<usize, PassError> {
    let observed = kernel.observe().await?;
    let steps = diff(&observed.found, &State::default());
    let applied = kernel.apply(&steps).await;
    match applied.failed {
        Some(error) => Err(error.into()),
        None => Ok(applied.done),
    }
}
