//! What can go wrong between a brain and its API server, drawn from a seed.

use egret_brain::{Input, Write, WriteError};
use serde_json::Value;

use super::memory::Memory;
use super::stage::StageError;

/// One in so many writes fails before it is done, and one in so many after it.
const ONE_FAILS_IN: usize = 6;
/// One in so many turns a watch lists anew instead of telling the next change.
const ONE_LISTS_IN: usize = 20;
/// After so many failures in one rest there are no more, so that there is an end.
const MOST_FAILURES: usize = 12;
/// A controller that is content needs some hundred turns at most.
const MOST_TURNS: usize = 5_000;

/// Draws what happens next.
#[derive(Debug)]
pub(super) struct Disorder {
    state: u64,
    failures: usize,
}

/// What can happen next.
enum Turn {
    /// The brain decides.
    Pass,
    /// The watch of a kind tells something.
    Tell(egret_api::Kind),
    /// A write arrives at the server.
    Arrive(usize),
    /// A result arrives at the brain.
    Hear(usize),
}

impl Disorder {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, failures: 0 }
    }

    /// Lets things happen in any order until nothing is left that could.
    pub(super) fn rest(&mut self, memory: &mut Memory) -> Result<(), StageError> {
        self.failures = 0;
        for _ in 0..MOST_TURNS {
            let mut turns: Vec<Turn> = memory.behind().into_iter().map(Turn::Tell).collect();
            turns.extend((0..memory.flying.len()).map(Turn::Arrive));
            turns.extend((0..memory.results.len()).map(Turn::Hear));
            if turns.is_empty() {
                if !memory.pass()? && !memory.wait() {
                    return Ok(());
                }
                continue;
            }
            turns.push(Turn::Pass);
            let drawn = self.below(turns.len());
            self.turn(memory, &turns[drawn])?;
        }
        let last = memory.flying.iter().map(|write| write.object.to_string()).collect();
        Err(StageError::Endless { turns: MOST_TURNS, last })
    }

    fn turn(&mut self, memory: &mut Memory, turn: &Turn) -> Result<(), StageError> {
        match turn {
            Turn::Pass => memory.pass().map(drop),
            Turn::Tell(kind) => {
                if self.below(ONE_LISTS_IN) == 0 {
                    memory.list(*kind);
                } else {
                    memory.tell_next(*kind);
                }
                Ok(())
            }
            Turn::Arrive(i) => {
                let write = memory.flying[*i].clone();
                let result = self.arrive(memory, &write);
                memory.results.push(Input::Written { id: write.id, result });
                // Under way until the brain has heard of it.
                memory.flying.remove(*i);
                memory.unheard.push(write.object);
                Ok(())
            }
            Turn::Hear(i) => {
                let result = memory.results.remove(*i);
                memory.unheard.remove(*i);
                memory.take(result);
                Ok(())
            }
        }
    }

    /// A write that fails for now may have been done all the same.
    fn arrive(&mut self, memory: &mut Memory, write: &Write) -> Result<Option<Value>, WriteError> {
        let failed = WriteError::Transient { message: "drawn".to_owned(), retry_after: None };
        if self.fails() {
            return Err(failed);
        }
        let result = memory.execute(write);
        if self.fails() { Err(failed) } else { result }
    }

    fn fails(&mut self) -> bool {
        let fails = self.failures < MOST_FAILURES && self.below(ONE_FAILS_IN) == 0;
        self.failures += usize::from(fails);
        fails
    }

    /// A number below `bound`, by splitmix64.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = usize::try_from((z ^ (z >> 31)) >> 33).unwrap_or_default();
        drawn % bound
    }
}
