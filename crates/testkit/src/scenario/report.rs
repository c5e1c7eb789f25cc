//! What is said after the last scenario.

use std::collections::BTreeMap;
use std::fmt;

use super::play::{Played, Verdict};
use super::tally::Wait;

/// The outcomes of a run. `Display` gives each failure, what was skipped by what it waits for, and as its last line
/// `N passed, N failed, N skipped`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Report {
    played: Vec<Played>,
}

/// What waits for one thing.
#[derive(Default)]
struct Waiting<'a> {
    expectations: usize,
    steps: usize,
    scenarios: Vec<&'a str>,
}

impl FromIterator<Played> for Report {
    fn from_iter<I: IntoIterator<Item = Played>>(played: I) -> Self {
        Self { played: played.into_iter().collect() }
    }
}

impl Report {
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

    fn waiting(&self) -> BTreeMap<Wait, Waiting<'_>> {
        let mut waiting: BTreeMap<Wait, Waiting<'_>> = BTreeMap::new();
        for played in &self.played {
            let mut kinds = played.tally.skipped.clone();
            if let Some(cut) = played.cut {
                kinds.entry(cut.wait).or_default();
                waiting.entry(cut.wait).or_default().steps += cut.steps;
            }
            for (wait, expectations) in kinds {
                let of = waiting.entry(wait).or_default();
                of.expectations += expectations;
                of.scenarios.push(&played.id);
            }
        }
        waiting
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
        for (wait, of) in self.waiting() {
            let (expectations, steps) = (of.expectations, of.steps);
            let scenarios = of.scenarios.join(" ");
            writeln!(f, "skipped, waiting for {wait}: {expectations} expectations, {steps} steps ({scenarios})")?;
        }
        let checked: usize = self.played.iter().map(|played| played.tally.checked).sum();
        writeln!(f, "{checked} expectations checked")?;
        let [passed, failed, skipped] = [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(|v| self.count(v));
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::{parse, play};

    fn report(scenarios: &str) -> String {
        let scenarios = parse(Path::new("x.yaml"), scenarios).expect("scenarios");
        scenarios.iter().map(play).collect::<Report>().to_string()
    }

    #[test]
    fn a_failure_says_what_was_expected_and_what_was_found() {
        let text = report(
            "scenarios:\n- {id: X, title: nothing there, steps: [{op: start}, {op: health_tick, expect: {cluster: {total_items: 7}}}]}",
        );
        assert_eq!(
            text,
            "FAILED X: nothing there\n  step 2 health_tick: cluster.total_items\n    expected: 7\n    found:    0\n\
             1 expectations checked\n0 passed, 1 failed, 0 skipped"
        );
    }

    #[test]
    fn what_waits_is_named_and_counted_and_is_no_pass() {
        let text = report(
            "scenarios:\n- {id: X, title: t, settings: {platform: AWS, cloud_ack: manual}, steps: [{op: start, expect: {cloud_private_ip_configs: {count: 0}}}, {op: set_cpic_status, name: 192.0.2.1, node: n1, assigned: true, expect: {cluster: {total_items: 7, marks_distinct: true}}}]}",
        );
        assert_eq!(
            text,
            "skipped, waiting for cloud confirmation: 3 expectations, 1 steps (X)\n\
             0 expectations checked\n0 passed, 0 failed, 1 skipped"
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
