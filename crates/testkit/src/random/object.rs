//! Random EgressIPs, EgressServices and requests to the cloud.

use egret_core::{
    CloudPrivateIpConfig, CloudState, EgressIp, EgressService, Endpoint, Host, NodeSelector, RecordedItem,
};
use egret_core::{Service, SourceIpBy, Timestamp};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::{ADDRESSES, MOST, index, node_index, node_name, rare};
use crate::builders::{address, egress_ip, egress_service, faulty_selector, selector};

/// The most addresses an EgressIP asks for, and the most items its status has.
const MOST_ADDRESSES: usize = 4;

/// What an EgressIP is made of; its number gives it its name.
#[derive(Clone, Debug)]
pub(super) struct EgressIpParts {
    requested: Vec<usize>,
    invalid: bool,
    selector: NodeSelector,
    created: Timestamp,
    recorded: Vec<(Recorded, usize)>,
}

/// The address of a status item.
#[derive(Clone, Debug)]
enum Recorded {
    /// One of those asked for.
    Requested(prop::sample::Index),
    /// Any of the pool.
    Any(usize),
}

/// A random EgressIP.
pub(super) fn egress_ip_parts() -> impl Strategy<Value = EgressIpParts> + Clone {
    let item = prop_oneof![
        3 => any::<prop::sample::Index>().prop_map(Recorded::Requested),
        1 => index(ADDRESSES.len()).prop_map(Recorded::Any),
    ];
    (
        vec(index(ADDRESSES.len()), 0..=MOST_ADDRESSES),
        rare(),
        node_selector(),
        created(),
        vec((item, node_index()), 0..=MOST_ADDRESSES),
    )
        .prop_map(|(requested, invalid, selector, created, recorded)| EgressIpParts {
            requested,
            invalid,
            selector,
            created,
            recorded,
        })
}

/// A random selector, of all kinds.
pub(super) fn node_selector() -> impl Strategy<Value = NodeSelector> + Clone {
    let texts = ["{}", "pool=a", "pool in (a,b)", "pool!=a", "pool", "!pool", "pool=z", "pool=b;os!=windows"];
    prop_oneof![
        4 => Just(NodeSelector::egress_assignable()),
        8 => prop::sample::select(texts.to_vec()).prop_map(selector),
        1 => Just(faulty_selector()),
    ]
}

/// Few seconds, so that ages are equal now and then; or none yet.
fn created() -> impl Strategy<Value = Timestamp> + Clone {
    prop_oneof![6 => (0..5_i64).prop_map(Timestamp), 1 => Just(Timestamp::UNKNOWN)]
}

impl EgressIpParts {
    /// The EgressIP of this number.
    pub(super) fn build(self, i: usize) -> EgressIp {
        let mut builder = egress_ip(&format!("e{i}"));
        for i in &self.requested {
            builder = builder.address(ADDRESSES[*i]);
        }
        if self.invalid {
            builder = builder.address("10.0.0.100/32");
        }
        for (address, node) in &self.recorded {
            let address = match address {
                Recorded::Requested(_) if self.requested.is_empty() => continue,
                Recorded::Requested(pick) => *pick.get(&self.requested),
                Recorded::Any(i) => *i,
            };
            builder = builder.recorded(ADDRESSES[address], &node_name(*node));
        }
        EgressIp { selector: self.selector, created: self.created, ..builder.build() }
    }
}

/// Status items of their own, sensible or not.
pub(super) fn recorded() -> impl Strategy<Value = Vec<RecordedItem>> + Clone {
    let item = (index(ADDRESSES.len()), node_index());
    btree_set(item, 0..=MOST_ADDRESSES).prop_map(|items| {
        let item = |(i, node): (usize, usize)| RecordedItem {
            address: address(ADDRESSES[i]),
            node: node_name(node).as_str().into(),
        };
        let mut items: Vec<_> = items.into_iter().map(item).collect();
        items.sort_unstable();
        items
    })
}

/// What an EgressService is made of; its number gives it its name.
#[derive(Clone, Debug)]
pub(super) struct EgressServiceParts {
    by_network: bool,
    selector: NodeSelector,
    created: Timestamp,
    recorded: Host,
    service: Option<Service>,
    endpoints: Vec<Endpoint>,
}

/// A random EgressService.
pub(super) fn egress_service_parts() -> impl Strategy<Value = EgressServiceParts> + Clone {
    let recorded = prop_oneof![
        2 => Just(Host::None),
        4 => node_index().prop_map(|i| Host::Node(node_name(i).as_str().into())),
        1 => Just(Host::All),
    ];
    let selector = prop_oneof![2 => Just(NodeSelector::everything()), 3 => node_selector()];
    (rare(), selector, created(), recorded, option::weighted(0.9, service()), endpoints()).prop_map(
        |(by_network, selector, created, recorded, service, endpoints)| EgressServiceParts {
            by_network,
            selector,
            created,
            recorded,
            service,
            endpoints,
        },
    )
}

/// A random Service.
pub(super) fn service() -> impl Strategy<Value = Service> + Clone {
    (rare(), any::<bool>())
        .prop_map(|(pending, traffic_policy_local)| Service { has_ingress: !pending, traffic_policy_local })
}

/// Random endpoints of a Service: of pods, and of a host network now and then.
pub(super) fn endpoints() -> impl Strategy<Value = Vec<Endpoint>> + Clone {
    let endpoint = (option::weighted(0.9, node_index()), 2..5_usize, rare(), rare());
    let endpoint = endpoint.prop_map(|(node, last, host, gone)| {
        let subnet = if host { "10.0.0".to_owned() } else { format!("10.128.{}", node.unwrap_or(0).min(MOST - 1)) };
        let node = node.map(|node| node_name(node).as_str().into());
        Endpoint { address: address(&format!("{subnet}.{last}")), node, serving: !gone }
    });
    // Ascending and distinct, as an observation gives them.
    btree_set(endpoint, 0..=3).prop_map(|endpoints| endpoints.into_iter().collect())
}

impl EgressServiceParts {
    /// The EgressService of this number, its Service and endpoints.
    pub(super) fn build(self, i: usize) -> (EgressService, Option<Service>, Vec<Endpoint>) {
        let (object, ..) = egress_service(&format!("ns/s{i}")).build();
        let source_ip_by = if self.by_network { SourceIpBy::Network } else { SourceIpBy::LoadBalancerIp };
        let (selector, created, recorded) = (self.selector, self.created, self.recorded);
        let object = EgressService { source_ip_by, selector, created, recorded, ..object };
        (object, self.service, self.endpoints)
    }
}

/// A random request to the cloud.
pub(super) fn cloud_request() -> impl Strategy<Value = CloudPrivateIpConfig> + Clone {
    let state = prop_oneof![
        2 => Just(CloudState::Confirmed),
        1 => Just(CloudState::Requested),
        1 => Just(CloudState::Refused),
    ];
    (index(ADDRESSES.len()), option::weighted(0.9, index(MOST)), node_index(), state).prop_map(
        |(i, owner, node, state)| CloudPrivateIpConfig {
            address: address(ADDRESSES[i]),
            owner: owner.map(|i| format!("e{i}").as_str().into()),
            node: node_name(node).as_str().into(),
            state,
        },
    )
}
