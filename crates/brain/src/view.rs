//! What a brain shows of itself: to the commands, and in numbers.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{Address, NodeName, Platform, Reachability, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Now;
use crate::brain::Brain;

/// What the commands need to decide as the controller does; served as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option or a state of its own, and this is how JSON says it"
)]
pub struct View {
    /// Whether this instance leads; one that does not knows nothing of reachability.
    pub leading: bool,
    /// When it was taken, UTC, in seconds since 1970.
    pub taken: i64,
    /// The cluster runs on a cloud.
    pub cloud: bool,
    /// Nodes are probed.
    pub probing: bool,
    /// Cordoned nodes host nothing.
    pub cordon_excludes: bool,
    /// Nodes that match are ignored, as a selector in kubectl's form; absent if none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_host_subnet: Option<String>,
    /// Networks of pods beside those that the nodes name.
    #[serde(default)]
    pub cluster_subnets: Vec<String>,
    /// By node: `reachable`, `unreachable`, `notProbed`, `inDoubt`.
    pub reachability: BTreeMap<String, Reach>,
    /// Addresses that a node still lists though they have left it.
    #[serde(default)]
    pub departed: Vec<Pair>,
    /// What the cloud has refused and is not asked again for now.
    #[serde(default)]
    pub refused: Vec<Refusal>,
    /// Most nodes fell silent at once, and nothing is concluded from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass_silence: Option<SilenceView>,
}

/// What the prober knows of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of egret_core::Reachability")]
pub enum Reach {
    Reachable,
    Unreachable,
    NotProbed,
    InDoubt,
}

impl From<Reachability> for Reach {
    fn from(reachability: Reachability) -> Self {
        match reachability {
            Reachability::Reachable => Self::Reachable,
            Reachability::Unreachable => Self::Unreachable,
            Reachability::NotProbed => Self::NotProbed,
            Reachability::InDoubt => Self::InDoubt,
        }
    }
}

impl From<Reach> for Reachability {
    fn from(reach: Reach) -> Self {
        match reach {
            Reach::Reachable => Self::Reachable,
            Reach::Unreachable => Self::Unreachable,
            Reach::NotProbed => Self::NotProbed,
            Reach::InDoubt => Self::InDoubt,
        }
    }
}

/// An address and a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The address.
    pub address: String,
    /// The node.
    pub node: String,
}

/// A refusal of the cloud that rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The address.
    pub address: String,
    /// The node.
    pub node: String,
    /// For so many seconds more.
    pub seconds: u64,
}

/// Most nodes fell silent at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilenceView {
    /// What the operator accepts it by.
    pub number: u64,
    /// For so many seconds now.
    pub seconds: u64,
    /// The nodes that keep what they hold because of it.
    pub nodes: Vec<String>,
}

/// The state in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Addresses that have a node in the status of their object.
    pub assigned: usize,
    /// Addresses without one, by reason.
    pub unassigned: BTreeMap<&'static str, usize>,
    /// Nodes by reachability.
    pub nodes: BTreeMap<&'static str, usize>,
    /// Assignments that ended although their address was still asked for; only grows.
    pub rebalanced: u64,
    /// Assignments that ended, by cause; only grows.
    pub moves: BTreeMap<&'static str, u64>,
    /// Nodes that had answered and were given up; only grows.
    pub losses: u64,
    /// Pairs that the cloud has refused; only grows.
    pub refusals: u64,
    /// Marks that the API server has refused; only grows.
    pub marks_denied: u64,
    /// Nodes that keep what they hold because most fell silent at once.
    pub in_doubt: usize,
    /// Faulty objects by kind.
    pub faulty: BTreeMap<&'static str, usize>,
}

impl Brain {
    /// What the commands read.
    #[must_use]
    pub fn view(&self, now: Now) -> View {
        let options = &self.snapshot.options;
        let seconds = |until: std::time::Duration| until.saturating_sub(now.elapsed).as_secs();
        let pair = |(address, node): &(Address, NodeName)| (address.to_string(), node.to_string());
        let refused = self.cool_downs.resting(now.elapsed).map(|(resting, until)| {
            let (address, node) = pair(resting);
            Refusal { address, node, seconds: seconds(until) }
        });
        let departed = self.departed.keys().map(|departed| {
            let (address, node) = pair(departed);
            Pair { address, node }
        });
        let Timestamp(taken) = now.wall;
        View {
            leading: self.leading,
            taken,
            cloud: options.platform == Platform::Cloud,
            probing: self.config.probing,
            cordon_excludes: options.cordon_excludes,
            no_host_subnet: options.no_host_subnet.as_ref().map(ToString::to_string),
            cluster_subnets: options.cluster_subnets.iter().map(ToString::to_string).collect(),
            reachability: self.snapshot.nodes.values().map(|n| (n.name.to_string(), n.reachability.into())).collect(),
            departed: departed.collect(),
            refused: refused.collect(),
            mass_silence: self.reach.silence().map(|silence| SilenceView {
                number: silence.number,
                seconds: now.elapsed.saturating_sub(silence.since).as_secs(),
                nodes: silence.nodes.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    /// The state in numbers.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let mut numbers = Numbers {
            assigned: self.egress_ips.values().map(|entry| entry.object.recorded.len()).sum(),
            rebalanced: self.counters.rebalanced,
            moves: self.counters.moves.clone(),
            losses: self.reach.losses,
            refusals: self.cool_downs.refusals,
            marks_denied: self.counters.marks_denied,
            in_doubt: self.reach.silence().map_or(0, |silence| silence.nodes.len()),
            ..Numbers::default()
        };
        for (reason, count) in self.egress_ips.values().flat_map(|entry| &entry.missing) {
            *numbers.unassigned.entry(reason).or_default() += count;
        }
        for node in self.snapshot.nodes.values() {
            let name = match node.reachability {
                Reachability::Reachable => "reachable",
                Reachability::Unreachable => "unreachable",
                Reachability::NotProbed => "not_probed",
                Reachability::InDoubt => "in_doubt",
            };
            *numbers.nodes.entry(name).or_default() += 1;
        }
        let kinds: BTreeSet<_> = self.faults.keys().map(|key| key.kind).collect();
        for kind in kinds {
            numbers.faulty.insert(kind.as_str(), self.faults.keys().filter(|key| key.kind == kind).count());
        }
        numbers
    }
}
