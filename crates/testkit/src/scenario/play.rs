//! Playing one scenario.

use super::check::{Memory, Scene};
use super::model::{CloudAck, PlatformName, Scenario};
use super::op::{Op, Settle, Step};
use super::tally::{Failure, Tally, Wait};
use crate::world::{ChangeError, Loop, World};

/// How a scenario went.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What was checked and what was skipped.
    pub tally: Tally,
    /// What failed, with the step.
    pub failures: Vec<StepFailure>,
    /// Where it ended early.
    pub cut: Option<Cut>,
}

/// A failure and the step it was found in.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// The number of the step, from 1.
    pub step: usize,
    /// What the step does.
    pub op: &'static str,
    /// What failed.
    pub failure: Failure,
}

/// The end of a scenario that cannot be played to its end yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What the rest waits for.
    pub wait: Wait,
    /// How many steps were not played.
    pub steps: usize,
}

/// The outcome in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Something was checked and nothing failed.
    Passed,
    /// Something failed.
    Failed,
    /// Nothing could be checked.
    Skipped,
}

impl Played {
    /// The outcome in a word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.failures.is_empty(), self.tally.checked) {
            (false, _) => Verdict::Failed,
            (true, 0) => Verdict::Skipped,
            (true, _) => Verdict::Passed,
        }
    }
}

/// Why a step has no end that could be checked.
enum Halt {
    /// It cannot be done yet.
    Waits(Wait),
    /// It cannot be done, or has no end.
    Fails(Failure),
}

impl From<ChangeError> for Halt {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::NeedsCloudConfirmation => Self::Waits(Wait::CloudConfirmation),
            _ => Self::Fails(failure("the step", "it can be done", error.to_string())),
        }
    }
}

impl From<Loop> for Halt {
    fn from(endless: Loop) -> Self {
        match endless {
            Loop::MassSilence(_) => Self::Waits(Wait::MassSilence),
            Loop::Endless(_) => Self::Fails(failure("the world", "it comes to rest", endless.to_string())),
        }
    }
}

fn failure(what: &str, expected: &str, found: String) -> Failure {
    Failure { what: what.to_owned(), expected: expected.to_owned(), found }
}

/// Plays a scenario in a world of its own.
#[must_use]
pub fn play(scenario: &Scenario) -> Played {
    let (id, title) = (scenario.id.clone(), scenario.title.clone());
    let mut played = Played { id, title, tally: Tally::default(), failures: Vec::new(), cut: None };
    let mut world = match furnished(scenario) {
        Ok(world) => world,
        Err(error) => {
            let failure = failure("nodes and objects", "they can be stored", error.to_string());
            played.failures.push(StepFailure { step: 0, op: "setup", failure });
            return played;
        }
    };
    for (i, step) in scenario.steps.iter().enumerate() {
        let before = Memory::of(&world);
        match perform(&mut world, step) {
            Ok(()) => {
                let settings = &scenario.settings;
                let cloud_waits =
                    settings.platform != PlatformName::BareMetal && settings.cloud_ack == CloudAck::Manual;
                Scene::new(&world, &before, cloud_waits).check(&step.expect, &mut played.tally);
                world.turn_page();
            }
            Err(Halt::Fails(failure)) => played.tally.failures.push(failure),
            Err(Halt::Waits(wait)) => {
                let rest = &scenario.steps[i..];
                played.cut = Some(Cut { wait, steps: rest.len() });
                played.tally.skip(wait, rest.iter().map(|step| Scene::count(&step.expect)).sum());
                return played;
            }
        }
        let failures = std::mem::take(&mut played.tally.failures);
        let at = |failure| StepFailure { step: i + 1, op: step.op.name(), failure };
        played.failures.extend(failures.into_iter().map(at));
    }
    played
}

fn furnished(scenario: &Scenario) -> Result<World, ChangeError> {
    let mut world = World::new(&scenario.settings)?;
    scenario.nodes.iter().try_for_each(|node| world.add_node(node))?;
    scenario.objects.iter().try_for_each(|object| world.insert(object.clone()))?;
    Ok(world)
}

fn perform(world: &mut World, step: &Step) -> Result<(), Halt> {
    world.change(&step.op)?;
    match step.op {
        Op::Restart { .. } => world.forget(),
        Op::HealthTick {} => {
            world.round().map_err(Loop::from)?;
        }
        _ => {}
    }
    Ok(world.settle(step.settle == Settle::Full)?)
}
