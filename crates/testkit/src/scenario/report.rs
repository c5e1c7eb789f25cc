//! What is said after the last scenario.

use std::fmt;

use super::play::{Played, Verdict};

/// The outcomes of a run. `Display` gives each failure, and as its last line `N passed, N failed, through WHAT`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    played: Vec<Played>,
    stage: &'static str,
}

impl Report {
    /// Of scenarios that were played on a stage of this name.
    pub fn new(stage: &'static str, played: Vec<Played>) -> Self {
        Self { played, stage }
    }

    /// How many scenarios went so.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.played.iter().filter(|played| played.verdict() == verdict).count()
    }

    /// How many scenarios were played.
    #[must_use]
    pub fn len(&self) -> usize {
        self.played.len()
    }

    /// Whether nothing was played.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.played.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for played in self.played.iter().filter(|played| !played.failures.is_empty()) {
            writeln!(f, "FAILED {}: {}", played.id, played.title)?;
            for step in &played.failures {
                let failure = &step.failure;
                writeln!(f, "  step {} {}: {}", step.step, step.op, failure.what)?;
                writeln!(f, "    expected: {}", failure.expected)?;
                writeln!(f, "    found:    {}", failure.found)?;
            }
        }
        let checked: usize = self.played.iter().map(|played| played.tally.checked).sum();
        writeln!(f, "{checked} expectations checked")?;
        let [passed, failed] = [Verdict::Passed, Verdict::Failed].map(|verdict| self.count(verdict));
        write!(f, "{passed} passed, {failed} failed, through {}", self.stage)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::{parse, play};
    use crate::world::Memory;

    fn report(scenarios: &str) -> String {
        let scenarios = parse(Path::new("x.yaml"), scenarios).expect("scenarios");
        let played = scenarios.iter().map(|scenario| play(scenario, &mut Memory::new())).collect();
        Report::new("memory", played).to_string()
    }

    #[test]
    fn a_failure_says_what_was_expected_and_what_was_found() {
        let text = report(
            "scenarios:\n- {id: X, title: nothing there, steps: [{op: start}, {op: health_tick, expect: {cluster: {total_items: 7}}}]}",
        );
        assert_eq!(
            text,
            "FAILED X: nothing there\n  step 2 health_tick: cluster.total_items\n    expected: 7\n    found:    0\n\
             1 expectations checked\n0 passed, 1 failed, through memory"
        );
    }

    #[test]
    fn what_expects_nothing_is_no_pass() {
        let text = report("scenarios:\n- {id: X, title: t, steps: [{op: start}]}");
        assert!(
            text.ends_with("found:    nothing\n0 expectations checked\n0 passed, 1 failed, through memory"),
            "{text}"
        );
    }

    #[test]
    fn a_step_that_cannot_be_done_fails() {
        let text = report(
            "scenarios:\n- {id: X, title: t, steps: [{op: start}, {op: delete, kind: EgressIP, name: a}, {op: set_ready, node: n1, ready: true}]}",
        );
        assert!(text.contains("found:    there is no EgressIP a\n"), "{text}");
        assert!(text.contains("found:    there is no node n1\n"), "{text}");
    }
}
