//! The brain between a cluster that changes and an API server that fails, both drawn from a seed: after every step no
//! address has two owners and the cloud's rules hold, and in the end everything is as a fresh decision has it.

// Helpers of tests are no production code.
#![allow(clippy::unwrap_used, clippy::panic)]

mod check;
mod cluster;
mod definition;
mod doubt;
mod drawn;
mod late;
mod schedule;
mod silence;
mod store;

use crate::schedule::{Schedule, Trouble};

const SEEDS: u64 = 120;
const STEPS: usize = 400;

fn play(trouble: Trouble) {
    for seed in 0..SEEDS {
        let mut schedule = Schedule::new(seed, trouble);
        for _ in 0..STEPS {
            schedule.step();
        }
        schedule.settle();
        schedule.assert_settled();
        if !trouble.prunes && !trouble.denies_marks {
            schedule.assert_content();
        }
    }
}

const NONE: Trouble = Trouble { cloud: false, by_hand: false, prunes: false, denies_marks: false };

#[test]
fn off_the_cloud_nothing_that_fails_or_overtakes_makes_two_owners() {
    play(NONE);
}

#[test]
fn in_a_cloud_nothing_is_shown_before_the_cloud_has_said_so() {
    play(Trouble { cloud: true, ..NONE });
}

#[test]
fn statuses_that_are_edited_by_hand_are_repaired_without_a_second_owner() {
    play(Trouble { by_hand: true, ..NONE });
}

#[test]
fn statuses_that_are_edited_by_hand_in_a_cloud_are_repaired_without_a_second_owner() {
    play(Trouble { by_hand: true, cloud: true, ..NONE });
}

#[test]
fn an_old_definition_and_a_policy_that_protects_marks_change_no_decision() {
    play(Trouble { prunes: true, ..NONE });
    play(Trouble { denies_marks: true, ..NONE });
    play(Trouble { prunes: true, denies_marks: true, cloud: true, ..NONE });
}
