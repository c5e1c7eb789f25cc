//! The state machine: what it has seen of the Lease, and what it does next. Times are on any clock of this machine that
//! only goes forward.

use std::time::Duration;

use super::Terms;

/// How often an attempt reads again because somebody was faster, before it waits for the next one.
const CONFLICTS: u8 = 3;

/// The duration of a released Lease: the least that the API server takes, and what client-go writes.
const RELEASED: Duration = Duration::from_secs(1);

/// What a Lease says, as far as the election goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `holderIdentity`; empty if nobody has it.
    pub holder: String,
    /// `leaseDurationSeconds`.
    pub duration: Duration,
    /// `leaseTransitions`.
    pub transitions: u64,
    /// `renewTime` to the letter: only whether it changes is looked at.
    pub renewed: String,
}

impl Record {
    /// What a holder that gives up leaves behind: no holder, and a duration that nobody runs with.
    #[must_use]
    pub fn released(transitions: u64, renewed: String) -> Self {
        Self { holder: String::new(), duration: RELEASED, transitions, renewed }
    }

    fn was_released(&self) -> bool {
        self.holder.is_empty() && self.duration <= RELEASED
    }
}

/// A Lease as it is stored: a record, and the version that guards its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The record.
    pub record: Record,
    /// `resourceVersion`; changes with every change of anything in the object.
    pub version: String,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the Lease; the result goes to [`Election::read`].
    Read,
    /// Store this holder; the result goes to [`Election::wrote`].
    Write {
        /// The version to replace; `None` to create.
        over: Option<String>,
        /// How often the Lease has changed hands, this time included.
        transitions: u64,
        /// Whether it changes hands, or is only renewed.
        acquires: bool,
    },
    /// Nothing before this attempt is followed by the next.
    Rest,
}

/// One instance's part in the election.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    terms: Terms,
    /// The Lease as last seen; `None` before that, and if there is none.
    seen: Option<Observed>,
    /// From when on it may be taken from somebody else.
    free_at: Duration,
    /// Whether `seen` is good enough to write over it.
    fresh: bool,
    resting: bool,
    conflicts: u8,
    until: Option<Duration>,
    term: u64,
}

impl Election {
    /// Somebody who has seen nothing yet. The identity must be another one in each process and after each start.
    #[must_use]
    pub fn new(identity: String, terms: Terms) -> Self {
        Self {
            identity,
            terms,
            seen: None,
            free_at: Duration::ZERO,
            fresh: false,
            resting: true,
            conflicts: 0,
            until: None,
            term: 0,
        }
    }

    /// Begins an attempt: to renew what is ours, or to see whether the Lease can be had.
    pub fn attempt(&mut self) {
        self.resting = false;
        self.conflicts = 0;
        // What is ours is replaced without reading it first: if anybody has touched it, the guard says so.
        self.fresh = self.is_ours();
    }

    /// What the attempt does next.
    #[must_use]
    pub fn next(&self, now: Duration) -> Step {
        if self.resting {
            return Step::Rest;
        }
        if !self.fresh {
            return Step::Read;
        }
        let ours = self.is_ours();
        if !ours && now < self.free_at {
            return Step::Rest;
        }
        let Some(seen) = &self.seen else { return Step::Write { over: None, transitions: 0, acquires: true } };
        let transitions = if ours { seen.record.transitions } else { seen.record.transitions + 1 };
        Step::Write { over: Some(seen.version.clone()), transitions, acquires: !ours }
    }

    /// The Lease was read: as it is, or that there is none.
    pub fn read(&mut self, observed: Option<Observed>, now: Duration) {
        self.see(observed, now);
        self.fresh = true;
    }

    /// The write that began at `began` went through, and this is the Lease now.
    pub fn wrote(&mut self, observed: Observed, began: Duration, now: Duration) {
        // Whoever renews what was already ours has held it all the time: only we write our name.
        if self.term == 0 || !self.is_ours() || self.transitions() != Some(observed.record.transitions) {
            self.term += 1;
        }
        self.see(Some(observed), now);
        // Others can have seen the change at the earliest when the write began.
        self.until = Some(began + self.terms.deadline);
        self.resting = true;
    }

    /// The write did not happen: the Lease is not as it was seen.
    pub fn conflicted(&mut self) {
        self.fresh = false;
        self.conflicts += 1;
        self.resting = self.conflicts >= CONFLICTS;
    }

    /// The request failed, or nobody knows. Until the next attempt nothing is to be done about it.
    pub fn failed(&mut self) {
        self.resting = true;
    }

