//! What probes have told, and whether to believe it.
//!
//! That many nodes fall silent at once is probably the prober's own fault, so nothing is concluded from it: the nodes
//! keep what they hold and take nothing new, until the silence is confirmed (they turn NotReady and are probed no more),
//! the share falls, or the operator says that it is real. When the share falls those that are still silent have a grace:
//! whatever ends brings them back one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use egret_core::{NodeName, Reachability, Timestamp};

use crate::config::MassSilence;
use crate::{Answer, Now};

/// Who answered within this time counts as having been alive.
const ALIVE_FOR: Duration = Duration::from_mins(1);
/// In a large cluster a node's next probe is seconds away. What was reported within this time is a sample of the whole:
/// a time-out of a second and the shortest interval of probes.
const SAMPLE: Duration = Duration::from_millis(1500);

/// Many nodes fell silent at once, and nothing is concluded from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The operator accepts this one by its number: that of the second in which it began, since 1970, so that what was
    /// said to another leader about another silence is no answer to this one.
    pub number: u64,
    /// When it began: a value of [`crate::Now::elapsed`].
    pub since: Duration,
    /// The nodes that keep what they hold because of it.
    pub nodes: BTreeSet<NodeName>,
    /// How many targets it was judged by.
    pub targets: usize,
}

/// The nodes that were in doubt when mass silence ended, and are silent still.
#[derive(Debug)]
struct Grace {
    nodes: BTreeSet<NodeName>,
    until: Duration,
}

/// What is known of one target.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// How its last probe ended; `None` before the first.
    alive: Option<bool>,
    /// Its probe takes long.
    late: bool,
    /// When it last answered, or was seen to hold something by whoever led before.
    answered: Option<Duration>,
    /// When anything was last reported.
    reported: Option<Duration>,
    /// It has been given up: the silence counted.
    lost: bool,
    /// What it counted as when it was last judged.
    verdict: Option<Reachability>,
}

impl Known {
    fn silent(&self) -> bool {
        self.late || self.alive == Some(false)
    }

    fn verdict(&self, in_doubt: bool) -> Reachability {
        match self.alive {
            _ if self.lost => Reachability::Unreachable,
            _ if in_doubt => Reachability::InDoubt,
            Some(true) => Reachability::Reachable,
            None | Some(false) => Reachability::NotProbed,
        }
    }
}

/// How many of some targets are silent.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    targets: usize,
    silent: usize,
    /// Not only late.
    timed_out: usize,
}

/// What the shares say.
#[derive(Clone, Copy, Debug)]
struct Mass {
    /// So many are silent that something else must be wrong.
    is: bool,
    /// So many even without those that are only late.
    timed_out: bool,
    targets: usize,
}

impl Share {
    fn add(&mut self, known: &Known) {
        self.targets += 1;
        self.silent += usize::from(known.silent());
        self.timed_out += usize::from(known.alive == Some(false));
    }

    fn is_mass(self, silent: usize, config: MassSilence) -> bool {
        self.targets >= config.least && silent * 100 > self.targets * usize::from(config.percent)
    }
}

/// What probes have told.
#[derive(Debug)]
pub(crate) struct Reach {
    config: MassSilence,
    known: BTreeMap<NodeName, Known>,
    /// Targets without an address to probe.
    nowhere: BTreeSet<NodeName>,
    silence: Option<Silence>,
    /// So many timed out in this silence that it was one even without those that were only late.
    timed_out: bool,
    grace: Option<Grace>,
    /// No grace is longer: counted from the end of the first of several silences that follow each other within a grace.
    longest: Option<Duration>,
    /// Of the last silence.
    number: u64,
    accepted: Option<u64>,
    /// How often a node that had answered was given up.
    pub(crate) losses: u64,
}

impl Reach {
    pub(crate) fn new(config: MassSilence) -> Self {
        Self {
            config,
            known: BTreeMap::new(),
            nowhere: BTreeSet::new(),
            silence: None,
            timed_out: false,
            grace: None,
            longest: None,
            number: 0,
            accepted: None,
            losses: 0,
        }
    }

