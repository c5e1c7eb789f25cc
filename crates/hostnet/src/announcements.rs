//! Announcements that are said again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use egret_hostmodel::EgressAddress;

/// After how long an announcement is said again, once and once more. A neighbour that misses all of them sends to the old
/// place until it asks anew, which takes half a minute; a bridge that has just learned its ports may lose the first.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Announcements that are to be said again.
#[derive(Debug, Default)]
pub(crate) struct Announcements(BTreeMap<EgressAddress, (usize, Instant)>);

impl Announcements {
    /// It was said now.
    pub(crate) fn repeat(&mut self, address: EgressAddress) {
        self.0.insert(address, (0, Instant::now() + AGAIN[0]));
    }

    /// It must not be said any more.
    pub(crate) fn retract(&mut self, address: &EgressAddress) {
        self.0.remove(address);
    }

    /// How long it is until one must be said; absent if there is none.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.0.values().map(|(_, due)| due.saturating_duration_since(Instant::now())).min()
    }

    /// Those that must be said now.
    pub(crate) fn take_due(&mut self) -> Vec<EgressAddress> {
        let now = Instant::now();
        let due: Vec<_> = self.0.iter().filter(|(_, (_, due))| *due <= now).map(|(it, _)| it.clone()).collect();
        for address in &due {
            let said = self.0.get(address).map_or(AGAIN.len(), |(said, _)| said + 1);
            match AGAIN.get(said) {
                Some(gap) => drop(self.0.insert(address.clone(), (said, now + *gap))),
                None => drop(self.0.remove(address)),
            }
        }
        due
    }
}