    /// Until when this instance may write, and its term; `None` if it may not now.
    #[must_use]
    pub fn right(&self, now: Duration) -> Option<(u64, Duration)> {
        self.until.filter(|until| now < *until).map(|until| (self.term, until))
    }

    /// Gives up the right; returns the version to replace by a record without a holder, if the Lease is ours.
    pub fn resign(&mut self) -> Option<(String, u64)> {
        self.until = None;
        self.resting = true;
        let seen = self.seen.as_ref().filter(|_| self.is_ours())?;
        Some((seen.version.clone(), seen.record.transitions))
    }

    /// Whose part this is.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    #[cfg(test)]
    pub(super) fn has_seen(&self) -> bool {
        self.seen.is_some()
    }

    fn see(&mut self, observed: Option<Observed>, now: Duration) {
        let record = |observed: &Option<Observed>| observed.as_ref().map(|observed| observed.record.clone());
        if record(&observed) != record(&self.seen) {
            self.free_at = now + self.wait_for(observed.as_ref(), now);
        }
        self.seen = observed;
        if !self.is_ours() {
            self.until = None;
        }
    }

    /// How long a Lease that looks like this from now on is somebody else's.
    fn wait_for(&self, observed: Option<&Observed>, now: Duration) -> Duration {
        match observed.map(|observed| &observed.record) {
            Some(record) if record.was_released() => Duration::ZERO,
            // Without a holder, but not released: somebody has emptied it by hand, and the holder does not know yet.
            Some(record) => record.duration,
            // Deleted by hand: the same. A Lease that was never seen is taken at once, or every first start would wait.
            None if self.right(now).is_some() => Duration::ZERO,
            // And its holder may be one that was never seen, which waits as long as we do.
            None => self.seen.as_ref().map_or(Duration::ZERO, |seen| seen.record.duration.max(self.terms.duration)),
        }
    }

