//! What there is.

use std::collections::{BTreeMap, BTreeSet};

use egret_hostmodel::{EgressAddress, MAIN, Others, Route, Rule, Settings, State, Surroundings, Table};

use crate::link::{FoundLink, egress_addresses, is_egress, links};
use crate::netlink::Fault;
use crate::nft::{self, NftError};
use crate::route::routes;
use crate::rule::{FoundRule, rules};
use crate::worker::Worker;
use crate::{Class, table_names};

/// The chains by which ovnkube-node shows that it serves EgressServices, and EgressIPs on secondary networks.
const OVN_SERVICES: &str = "egress-services";
const OVN_ADDRESSES: &str = "egress-ip-snat";

/// A node's kernel as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// What is ours.
    pub found: State,
    /// What is not.
    pub surroundings: Surroundings,
    /// Jobs of ours that ovnkube-node does here.
    pub others: Others,
    /// What is in our places and not ours; nobody touches it.
    pub foreign: Vec<Foreign>,
}

/// Something in a place of ours that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreign {
    /// A rule within our priorities: of another protocol number, or one that says what none of ours does.
    Rule {
        /// Whether it is about IPv6.
        v6: bool,
        /// Its priority.
        priority: u32,
        /// Who put it there (`proto`).
        protocol: u8,
        /// What it says, where that can be said.
        rule: Option<Rule>,
    },
    /// A route of another protocol number in a table that has routes of ours.
    Route(Route),
    /// An egress address, while ovnkube-node puts such on this node: it looks like ours.
    Address(EgressAddress),
}

/// Why the kernel cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// Links and addresses.
    #[error("failed to list links")]
    Links(#[source] Fault),
    /// Rules.
    #[error("failed to list rules")]
    Rules(#[source] Fault),
    /// Routes.
    #[error("failed to list routes")]
    Routes(#[source] Fault),
    /// Whether an nftables table is there.
    #[error("failed to look for a table of nftables")]
    Tables(#[source] Fault),
    /// What is in it.
    #[error("failed to list table inet egret")]
    Table(#[source] NftError),
    /// The thread that speaks to the kernel has ended.
    #[error("nobody speaks to the kernel any more")]
    Stopped,
}

impl ObserveError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Links(fault) | Self::Rules(fault) | Self::Routes(fault) | Self::Tables(fault) => {
                Class::of_fault(*fault)
            }
            Self::Table(error) => error.class(),
            Self::Stopped => Class::Bug,
        }
    }
}

impl Worker {
    pub(crate) fn observe(&mut self) -> Result<Observed, ObserveError> {
        let settings = self.settings;
        let links = links(&mut self.route).map_err(ObserveError::Links)?;
        let rules = rules(&mut self.route).map_err(ObserveError::Rules)?;
        let names = links.iter().map(|(index, found)| (*index, found.link.name.clone())).collect();
        let routes = routes(&mut self.route, &names).map_err(ObserveError::Routes)?;
        let others = self.others().map_err(ObserveError::Tables)?;
        let table = self.table()?;
        let (ours, theirs): (Vec<Route>, Vec<Route>) =
            routes.into_iter().partition(|route| route.protocol == settings.protocol && route.table != MAIN);
        let mut found = State {
            addresses: egress_addresses(&links, settings.address_protocol),
            routes: ours.into_iter().collect(),
            rules: rules.iter().filter_map(|found| ours_of(found, &settings)).collect(),
            table,
            sysctls: self.sysctls.found(),
        };
        let mut foreign = foreign_rules(&rules, &settings);
        foreign.extend(foreign_routes(&found.routes, &theirs));
        if others.addresses {
            // Nothing tells them from ours, and we make none here.
            foreign.extend(std::mem::take(&mut found.addresses).into_iter().map(Foreign::Address));
        }
        Ok(Observed { found, surroundings: self.surroundings(links, theirs), others, foreign })
    }

    fn others(&mut self) -> Result<Others, Fault> {
        Ok(Others {
            services: nft::has_ovn_chain(&mut self.netfilter, OVN_SERVICES)?,
            addresses: nft::has_ovn_chain(&mut self.netfilter, OVN_ADDRESSES)?,
        })
    }

    fn table(&mut self) -> Result<Option<Table>, ObserveError> {
        if !nft::has_table(&mut self.netfilter).map_err(ObserveError::Tables)? {
            return Ok(None);
        }
        match nft::observe(self.nft.as_mut(), &mut self.netfilter, &mut self.listed, &self.memory) {
            Ok(table) => Ok(Some(table)),
            // It may have gone in between.
            Err(_) if matches!(nft::has_table(&mut self.netfilter), Ok(false)) => Ok(None),
            Err(error) => Err(ObserveError::Table(error)),
        }
    }

    fn surroundings(&self, links: BTreeMap<u32, FoundLink>, routes: Vec<Route>) -> Surroundings {
        let protocol = self.settings.address_protocol;
        let mut links: Vec<_> = links.into_values().map(|found| found.link).collect();
        for link in &mut links {
            link.addresses.retain(|address| !is_egress(address, protocol));
        }
        Surroundings {
            routes,
            table_names: table_names::read(&self.table_names),
            sysctls: self.sysctls.before(links.iter().map(|link| link.name.as_str())),
            links,
        }
    }
}

fn ours_of(found: &FoundRule, settings: &Settings) -> Option<Rule> {
    found.rule.clone().filter(|_| found.protocol == settings.protocol)
}

fn foreign_rules(rules: &[FoundRule], settings: &Settings) -> Vec<Foreign> {
    let (services, addresses) = (settings.service_priority, settings.address_priority);
    // The blocks as `Settings` tells them.
    let blocks = [services.saturating_sub(4)..=services + 2, addresses.saturating_sub(1)..=addresses + 2];
    let inside =
        |priority: u32| priority == settings.vrf_priority || blocks.iter().any(|block| block.contains(&priority));
    let strange = rules.iter().filter(|found| inside(found.priority) && ours_of(found, settings).is_none());
    let foreign = strange.map(|found| Foreign::Rule {
        v6: found.v6,
        priority: found.priority,
        protocol: found.protocol,
        rule: found.rule.clone(),
    });
    foreign.collect()
}

fn foreign_routes(ours: &BTreeSet<Route>, theirs: &[Route]) -> Vec<Foreign> {
    let tables: BTreeSet<u32> = ours.iter().map(|route| route.table).collect();
    theirs.iter().filter(|route| tables.contains(&route.table)).cloned().map(Foreign::Route).collect()
}
