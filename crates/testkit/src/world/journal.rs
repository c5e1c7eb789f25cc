//! What a world passed through since it was last looked at.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{EgressIpName, EventReason, Snapshot};
use egret_placement::{Decision, event_reasons};

use super::Items;

/// What a world passed through since it was last looked at.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// Every reason that an EgressIP had at some time.
    pub reasons: BTreeMap<EgressIpName, BTreeSet<EventReason>>,
    /// Every pair that an EgressIP's status had at some time.
    pub pairs: BTreeMap<String, BTreeSet<(String, String)>>,
}

impl Journal {
    pub(super) fn note_reasons(&mut self, snapshot: &Snapshot, decision: &Decision) {
        for name in snapshot.egress_ips.keys() {
            self.reasons.entry(name.clone()).or_default().extend(event_reasons(snapshot, decision, name));
        }
    }

    pub(super) fn note_status(&mut self, name: &str, items: &Items) {
        self.pairs.entry(name.to_owned()).or_default().extend(items.iter().cloned());
    }
}
