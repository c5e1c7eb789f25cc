//! Who has which packet mark.
//!
//! A mark is unique and never changes while it is valid. Of two objects with the same one the older keeps it. New ones
//! go round: the next after the last that was given, so that one that was just freed is not somebody else's at once.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::annotation::egress_ip_mark::Mark;
use egret_core::{EgressIpName, Timestamp};

/// Age, then name: who keeps what two have.
type Claim = (Timestamp, EgressIpName);

/// All marks that are taken.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// By mark, everybody whose object says it.
    claims: BTreeMap<Mark, BTreeSet<Claim>>,
    of: BTreeMap<EgressIpName, (Mark, Timestamp)>,
    /// Given to an object whose write is under way.
    reserved: BTreeMap<EgressIpName, Mark>,
    last: Option<Mark>,
}

impl Marks {
    /// The object says this mark now (`None`: none that can be read). Returns the others that have claimed it, or the
    /// one it had: what they hold may have changed.
    pub(crate) fn set(&mut self, name: &EgressIpName, created: Timestamp, mark: Option<Mark>) -> Vec<EgressIpName> {
        let old = self.of.get(name).copied();
        if old == mark.map(|mark| (mark, created)) {
            return Vec::new();
        }
        let mut touched = Vec::new();
        if let Some((old, created)) = old {
            self.of.remove(name);
            let mut claims = self.claims.remove(&old).unwrap_or_default();
            claims.remove(&(created, name.clone()));
            touched.extend(claims.iter().map(|(_, name)| name.clone()));
            if !claims.is_empty() {
                self.claims.insert(old, claims);
            }
        }
        if let Some(mark) = mark {
            let claims = self.claims.entry(mark).or_default();
            touched.extend(claims.iter().map(|(_, name)| name.clone()));
            claims.insert((created, name.clone()));
            self.of.insert(name.clone(), (mark, created));
        }
        touched
    }

    /// Whether the object has a valid mark that is its own.
    pub(crate) fn holds(&self, name: &EgressIpName) -> bool {
        let first = |mark: &Mark| self.claims.get(mark).and_then(BTreeSet::first);
        self.of.get(name).is_some_and(|(mark, _)| first(mark).is_some_and(|(_, first)| first == name))
    }

    /// A mark that nobody has, reserved for `name` until [`Marks::settle`]; `None` when all are taken.
    pub(crate) fn next(&mut self, name: &EgressIpName) -> Option<Mark> {
        if let Some(mark) = self.reserved.get(name) {
            return Some(*mark);
        }
        let (first, last) = (*Mark::RANGE.start(), *Mark::RANGE.end());
        let start = self.last.map_or(first, |mark| mark.get() + 1);
        let taken = |mark: Mark| self.claims.contains_key(&mark) || self.reserved.values().any(|other| *other == mark);
        let free = |number: u32| Mark::new(number).filter(|mark| !taken(*mark));
        let mark = (start..=last).chain(first..start).find_map(free)?;
        self.last = Some(mark);
        self.reserved.insert(name.clone(), mark);
        Some(mark)
    }

    /// The write for which a mark was reserved has ended; returns whether there was one.
    pub(crate) fn settle(&mut self, name: &EgressIpName) -> bool {
        self.reserved.remove(name).is_some()
    }

    /// Whether no mark is free.
    pub(crate) fn full(&self) -> bool {
        let size = Mark::RANGE.end() - Mark::RANGE.start() + 1;
        u32::try_from(self.claims.len() + self.reserved.len()).is_ok_and(|taken| taken >= size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> EgressIpName {
        text.into()
    }

    fn mark(number: u32) -> Option<Mark> {
        Mark::new(number)
    }

    #[test]
    fn of_two_equal_marks_the_older_object_keeps_it_and_the_other_is_told_when_it_is_free() {
        let mut marks = Marks::default();
        assert_eq!(marks.set(&name("young"), Timestamp(2), mark(50_000)), []);
        assert!(marks.holds(&name("young")));
        assert_eq!(marks.set(&name("old"), Timestamp(1), mark(50_000)), [name("young")]);
        assert_eq!((marks.holds(&name("old")), marks.holds(&name("young"))), (true, false));
        assert_eq!(marks.set(&name("old"), Timestamp(1), None), [name("young")]);
        assert!(marks.holds(&name("young")));
    }

    #[test]
    fn marks_go_round_and_end() {
        let mut marks = Marks::default();
        let (first, last) = (*Mark::RANGE.start(), *Mark::RANGE.end());
        for number in first..=last {
            let owner = name(&format!("e{number}"));
            assert_eq!(marks.next(&owner), mark(number));
            assert!(marks.settle(&owner));
            marks.set(&owner, Timestamp(0), mark(number));
        }
        assert!(marks.full());
        assert_eq!(marks.next(&name("late")), None, "all 5000 are taken");
        marks.set(&name("e50007"), Timestamp(0), None);
        assert_eq!(marks.next(&name("late")), mark(50_007));
    }

    #[test]
    fn a_freed_mark_is_not_given_again_at_once_and_a_reserved_one_to_nobody_else() {
        let mut marks = Marks::default();
        assert_eq!(marks.next(&name("a")), mark(50_000));
        assert_eq!(marks.next(&name("a")), mark(50_000), "its write is tried again");
        assert_eq!(marks.next(&name("b")), mark(50_001));
        marks.settle(&name("b"));
        assert_eq!(marks.next(&name("c")), mark(50_002));
    }
}
