//! One pass: observe, decide, diff, apply, verify.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use egret_hostmodel::{Policy, State, Step, Wanted, diff, wanted};
use egret_hostnet::{Kernel, ObserveError, Observed, StepError};
use kube::Client;
use tokio::time::Instant;

use crate::annotation::{Annotation, AnnotationError};
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
    /// Addresses that somebody else had when they were asked for last.
    contested: BTreeMap<IpAddr, Contest>,
    /// What the last pass that came to its end made true.
    settled: Option<(Policy, State)>,
}

impl Passes {
    pub(crate) fn new(kernel: Kernel, client: Option<Client>, options: Options) -> Self {
        let annotation = client.map(|client| Annotation::new(client, options.node.clone()));
        Self { kernel, options, annotation, contested: BTreeMap::new(), settled: None }
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
            let policy = self.policy(objects, &observed, began);
            let aim = wanted(&policy, &observed.surroundings, &observed.found);
            let needed = diff(&observed.found, &aim.state);
            let told = self.settled.as_ref() != Some(&(policy.clone(), aim.state.clone()));
            let failure = match self.make(&policy, &aim, &observed, &needed, objects, &mut steps).await {
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
                done => done.err(),
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
        told::policy(objects, &self.options, observed.others, &contested)
    }

    async fn make(
        &mut self,
        policy: &Policy,
        aim: &Wanted,
        observed: &Observed,
        needed: &[Step],
        objects: &Objects,
        steps: &mut usize,
    ) -> Result<(), PassError> {
        let ips = |state: &State| state.addresses.iter().map(|address| address.ip).collect::<BTreeSet<_>>();
        let said = objects.said_addresses(&self.options.node);
        // First said, then taken: what the node does not say is an egress address, others take for its own.
        let all = ips(&aim.state).union(&ips(&observed.found)).copied().collect();
        self.say(policy, &all, &said).await?;
        if needed.is_empty() {
            return Ok(());
        }
        for step in needed {
            tracing::debug!(%step, "to do");
        }
        let applied = self.kernel.apply(needed).await;
        *steps += applied.done;
        if let Some(error) = applied.failed {
            return Err(error.into());
        }
        let after = self.kernel.observe().await?;
        let aim = wanted(policy, &after.surroundings, &after.found);
        let left = diff(&after.found, &aim.state);
        if let Some(first) = left.first() {
            return Err(PassError::Unsettled { first: Box::new(first.clone()), more: left.len() - 1 });
        }
        self.say(policy, &ips(&aim.state), &said).await?;
        Ok(())
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
