//! The network that an EgressService names.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::Family;
use serde::{Deserialize, Serialize};

use crate::route::family;
use crate::{Link, Route, Settings, Surroundings};

/// A network of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// Its table.
    pub(crate) table: u32,
    /// The routes that it must have there, where the table is ours.
    pub(crate) routes: BTreeSet<Route>,
    /// The links by which packets come and go.
    pub(crate) links: BTreeSet<String>,
    /// The VRF device, where it is one.
    pub(crate) vrf: Option<String>,
    /// The families for which it has a route.
    pub(crate) families: BTreeSet<Family>,
}

/// Why a network is none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkFault {
    /// Neither a number, nor a name of a table, nor a link.
    #[error("this node has no routing table, VRF device or interface {name:?}")]
    Missing {
        /// What was asked for.
        name: String,
    },
    /// The kernel's own.
    #[error("routing table {table} is the kernel's own")]
    Reserved {
        /// Its number.
        table: u32,
    },
}

/// The network of that name: a number, the name of a table, a VRF device, an interface, in this order.
pub(crate) fn resolve(name: &str, surroundings: &Surroundings, settings: &Settings) -> Result<Network, NetworkFault> {
    let number = name.parse().ok().or_else(|| surroundings.table_names.get(name).copied());
    let link = surroundings.link(name);
    match (number, link) {
        (Some(table @ (0 | 255)), _) => Err(NetworkFault::Reserved { table }),
        (Some(table), _) => Ok(of_table(table, surroundings)),
        (None, Some(Link { vrf_table: Some(table), .. })) => Ok(of_table(*table, surroundings)),
        (None, Some(link)) => Ok(of_link(link, settings.service_tables, surroundings, settings)),
        (None, None) => Err(NetworkFault::Missing { name: name.to_owned() }),
    }
}

fn of_table(table: u32, surroundings: &Surroundings) -> Network {
    let routes: Vec<&Route> = surroundings.routes.iter().filter(|route| route.table == table).collect();
    let mut links: BTreeSet<String> = routes.iter().flat_map(|route| hop_links(route)).collect();
    let vrf = surroundings.links.iter().find(|link| link.vrf_table == Some(table));
    if let Some(vrf) = vrf {
        // Replies come in by a slave and are the VRF's from then on.
        links.insert(vrf.name.clone());
        links.extend(
            surroundings.links.iter().filter(|link| link.master == Some(vrf.index)).map(|link| link.name.clone()),
        );
    }
    let families = routes.iter().map(|route| family(&route.destination)).collect();
    Network { table, routes: BTreeSet::new(), links, vrf: vrf.map(|vrf| vrf.name.clone()), families }
}

/// The network of one link: a table of ours with its routes, those that it has in the main table or in its VRF's.
pub(crate) fn of_link(link: &Link, tables: u32, surroundings: &Surroundings, settings: &Settings) -> Network {
    let table = tables + link.index;
    let from = surroundings.table_of(link);
    let routes = surroundings.routes.iter().filter(|route| route.table == from && route.table != table);
    let routes: BTreeSet<Route> = routes.filter_map(|route| copied(route, link, table, settings)).collect();
    let families = routes.iter().map(|route| family(&route.destination)).collect();
    let vrf = surroundings.vrf_of(link).map(|vrf| vrf.name.clone());
    let links = [link.name.clone()].into_iter().chain(vrf.clone()).collect();
    Network { table, routes, links, vrf, families }
}

/// The part of a route that goes by one link. No default route is made up where there is none: who knows no router on a
/// link sends nothing beyond it.
fn copied(route: &Route, link: &Link, table: u32, settings: &Settings) -> Option<Route> {
    let hops: Vec<_> = route.hops.iter().filter(|hop| hop.link == link.name).cloned().collect();
    let link_local = matches!(route.destination, ipnet::IpNet::V6(net) if net.addr().is_unicast_link_local());
    (link.up && !hops.is_empty() && !link_local).then(|| Route {
        table,
        protocol: settings.protocol,
        hops: single_weight(hops),
        ..route.clone()
    })
}

/// The kernel does not keep the weight of an only hop.
fn single_weight(mut hops: Vec<crate::Hop>) -> Vec<crate::Hop> {
    if let [only] = hops.as_mut_slice() {
        only.weight = 1;
    }
    hops
}

fn hop_links(route: &Route) -> impl Iterator<Item = String> + '_ {
    route.hops.iter().map(|hop| hop.link.clone())
}

/// Numbers of the ways of replies, for tables. A table keeps the number that it has: to change it would lead replies that
/// are under way into another network.
pub(crate) fn number_paths(tables: &BTreeSet<u32>, present: &BTreeMap<u32, u8>) -> BTreeMap<u32, u8> {
    let mut numbers: BTreeMap<u32, u8> =
        present.iter().filter(|(table, _)| tables.contains(table)).map(|(table, number)| (*table, *number)).collect();
    for table in tables {
        let taken: BTreeSet<u8> = numbers.values().chain(present.values()).copied().collect();
        let free = (1..=crate::PATHS).find(|number| !taken.contains(number));
        if let Some(number) = free.filter(|_| !numbers.contains_key(table)) {
            numbers.insert(*table, number);
        }
    }
    numbers
}
