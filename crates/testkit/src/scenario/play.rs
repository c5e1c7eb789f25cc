//! Playing one scenario.

use std::error::Error;

use super::check::Scene;
use super::model::{NodeSpec, PlatformName, Scenario};
use super::op::{Op, Settle, Step};
use super::tally::{Failure, Tally};
use crate::world::{ChangeError, Stage, World};

/// How a scenario went.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What was checked.
    pub tally: Tally,
    /// What failed, with the step.
    pub failures: Vec<StepFailure>,
}

/// A failure and the step it was found in.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// The number of the step, from 1; 0 before the first.
    pub step: usize,
    /// What the step does.
    pub op: &'static str,
    /// What failed.
    pub failure: Failure,
}

/// The outcome in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Something was checked and nothing failed.
    Passed,
    /// Something failed, or there was nothing to check.
    Failed,
}

impl Played {
    /// The outcome in a word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.failures.is_empty() && self.tally.checked > 0 { Verdict::Passed } else { Verdict::Failed }
    }

    fn record(&mut self, step: usize, op: &'static str) {
        let failures = std::mem::take(&mut self.tally.failures);
        self.failures.extend(failures.into_iter().map(|failure| StepFailure { step, op, failure }));
    }
}

/// Plays a scenario on a stage, which is emptied before.
#[must_use]
pub fn play(scenario: &Scenario, stage: &mut dyn Stage) -> Played {
    let (id, title) = (scenario.id.clone(), scenario.title.clone());
    let mut played = Played { id, title, tally: Tally::default(), failures: Vec::new() };
    match furnished(scenario, stage) {
        Ok(mut world) => {
            act(scenario, &mut world, &mut played);
            if played.tally.checked == 0 && played.failures.is_empty() {
                played.tally.fail("the scenario".to_owned(), "it expects something".to_owned(), "nothing".to_owned());
                played.record(0, "setup");
            }
            if let Err(error) = world.stop() {
                played.tally.failures.push(impossible("the controller", "it stops", &error));
                played.record(scenario.steps.len(), "end");
            }
        }
        Err(error) => {
            played.tally.failures.push(impossible("nodes and objects", "they can be stored", &error));
            played.record(0, "setup");
        }
    }
    played
}

fn act(scenario: &Scenario, world: &mut World<'_>, played: &mut Played) {
    let cloud = scenario.settings.platform != PlatformName::BareMetal;
    for (i, step) in scenario.steps.iter().enumerate() {
        let before = world.state().clone();
        let performed = perform(world, step);
        let goes_on = !matches!(performed, Err(ChangeError::Stage(_)));
        match performed {
            Ok(()) => {
                let history = world.take_history();
                Scene::new(world, &before, &history, &step.op, cloud).check(&step.expect, &mut played.tally);
            }
            Err(error) => played.tally.failures.push(impossible("the step", "it can be done", &error)),
        }
        played.record(i + 1, step.op.name());
        if !goes_on {
            return;
        }
    }
    relist(world, &mut played.tally);
    played.record(scenario.steps.len(), "relist");
}

/// A relist tells nothing new, so nothing comes of it.
fn relist(world: &mut World<'_>, tally: &mut Tally) {
    if let Err(error) = world.relist() {
        tally.failures.push(impossible("a relist", "it can be done", &error));
        return;
    }
    let history = world.take_history();
    let wrote: Vec<String> = history.attempts.iter().map(ToString::to_string).collect();
    if !wrote.is_empty() || !history.raised.is_empty() {
        let found = format!("writes of {wrote:?}, events {:?}", history.raised);
        tally.fail("invariant: a relist".to_owned(), "no write, no event".to_owned(), found);
    }
}

fn impossible(what: &str, expected: &str, error: &dyn Error) -> Failure {
    let mut found = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        found = format!("{found}: {error}");
        cause = error.source();
    }
    Failure { what: what.to_owned(), expected: expected.to_owned(), found }
}

fn furnished<'a>(scenario: &Scenario, stage: &'a mut dyn Stage) -> Result<World<'a>, ChangeError> {
    let mut world = World::open(stage, &scenario.settings, nodes(scenario))?;
    scenario.nodes.iter().try_for_each(|node| world.add_node(node))?;
    scenario.objects.iter().try_for_each(|object| world.insert(object.clone()))?;
    world.begin()?;
    Ok(world)
}

/// Every node that appears.
fn nodes(scenario: &Scenario) -> impl Iterator<Item = &NodeSpec> {
    let ops = scenario.steps.iter().flat_map(|step| std::iter::once(&step.op).chain(step.op.parts()));
    scenario.nodes.iter().chain(ops.filter_map(|op| match op {
        Op::AddNode { node } => Some(node),
        _ => None,
    }))
}

fn perform(world: &mut World<'_>, step: &Step) -> Result<(), ChangeError> {
    match step.op {
        Op::Start {} => world.start()?,
        Op::Restart { .. } => {
            world.stop()?;
            world.change(&step.op)?;
            world.start()?;
        }
        Op::HealthTick {} => drop(world.round()?),
        _ => world.change(&step.op)?,
    }
    Ok(world.settle(step.settle == Settle::Full)?)
}
