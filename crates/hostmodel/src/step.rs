//! One thing to do to the kernel.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{EgressAddress, Elements, Route, Rule, Set, Table};

/// One thing to do. Each is done as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Set a kernel parameter, and remember what it was.
    SetSysctl {
        /// Below `/proc/sys`.
        path: String,
        /// What to set.
        value: String,
    },
    /// Set a kernel parameter back to what it was.
    RestoreSysctl {
        /// Below `/proc/sys`.
        path: String,
    },
    /// Put the nftables table in place of whatever is there, in one transaction.
    ReplaceTable {
        /// The table.
        table: Table,
    },
    /// Take the nftables table away.
    DeleteTable,
    /// Take elements out and put others in, in one transaction.
    ChangeElements {
        /// Taken out, as they were found.
        remove: Elements,
        /// Put in.
        add: Elements,
    },
    /// Add a rule.
    AddRule {
        /// The rule.
        rule: Rule,
    },
    /// Delete a rule.
    DeleteRule {
        /// The rule.
        rule: Rule,
    },
    /// Add a route, in place of one with the same table, destination and metric.
    AddRoute {
        /// The route.
        route: Route,
    },
    /// Delete a route.
    DeleteRoute {
        /// The route.
        route: Route,
    },
    /// Take an egress address: ask the wire whether somebody answers for it, and if nobody does put it on the link.
    TakeAddress {
        /// The address.
        address: EgressAddress,
    },
    /// Take an egress address off its link.
    DropAddress {
        /// The address.
        address: EgressAddress,
    },
    /// Tell the neighbours where an egress address is now.
    Announce {
        /// The address.
        address: EgressAddress,
    },
    /// Forget the connections that a source opened: their next packets are new ones, and get the source address of now.
    ForgetConnections {
        /// The source.
        source: IpAddr,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetSysctl { path, value } => write!(f, "sysctl {path} = {value}"),
            Self::RestoreSysctl { path } => write!(f, "sysctl {path} back to what it was"),
            Self::ReplaceTable { table } => {
                f.write_str("nft replace table inet egret:")?;
                table.elements.iter().try_for_each(|(set, elements)| write!(f, " {set} {}", elements.len()))
            }
            Self::DeleteTable => f.write_str("nft delete table inet egret"),
            Self::ChangeElements { remove, add } => {
                f.write_str("nft elements:")?;
                keys(remove).try_for_each(|(set, keys)| write!(f, " -{set} {{ {keys} }}"))?;
                keys(add).try_for_each(|(set, keys)| write!(f, " +{set} {{ {keys} }}"))
            }
            Self::AddRule { rule } => write!(f, "ip {}rule add {rule}", dash(rule.v6)),
            Self::DeleteRule { rule } => write!(f, "ip {}rule delete {rule}", dash(rule.v6)),
            Self::AddRoute { route } => write!(f, "ip {}route add {route}", dash(route.destination.addr().is_ipv6())),
            Self::DeleteRoute { route } => {
                write!(f, "ip {}route delete {route}", dash(route.destination.addr().is_ipv6()))
            }
            Self::TakeAddress { address } => write!(f, "take {} on {}", address.ip, address.link),
            Self::DropAddress { address } => write!(f, "drop {} from {}", address.ip, address.link),
            Self::Announce { address } => write!(f, "announce {} on {}", address.ip, address.link),
            Self::ForgetConnections { source } => write!(f, "forget connections of {source}"),
        }
    }
}

/// The keys of each set, a few of them.
fn keys(elements: &Elements) -> impl Iterator<Item = (&Set, String)> {
    elements.iter().map(|(set, elements)| {
        let mut keys: Vec<String> = elements.keys().take(3).map(ToString::to_string).collect();
        if elements.len() > 3 {
            keys.push(format!("{} more", elements.len() - 3));
        }
        (set, keys.join(", "))
    })
}

fn dash(v6: bool) -> &'static str {
    if v6 { "-6 " } else { "" }
}