    fn is_ours(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.record.holder == self.identity)
    }

    fn transitions(&self) -> Option<u64> {
        self.seen.as_ref().map(|seen| seen.record.transitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms =
        Terms { duration: Duration::from_secs(15), deadline: Duration::from_secs(10), retry: Duration::from_secs(2) };

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn lease(holder: &str, version: &str, transitions: u64) -> Observed {
        let record = Record { holder: holder.to_owned(), duration: s(15), transitions, renewed: version.to_owned() };
        Observed { record, version: version.to_owned() }
    }

    fn write(over: Option<&str>, transitions: u64, acquires: bool) -> Step {
        Step::Write { over: over.map(str::to_owned), transitions, acquires }
    }

    fn leader() -> Election {
        let mut a = Election::new("a".to_owned(), TERMS);
        a.attempt();
        a.read(None, s(0));
        assert_eq!(a.next(s(0)), write(None, 0, true));
        a.wrote(lease("a", "1", 0), s(0), s(1));
        a
    }

    #[test]
    fn the_first_one_creates_the_lease_and_leads_from_the_beginning_of_its_request() {
        let a = leader();
        assert_eq!(a.next(s(1)), Step::Rest);
        assert_eq!(a.right(s(1)), Some((1, s(10))));
        assert_eq!(a.right(s(10)), None);
    }

    #[test]
    fn a_leader_renews_without_reading_and_keeps_its_term() {
        let mut a = leader();
        a.attempt();
        assert_eq!(a.next(s(2)), write(Some("1"), 0, false));
        a.wrote(lease("a", "2", 0), s(2), s(2));
        assert_eq!(a.right(s(11)), Some((1, s(12))));
    }

    #[test]
    fn a_conflict_is_read_before_it_is_written_again() {
        let mut a = leader();
        a.attempt();
        a.conflicted();
        assert_eq!(a.next(s(2)), Step::Read);
        a.read(Some(lease("a", "annotated", 0)), s(2));
        assert_eq!(a.next(s(2)), write(Some("annotated"), 0, false));
        a.conflicted();
        a.conflicted();
        assert_eq!(a.next(s(2)), Step::Rest, "somebody writes all the time: not a reason to read all the time");
        assert_eq!(a.right(s(2)), Some((1, s(10))), "what was confirmed still counts");
    }

    #[test]
    fn a_stolen_lease_ends_the_right_at_once() {
        let mut a = leader();
        a.attempt();
        a.conflicted();
        a.read(Some(lease("thief", "2", 1)), s(2));
        assert_eq!(a.right(s(2)), None);
        assert_eq!(a.next(s(2)), Step::Rest);
        assert_eq!(a.next(s(17)), write(Some("2"), 2, true));
        a.wrote(lease("a", "3", 2), s(17), s(17));
        assert_eq!(a.right(s(17)), Some((2, s(27))));
    }

    #[test]
    fn a_standby_waits_for_the_duration_that_the_holder_wrote_since_the_last_change_it_saw() {
        let mut b = Election::new("b".to_owned(), TERMS);
        b.attempt();
        assert_eq!(b.next(s(100)), Step::Read);
        b.read(Some(lease("a", "1", 0)), s(100));
        assert_eq!(b.next(s(100)), Step::Rest);
        b.attempt();
        b.read(Some(lease("a", "2", 0)), s(110));
        assert_eq!(b.next(s(124)), Step::Rest);
        assert_eq!(b.next(s(125)), write(Some("2"), 1, true));
    }

    #[test]
    fn a_change_of_something_else_does_not_prolong_a_dead_holders_time() {
        let mut b = Election::new("b".to_owned(), TERMS);
        b.attempt();
        b.read(Some(lease("a", "1", 0)), s(0));
        let mut annotated = lease("a", "1", 0);
        annotated.version = "2".to_owned();
        b.attempt();
        b.read(Some(annotated), s(10));
        assert_eq!(b.next(s(15)), write(Some("2"), 1, true));
    }

    #[test]
    fn what_was_released_is_taken_at_once() {
        let mut a = leader();
        assert_eq!(a.resign(), Some(("1".to_owned(), 0)));
        assert_eq!(a.right(s(1)), None);
        let mut b = Election::new("b".to_owned(), TERMS);
        b.attempt();
        b.read(Some(lease("a", "1", 0)), s(1));
        let record = Record::released(0, "2".to_owned());
        b.attempt();
        b.read(Some(Observed { record, version: "2".to_owned() }), s(2));
        assert_eq!(b.next(s(2)), write(Some("2"), 1, true));
    }

    #[test]
    fn what_was_emptied_or_deleted_by_hand_is_waited_for() {
        for emptied in [Some(lease("", "2", 0)), None] {
            let mut b = Election::new("b".to_owned(), TERMS);
            b.attempt();
            b.read(Some(lease("a", "1", 0)), s(1));
            b.attempt();
            b.read(emptied, s(2));
            assert_eq!(b.next(s(16)), Step::Rest);
            assert!(matches!(b.next(s(17)), Step::Write { .. }));
        }
    }

    #[test]
    fn a_holder_whose_lease_was_deleted_makes_it_again() {
        let mut a = leader();
        a.attempt();
        a.conflicted();
        a.read(None, s(2));
        assert_eq!((a.right(s(2)), a.next(s(2))), (None, write(None, 0, true)));
        a.wrote(lease("a", "9", 0), s(2), s(2));
        assert_eq!(a.right(s(2)), Some((2, s(12))));
    }

    /// What went wrong: thawed after somebody else had taken the Lease, it took the deleted one for its own.
    #[test]
    fn a_holder_without_a_right_waits_for_a_deleted_lease_like_everybody() {
        let mut a = leader();
        a.attempt();
        a.conflicted();
        a.read(None, s(60));
        assert_eq!(a.next(s(60)), Step::Rest);
        assert_eq!(a.next(s(75)), write(None, 0, true));
    }

    #[test]
    fn a_write_whose_answer_was_lost_gives_no_right_until_it_is_confirmed() {
        let mut a = Election::new("a".to_owned(), TERMS);
        a.attempt();
        a.read(None, s(0));
        a.failed();
        assert_eq!((a.right(s(1)), a.next(s(1))), (None, Step::Rest));
        a.attempt();
        assert_eq!(a.next(s(2)), Step::Read);
        a.read(Some(lease("a", "1", 0)), s(2));
        assert_eq!(a.right(s(2)), None);
        assert_eq!(a.next(s(2)), write(Some("1"), 0, false));
        a.wrote(lease("a", "2", 0), s(2), s(3));
        assert_eq!(a.right(s(3)), Some((1, s(12))));
    }

    #[test]
    fn an_answer_that_comes_after_a_long_freeze_gives_nothing() {
        let mut a = leader();
        a.attempt();
        a.wrote(lease("a", "2", 0), s(2), s(60));
        assert_eq!(a.right(s(60)), None);
    }

    #[test]
    fn whoever_has_lost_and_regained_the_lease_has_a_new_term() {
        let mut a = leader();
        a.attempt();
        a.conflicted();
        let record = Record::released(1, "3".to_owned());
        a.read(Some(Observed { record, version: "3".to_owned() }), s(9));
        assert_eq!(a.next(s(9)), write(Some("3"), 2, true));
        a.wrote(lease("a", "4", 2), s(9), s(9));
        assert_eq!(a.right(s(9)), Some((2, s(19))));
    }
}
