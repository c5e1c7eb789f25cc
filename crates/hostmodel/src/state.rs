//! What is ours in the kernel: as found, or as wanted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{EgressAddress, Route, Rule, Table};

/// Everything in the kernel that is ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Egress addresses on links.
    pub addresses: BTreeSet<EgressAddress>,
    /// Routes in our tables.
    pub routes: BTreeSet<Route>,
    /// Rules of policy routing.
    pub rules: BTreeSet<Rule>,
    /// The nftables table.
    pub table: Option<Table>,
    /// Kernel parameters that we set, by path below `/proc/sys`.
    pub sysctls: BTreeMap<String, String>,
}