    pub(crate) fn silence(&self) -> Option<&Silence> {
        self.silence.as_ref()
    }

    pub(crate) fn accept(&mut self, number: u64) {
        self.accepted = Some(number);
    }

    /// Forgets what an earlier leadership knew. The `hosts` hold something, so somebody saw them alive: if most of them
    /// are silent from the start, that is mass silence too.
    pub(crate) fn restart<'a>(&mut self, hosts: impl Iterator<Item = &'a NodeName>, now: Duration) {
        *self = Self { losses: self.losses, ..Self::new(self.config) };
        for host in hosts {
            self.known.entry(host.clone()).or_default().answered = Some(now);
        }
    }

    /// These are probed from now on, and `nowhere` would be if there were an address. Whoever is no target any more is
    /// forgotten.
    pub(crate) fn retarget<'a>(
        &mut self,
        targets: &BTreeMap<NodeName, impl Sized>,
        nowhere: impl Iterator<Item = &'a NodeName>,
    ) {
        self.nowhere = nowhere.cloned().collect();
        self.known.retain(|node, _| targets.contains_key(node));
        for node in targets.keys() {
            if !self.known.contains_key(node) {
                self.known.insert(node.clone(), Known::default());
            }
        }
    }

    /// Takes an answer. Whether there is anything to judge anew because of it: what a node has said before is no news, and
    /// whether one that is silent is late again no more. During mass silence every answer is: how many of those that
    /// reported just now are silent may end it.
    pub(crate) fn probed(&mut self, node: &NodeName, answer: Answer, now: Duration) -> bool {
        let Some(known) = self.known.get_mut(node) else { return false };
        let before = (known.alive, known.silent());
        known.reported = Some(now);
        known.late = answer == Answer::Late;
        match answer {
            Answer::Alive => *known = Known { alive: Some(true), answered: Some(now), lost: false, ..*known },
            Answer::Silent => known.alive = Some(false),
            Answer::Late => {}
        }
        (known.alive, known.silent()) != before || self.silence.is_some()
    }

    /// Judges what has come in: whether silence is mass silence, and whom to give up. The targets that count as
    /// something else than when they were last judged.
    pub(crate) fn judge(&mut self, Now { elapsed: now, wall }: Now) -> Vec<NodeName> {
        let mass = self.mass(now);
        let accepted = |number: u64| self.accepted == Some(number);
        let held = match &self.silence {
            Some(silence) => mass.is && !accepted(silence.number),
            None => mass.is && !self.settled(),
        };
        if held {
            self.hold(mass, now, wall);
        } else {
            self.end_silence(mass, now);
        }
        let mut news = Vec::new();
        let (silence, grace) = (self.silence.as_ref().map(|s| &s.nodes), self.grace.as_ref().map(|g| &g.nodes));
        for (node, known) in &mut self.known {
            let in_doubt = silence.into_iter().chain(grace).any(|nodes| nodes.contains(node));
            if known.alive == Some(false) && !known.lost && !in_doubt {
                known.lost = true;
                self.losses += u64::from(known.answered.is_some());
            }
            let verdict = Some(known.verdict(in_doubt));
            if known.verdict != verdict {
                known.verdict = verdict;
                news.push(node.clone());
            }
        }
        news
    }

    /// Nothing is concluded from this silence, whether it begins or goes on.
    fn hold(&mut self, mass: Mass, now: Duration, wall: Timestamp) {
        // Those that had a grace are silent, and so in doubt again.
        let before = self.grace.take().is_some() || self.silence.is_some();
        self.timed_out = mass.timed_out || (self.timed_out && before);
        let silence = self.silence.get_or_insert_with(|| {
            self.number = (self.number + 1).max(u64::try_from(wall.0).unwrap_or_default());
            Silence { number: self.number, since: now, nodes: BTreeSet::new(), targets: mass.targets }
        });
        let known = &self.known;
        silence.nodes.retain(|node| known.get(node).is_some_and(Known::silent));
        let doubtful = known.iter().filter(|(_, known)| known.silent() && !known.lost && known.answered.is_some());
        silence.nodes.extend(doubtful.map(|(node, _)| node.clone()));
        silence.targets = silence.targets.max(mass.targets);
    }

    /// There is no mass silence, or none any more: those that are silent still are given up after a grace. There is none
    /// where the operator has said that the silence is real, nor where most had only been late.
    fn end_silence(&mut self, mass: Mass, now: Duration) {
        if let Some(silence) = self.silence.take()
            && !mass.is
            && self.timed_out
        {
            self.longest.get_or_insert(now + self.config.longest_grace);
            self.grace = Some(Grace { nodes: silence.nodes, until: now + self.config.grace });
        }
        let Some(grace) = &mut self.grace else {
            self.longest = None;
            return;
        };
        let known = &self.known;
        let back = |node: &NodeName| known.get(node).is_some_and(|known| !known.silent());
        if grace.nodes.iter().any(back) {
            grace.until = now + self.config.grace;
        }
        grace.until = grace.until.min(self.longest.unwrap_or(grace.until));
        grace.nodes.retain(|node| known.get(node).is_some_and(Known::silent));
        if grace.until <= now || grace.nodes.is_empty() {
            (self.grace, self.longest) = (None, None);
        }
    }

    /// When the grace ends.
    pub(crate) fn wake(&self) -> Option<Duration> {
        self.grace.as_ref().map(|grace| grace.until)
    }

    fn in_doubt(&self, node: &NodeName) -> bool {
        let held = self.silence.as_ref().is_some_and(|silence| silence.nodes.contains(node));
        held || self.grace.as_ref().is_some_and(|grace| grace.nodes.contains(node))
    }

    /// Whether so many of those that were alive are silent that something else must be wrong.
    fn mass(&self, now: Duration) -> Mass {
        let recent = |at: Option<Duration>, within: Duration| at.is_some_and(|at| at + within >= now);
        let alive = |(node, known): &(&NodeName, &Known)| recent(known.answered, ALIVE_FOR) || self.in_doubt(node);
        let mut all = Share::default();
        let mut sample = Share::default();
        for (_, known) in self.known.iter().filter(alive) {
            all.add(known);
            if recent(known.reported, SAMPLE) {
                sample.add(known);
            }
        }
        let mass = |silent: fn(&Share) -> usize| [all, sample].iter().any(|s| s.is_mass(silent(s), self.config));
        Mass { is: mass(|share| share.silent), timed_out: mass(|share| share.timed_out), targets: all.targets }
    }

    /// Whether the silent ones were all given up already: then there is nothing left to hold.
    fn settled(&self) -> bool {
        self.known.values().all(|known| !known.silent() || known.lost || known.answered.is_none())
    }

    /// What a node counts as.
    pub(crate) fn of(&self, node: &NodeName) -> Reachability {
        if self.nowhere.contains(node) {
            return Reachability::Unreachable;
        }
        let Some(known) = self.known.get(node) else { return Reachability::NotProbed };
        known.verdict(self.in_doubt(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(i: usize) -> NodeName {
        format!("n{i}").as_str().into()
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn reach(nodes: usize) -> Reach {
        let mut reach = Reach::new(MassSilence::default());
        reach.retarget(&(0..nodes).map(|i| (name(i), ())).collect(), [].iter());
        reach
    }

    fn all(reach: &mut Reach, nodes: std::ops::Range<usize>, answer: Answer, now: Duration) {
        for i in nodes {
            reach.probed(&name(i), answer, now);
        }
        judge(reach, now);
    }

    fn judge(reach: &mut Reach, elapsed: Duration) {
        reach.judge(Now { elapsed, wall: Timestamp(1_000) });
    }

    fn count(reach: &Reach, nodes: usize, what: Reachability) -> usize {
        (0..nodes).filter(|i| reach.of(&name(*i)) == what).count()
    }

    #[test]
    fn a_few_silent_nodes_are_given_up_at_once() {
        let mut reach = reach(10);
        assert_eq!(count(&reach, 10, Reachability::NotProbed), 10);
        all(&mut reach, 0..10, Answer::Alive, at(0));
        all(&mut reach, 0..5, Answer::Silent, at(1000));
        assert_eq!(count(&reach, 10, Reachability::Unreachable), 5, "50 % is not more than 55 %");
        assert!(reach.silence().is_none());
        assert_eq!(reach.losses, 5);
    }

    #[test]
    fn most_silent_at_once_are_in_doubt_until_the_share_falls() {
        let mut reach = reach(10);
        all(&mut reach, 0..10, Answer::Alive, at(0));
        all(&mut reach, 0..6, Answer::Silent, at(1000));
        assert_eq!(count(&reach, 10, Reachability::InDoubt), 6);
        // Long after the last answer they are still the same six.
        all(&mut reach, 6..10, Answer::Alive, at(90_000));
        assert_eq!(count(&reach, 10, Reachability::InDoubt), 6);
        // One answers: five of ten are few enough to be true, if it lasts.
        all(&mut reach, 0..1, Answer::Alive, at(91_000));
        assert!(reach.silence().is_none());
        assert_eq!(count(&reach, 10, Reachability::InDoubt), 5);
        assert_eq!(reach.wake(), Some(at(96_000)));
        all(&mut reach, 0..1, Answer::Alive, at(95_500));
        all(&mut reach, 6..10, Answer::Alive, at(95_500));
        all(&mut reach, 1..6, Answer::Silent, at(95_999));
        assert_eq!(count(&reach, 10, Reachability::InDoubt), 5);
        judge(&mut reach, at(96_000));
        assert_eq!(count(&reach, 10, Reachability::Unreachable), 5);
        assert_eq!((reach.wake(), reach.losses), (None, 5));
    }

    /// With the one that made the share fall all others lost everything in the same moment, though a second later they
    /// were back.
    #[test]
    fn a_roll_out_whose_nodes_come_back_one_by_one_gives_nobody_up() {
        let mut reach = reach(10);
        all(&mut reach, 0..10, Answer::Alive, at(0));
        all(&mut reach, 0..9, Answer::Silent, at(1000));
        for node in 0..9 {
            let now = at(4000 + node as u64 * 3000);
            all(&mut reach, node..node + 1, Answer::Alive, now);
            all(&mut reach, node + 1..9, Answer::Silent, now);
            assert_eq!(count(&reach, 10, Reachability::Unreachable), 0, "{node}");
        }
        assert_eq!(count(&reach, 10, Reachability::Reachable), 10);
        assert_eq!((reach.losses, reach.wake()), (0, None));
        all(&mut reach, 0..1, Answer::Silent, at(60_000));
        assert_eq!(reach.of(&name(0)), Reachability::Unreachable, "the grace is over with the last of them");
    }

    #[test]
    fn who_was_alive_when_it_ended_has_no_grace_and_no_grace_is_endless() {
        let mut reach = reach(10);
        all(&mut reach, 0..10, Answer::Alive, at(0));
        all(&mut reach, 0..8, Answer::Silent, at(1000));
        all(&mut reach, 0..4, Answer::Alive, at(2000));
        all(&mut reach, 9..10, Answer::Silent, at(3000));
        assert_eq!(reach.of(&name(9)), Reachability::Unreachable, "four in doubt and one more are not most");
        // Most are silent again and again, each time for a moment.
        for second in 1..=8 {
            all(&mut reach, 0..2, Answer::Silent, at(second * 4000));
            assert!(reach.silence().is_some(), "{second}");
            all(&mut reach, 0..2, Answer::Alive, at(second * 4000 + 100));
            let in_doubt = count(&reach, 10, Reachability::InDoubt);
            assert_eq!(in_doubt, if second < 8 { 4 } else { 0 }, "{second}");
        }
    }

    #[test]
    fn the_first_to_time_out_is_held_because_the_others_are_late() {
        let mut reach = reach(10);
        all(&mut reach, 0..10, Answer::Alive, at(0));
        all(&mut reach, 0..6, Answer::Late, at(600));
        assert_eq!(count(&reach, 10, Reachability::Reachable), 4, "late is not silent, but it counts for the share");
        all(&mut reach, 0..1, Answer::Silent, at(1000));
        assert_eq!(reach.of(&name(0)), Reachability::InDoubt);
        all(&mut reach, 1..6, Answer::Alive, at(1100));
        assert_eq!(reach.of(&name(0)), Reachability::Unreachable, "it was only slow for the others");
    }

    #[test]
    fn in_a_large_cluster_the_first_reports_of_an_outage_are_enough() {
        let mut reach = reach(5000);
        for tenth in 0..10 {
            all(&mut reach, tenth * 500..(tenth + 1) * 500, Answer::Alive, at(tenth as u64 * 330));
        }
        // All fall silent; a tenth of the next round has reported, the rest is not asked yet.
        all(&mut reach, 0..500, Answer::Silent, at(6000));
        assert_eq!(count(&reach, 500, Reachability::InDoubt), 500);
    }

    #[test]
    fn who_was_given_up_before_stays_given_up() {
        let mut reach = reach(10);
        all(&mut reach, 0..10, Answer::Alive, at(0));
        all(&mut reach, 0..1, Answer::Silent, at(1000));
        all(&mut reach, 1..7, Answer::Silent, at(2000));
        assert_eq!(reach.of(&name(0)), Reachability::Unreachable);
        assert_eq!(count(&reach, 10, Reachability::InDoubt), 6);
    }

    #[test]
    fn the_operator_accepts_one_silence_not_every() {
        let mut reach = reach(10);
        all(&mut reach, 0..10, Answer::Alive, at(0));
        all(&mut reach, 0..6, Answer::Silent, at(1000));
        reach.accept(1);
        judge(&mut reach, at(1001));
        assert_eq!(count(&reach, 10, Reachability::InDoubt), 6, "another number");
        reach.accept(1_000);
        judge(&mut reach, at(1002));
        assert_eq!(count(&reach, 10, Reachability::Unreachable), 6, "and there is no grace");
        all(&mut reach, 0..10, Answer::Alive, at(2000));
        all(&mut reach, 0..6, Answer::Silent, at(3000));
        assert_eq!(count(&reach, 10, Reachability::InDoubt), 6, "the next one has another number");
        assert_eq!(reach.silence().unwrap().number, 1_001);
    }

    #[test]
    fn hosts_that_are_silent_from_the_start_are_mass_silence_too() {
        let mut reach = Reach::new(MassSilence::default());
        let hosts: Vec<NodeName> = (0..6).map(name).collect();
        reach.restart(hosts.iter(), at(0));
        reach.retarget(&(0..6).map(|i| (name(i), ())).collect(), [].iter());
        all(&mut reach, 0..6, Answer::Silent, at(1000));
        assert_eq!(count(&reach, 6, Reachability::InDoubt), 6);
    }

    #[test]
    fn a_node_without_an_address_to_probe_is_unreachable_and_one_that_is_no_target_is_not_probed() {
        let mut reach = reach(1);
        reach.retarget(&BTreeMap::from([(name(1), 0)]), [name(2)].iter());
        assert_eq!(reach.of(&name(2)), Reachability::Unreachable);
        assert_eq!(reach.of(&name(0)), Reachability::NotProbed);
        reach.probed(&name(0), Answer::Silent, at(0));
        judge(&mut reach, at(0));
        assert_eq!(reach.of(&name(0)), Reachability::NotProbed, "an answer that comes after the target has gone");
    }
}
