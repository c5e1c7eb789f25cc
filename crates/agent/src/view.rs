//! What the agent shows of itself.

use std::collections::BTreeSet;
use std::net::IpAddr;

use egret_hostmodel::{Datapath, Key, Others, Report, Role, State};
use serde::{Deserialize, Serialize};

/// What a node knows and does, as `/snapshot` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct View {
    /// The node.
    pub node: String,
    /// Who brings packets here.
    pub datapath: Datapath,
    /// Jobs that ovnkube-node does.
    pub others: Others,
    /// The kernel is as it should be.
    pub settled: bool,
    /// Why it is not.
    pub failure: Option<String>,
    /// The sources that have their way out here, or are kept in, now.
    pub sources: BTreeSet<IpAddr>,
    /// What to know of the objects.
    pub reports: Vec<Report>,
}

/// The sources of a state that are served, or kept in: those that no change of it has in its hands.
pub(crate) fn sources(state: &State) -> BTreeSet<IpAddr> {
    let sets = state.table.iter().flat_map(|table| &table.elements);
    let of = |wanted: fn(Role) -> bool| {
        let fit = sets.clone().filter(move |(set, _)| wanted(set.role));
        fit.flat_map(|(_, keys)| keys.keys()).filter_map(|key| match key {
            Key::Source(ip) => Some(*ip),
            _ => None,
        })
    };
    let held: BTreeSet<IpAddr> = of(|role| role == Role::Hold).collect();
    let served = |role| matches!(role, Role::ServiceSource | Role::AddressSource | Role::Bound | Role::Refuse);
    of(served).filter(|ip| !held.contains(ip)).collect()
}
