//! Random nodes.

use egret_core::{
    Address, Capacity, GatewayMode, InfrastructureFault, InfrastructureFaultKind, Node, Platform, Reachability,
};
use proptest::collection::btree_set;
use proptest::option;
use proptest::prelude::*;

use super::{ADDRESSES, index, node_name, rare};
use crate::builders::{NodeBuilder, address, node};

const PRIMARY_V4: [&str; 2] = ["10.0.0.", "10.0.1."];
/// Nested, so that the longest prefix matters.
const SECONDARY: [(&str, &str); 3] = [("172.16.0.", "/24"), ("172.16.128.", "/16"), ("fd01::", "/64")];
const POOLS: [&str; 3] = ["a", "b", "c"];
const FAULTS: [&str; 3] =
    ["k8s.ovn.org/node-primary-ifaddr", "k8s.ovn.org/host-cidrs", "cloud.network.openshift.io/egress-ipconfig"];

/// What a node is made of; its number gives it its name and addresses.
#[derive(Clone, Debug)]
pub(super) struct NodeParts {
    labels: Labels,
    state: State,
    networks: Networks,
    capacity: Capacity,
    gateway: Option<GatewayMode>,
}

#[derive(Clone, Debug)]
struct Labels {
    pool: Option<usize>,
    unassignable: bool,
    windows: bool,
}

#[derive(Clone, Debug)]
struct State {
    not_ready: bool,
    cordoned: bool,
    drained: bool,
    reachability: Reachability,
}

#[derive(Clone, Debug)]
struct Networks {
    v4: usize,
    v6: bool,
    secondary: std::collections::BTreeSet<usize>,
    fault: Option<InfrastructureFault>,
    /// An address of the pool that is a host address here.
    stolen: Option<usize>,
    /// That address is an egress IP which just left.
    left: bool,
    /// An address of the pool that the node lists as an egress IP.
    own: Option<usize>,
}

/// A random node.
pub(super) fn parts(platform: Platform) -> impl Strategy<Value = NodeParts> + Clone {
    let gateway = prop_oneof![
        8 => Just(None),
        4 => Just(Some(GatewayMode::Local)),
        1 => Just(Some(GatewayMode::Shared)),
        1 => Just(Some(GatewayMode::Disabled)),
    ];
    (labels(), state(), networks(platform), capacity(platform), gateway).prop_map(
        |(labels, state, networks, capacity, gateway)| NodeParts { labels, state, networks, capacity, gateway },
    )
}

fn labels() -> impl Strategy<Value = Labels> + Clone {
    (option::of(index(POOLS.len())), prop::bool::weighted(0.3), rare())
        .prop_map(|(pool, unassignable, windows)| Labels { pool, unassignable, windows })
}

fn state() -> impl Strategy<Value = State> + Clone {
    (rare(), rare(), rare(), reachability()).prop_map(|(not_ready, cordoned, drained, reachability)| State {
        not_ready,
        cordoned,
        drained,
        reachability,
    })
}

/// What the prober knows.
pub(super) fn reachability() -> impl Strategy<Value = Reachability> + Clone {
    prop_oneof![
        6 => Just(Reachability::Reachable),
        1 => Just(Reachability::NotProbed),
        1 => Just(Reachability::Unreachable),
        1 => Just(Reachability::InDoubt),
    ]
}

fn networks(platform: Platform) -> impl Strategy<Value = Networks> + Clone {
    let most_secondary = if platform == Platform::Cloud { 0 } else { SECONDARY.len() };
    let pool = || index(ADDRESSES.len());
    let rarely = |strategy| option::weighted(0.1, strategy);
    let kind = prop_oneof![Just(InfrastructureFaultKind::Missing), Just(InfrastructureFaultKind::Unparsable)];
    let fault = (index(FAULTS.len()), kind).prop_map(|(i, kind)| InfrastructureFault { annotation: FAULTS[i], kind });
    (
        index(PRIMARY_V4.len()),
        any::<bool>(),
        btree_set(index(SECONDARY.len()), 0..=most_secondary),
        option::weighted(0.1, fault),
        rarely(pool()),
        prop::bool::weighted(0.3),
        rarely(pool()),
    )
        .prop_map(|(v4, v6, secondary, fault, stolen, left, own)| Networks {
            v4,
            v6,
            secondary,
            fault,
            stolen,
            left,
            own,
        })
}

fn capacity(platform: Platform) -> BoxedStrategy<Capacity> {
    if platform == Platform::BareMetal {
        return Just(Capacity::default()).boxed();
    }
    let limit = || option::weighted(0.4, 0..4_u32);
    (limit(), limit(), limit()).prop_map(|(v4, v6, total)| Capacity { v4, v6, total }).boxed()
}

impl NodeParts {
    /// The address that just left the node.
    pub(super) fn departed(&self) -> Option<Address> {
        self.networks.stolen.filter(|_| self.networks.left).map(|i| address(ADDRESSES[i]))
    }

    /// The node of this number.
    pub(super) fn build(self, i: usize) -> NodeBuilder {
        let last = 10 + i;
        let mut builder = node(&node_name(i)).pods(&format!("10.128.{i}.0/24"));
        builder = self.labels.put(builder);
        builder = builder.primary(&format!("{}{last}/24", PRIMARY_V4[self.networks.v4]));
        if self.networks.v6 {
            builder = builder.primary(&format!("fd00::{last}/64"));
        }
        for (network, length) in self.networks.secondary.iter().map(|i| SECONDARY[*i]) {
            builder = builder.secondary(&format!("{network}{last}{length}"));
        }
        if let Some(i) = self.networks.stolen {
            builder = builder.host_address(ADDRESSES[i]);
        }
        if let Some(i) = self.networks.own {
            builder = builder.own_egress_address(ADDRESSES[i]);
        }
        if let Some(mode) = self.gateway {
            builder = builder.gateway(mode);
        }
        let (state, capacity, fault) = (self.state, self.capacity, self.networks.fault);
        builder.adjust(|node: &mut Node| {
            node.ready = !state.not_ready;
            node.cordoned = state.cordoned;
            node.drained = state.drained;
            node.reachability = state.reachability;
            node.capacity = capacity;
            if let Some(fault) = fault {
                node.network = Err(fault);
            }
        })
    }
}

impl Labels {
    fn put(&self, mut builder: NodeBuilder) -> NodeBuilder {
        if !self.unassignable {
            builder = builder.assignable();
        }
        if let Some(pool) = self.pool {
            builder = builder.label("pool", POOLS[pool]);
        }
        if self.windows { builder.label("os", "windows") } else { builder }
    }
}
