//! Steps, done.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use egret_hostmodel::{EgressAddress, Route, Rule, Step};
use ipnet::IpNet;
use nix::errno::Errno;
use nix::libc;

use crate::link::{FoundLink, is_egress, links, put_on, take_off};
use crate::netlink::{Fault, Message};
use crate::nft::{self, NftError};
use crate::rule::rules;
use crate::rule_order::RuleOrder;
use crate::worker::Worker;
use crate::{Class, route, rule};

/// What came of steps.
#[derive(Debug)]
#[must_use]
pub struct Applied {
    /// How many are done; those before the one that failed.
    pub done: usize,
    /// Why the next one is not; nothing of it and of what comes after it is done.
    pub failed: Option<StepError>,
}

/// Why a step is not done.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A kernel parameter.
    #[error("failed to set {path}")]
    Sysctl {
        /// Below `/proc/sys`.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The nftables table.
    #[error("failed to change table inet egret")]
    Nft(#[from] NftError),
    /// A rule.
    #[error("failed to change the rule \"{rule}\"")]
    Rule {
        /// The rule.
        rule: Box<Rule>,
        /// Why.
        #[source]
        source: Fault,
    },
    /// A route.
    #[error("failed to change the route \"{route}\"")]
    Route {
        /// The route.
        route: Box<Route>,
        /// Why.
        #[source]
        source: Fault,
    },
    /// Somebody else's route has the place.
    #[error("the route \"{route}\" is not ours, and in the place of one that should be")]
    OccupiedRoute {
        /// The route that is there.
        route: Box<Route>,
    },
    /// An egress address.
    #[error("failed to change the address {} on {}", address.ip, address.link)]
    Address {
        /// The address.
        address: EgressAddress,
        /// Why.
        #[source]
        source: Fault,
    },
    /// Somebody else put the address on the link.
    #[error("the address {} on {} is there already, and not ours", address.ip, address.link)]
    OccupiedAddress {
        /// The address.
        address: EgressAddress,
    },
    /// A link that is not there.
    #[error("there is no link {link}")]
    NoLink {
        /// Its name.
        link: String,
    },
    /// Links cannot be listed.
    #[error("failed to list links")]
    Links(#[source] Fault),
    /// The thread that speaks to the kernel has ended.
    #[error("nobody speaks to the kernel any more")]
    Stopped,
}

impl StepError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Sysctl { source, .. } => Class::of_io(source),
            Self::Nft(error) => error.class(),
            Self::Rule { source, .. }
            | Self::Route { source, .. }
            | Self::Address { source, .. }
            | Self::Links(source) => Class::of_fault(*source),
            Self::OccupiedRoute { .. } | Self::OccupiedAddress { .. } | Self::NoLink { .. } => Class::Conflict,
            Self::Stopped => Class::Bug,
        }
    }
}

/// What steps are done with a look at.
#[derive(Debug, Default)]
struct View {
    /// Links by name, listed when one is first asked for.
    links: BTreeMap<String, FoundLink>,
    /// Our rules, listed when one is to be deleted, until one is added.
    rules: Option<RuleOrder>,
}

impl Worker {
    pub(crate) fn apply(&mut self, steps: &[Step]) -> Applied {
        let mut view = View::default();
        for (done, step) in steps.iter().enumerate() {
            if let Err(error) = self.step(step, &mut view) {
                return Applied { done, failed: Some(error) };
            }
        }
        Applied { done: steps.len(), failed: None }
    }

    fn step(&mut self, step: &Step, view: &mut View) -> Result<(), StepError> {
        match step {
            Step::SetSysctl { path, value } => {
                let sysctl = |source| StepError::Sysctl { path: path.clone(), source };
                self.sysctls.set(path, value).map_err(sysctl)
            }
            Step::RestoreSysctl { path } => {
                let sysctl = |source| StepError::Sysctl { path: path.clone(), source };
                self.sysctls.restore(path).map_err(sysctl)
            }
            Step::ReplaceTable { table } => Ok(nft::replace(self.nft.as_mut(), &self.memory, table)?),
            Step::DeleteTable => Ok(nft::remove(self.nft.as_mut(), &self.memory)?),
            Step::ChangeElements { remove, add } => Ok(nft::change(self.nft.as_mut(), remove, add)?),
            Step::AddRule { rule } => self.add_rule(rule, view),
            Step::DeleteRule { rule } => self.delete_rule(rule, view),
            Step::AddRoute { route } => self.add_route(route, view),
            Step::DeleteRoute { route } => self.delete_route(route),
            Step::TakeAddress { address } => self.take_address(address, view),
            Step::DropAddress { address } => self.drop_address(address, view),
            Step::Announce { .. } | Step::ForgetConnections { .. } => Ok(()),
        }
    }

    fn tell_rule(&mut self, message: Message, rule: &Rule, fine: &[Errno]) -> Result<(), StepError> {
        let source = |source| StepError::Rule { rule: Box::new(rule.clone()), source };
        unless(self.route.tell(message), fine.iter().copied().chain(without_v6(rule.v6))).map_err(source)
    }

    fn add_rule(&mut self, rule: &Rule, view: &mut View) -> Result<(), StepError> {
        view.rules = None;
        self.tell_rule(rule::add(rule, self.settings.protocol), rule, &[Errno::EEXIST])
    }

    /// The kernel deletes the first rule that has all that it is told; what a rule does not say it does not compare. So
    /// others that also have all of it, and come before, are taken out for a moment.
    fn delete_rule(&mut self, rule: &Rule, view: &mut View) -> Result<(), StepError> {
        let protocol = self.settings.protocol;
        let order = match &mut view.rules {
            Some(order) => order,
            none => {
                let source = |source| StepError::Rule { rule: Box::new(rule.clone()), source };
                none.insert(RuleOrder::new(rules(&mut self.route).map_err(source)?, protocol))
            }
        };
        let others = order.before(rule);
        order.remove(rule);
        if !others.is_empty() {
            // They come back behind those that they were before.
            view.rules = None;
        }
        for other in &others {
            self.tell_rule(rule::delete(other, protocol), other, &[Errno::ENOENT])?;
        }
        let deleted = self.tell_rule(rule::delete(rule, protocol), rule, &[Errno::ENOENT]);
        for other in &others {
            self.tell_rule(rule::add(other, protocol), other, &[Errno::EEXIST])?;
        }
        deleted
    }

    fn add_route(&mut self, route: &Route, view: &mut View) -> Result<(), StepError> {
        self.list_links(view)?;
        let links = &view.links;
        let index = |name: &str| links.get(name).map(|found| found.link.index);
        let no_link = || {
            let missing = route.hops.iter().find(|hop| index(&hop.link).is_none());
            StepError::NoLink { link: missing.map(|hop| hop.link.clone()).unwrap_or_default() }
        };
        let source = |source| StepError::Route { route: Box::new(route.clone()), source };
        let fresh = route::add(route, libc::NLM_F_EXCL, index).ok_or_else(no_link)?;
        match self.route.tell(fresh) {
            Err(Fault::Refused(Errno::EEXIST)) => {}
            other => return unless(other, without_v6(route.destination.addr().is_ipv6())).map_err(source),
        }
        // To replace is to take the place of whoever has it, so it must be known who does.
        let names = links.iter().map(|(name, found)| (found.link.index, name.clone())).collect();
        let key = |route: &Route| (route.table, route.destination.trunc(), route.metric);
        let there = route::routes(&mut self.route, &names).map_err(source)?;
        let mut there = there.into_iter().filter(|other| key(other) == key(route));
        if let Some(other) = there.find(|other| other.protocol != self.settings.protocol) {
            return Err(StepError::OccupiedRoute { route: Box::new(other) });
        }
        let replacing = route::add(route, libc::NLM_F_REPLACE, index).ok_or_else(no_link)?;
        self.route.tell(replacing).map_err(source)
    }

    fn delete_route(&mut self, route: &Route) -> Result<(), StepError> {
        let source = |source| StepError::Route { route: Box::new(route.clone()), source };
        let gone = [Errno::ESRCH, Errno::ENOENT].into_iter();
        let fine = gone.chain(without_v6(route.destination.addr().is_ipv6()));
        unless(self.route.tell(route::delete(route)), fine).map_err(source)
    }

    fn take_address(&mut self, address: &EgressAddress, view: &mut View) -> Result<(), StepError> {
        let protocol = self.settings.address_protocol;
        let source = |source| StepError::Address { address: address.clone(), source };
        let link = self.link(&address.link, view)?;
        let index = link.link.index;
        let present = link.link.addresses.iter().find(|found| is_same(found.net, address.ip));
        match present {
            Some(found) if is_egress(found, protocol) => return Ok(()),
            Some(_) => return Err(StepError::OccupiedAddress { address: address.clone() }),
            None => {}
        }
        self.route.tell(put_on(address.ip, index, protocol)).map_err(source)
    }

    fn drop_address(&mut self, address: &EgressAddress, view: &mut View) -> Result<(), StepError> {
        let protocol = self.settings.address_protocol;
        let source = |source| StepError::Address { address: address.clone(), source };
        // Its addresses went with the link.
        let Ok(link) = self.link(&address.link, view) else { return Ok(()) };
        let index = link.link.index;
        let ours = link.link.addresses.iter().any(|found| is_same(found.net, address.ip) && is_egress(found, protocol));
        if !ours {
            return Ok(());
        }
        let fine = [Errno::EADDRNOTAVAIL, Errno::ENODEV].into_iter();
        unless(self.route.tell(take_off(address.ip, index)), fine).map_err(source)
    }

    /// A link as it was when the first one was asked for.
    fn link<'a>(&mut self, name: &str, view: &'a mut View) -> Result<&'a FoundLink, StepError> {
        self.list_links(view)?;
        view.links.get(name).ok_or_else(|| StepError::NoLink { link: name.to_owned() })
    }

    fn list_links(&mut self, view: &mut View) -> Result<(), StepError> {
        if view.links.is_empty() {
            let found = links(&mut self.route).map_err(StepError::Links)?;
            view.links = found.into_values().map(|found| (found.link.name.clone(), found)).collect();
        }
        Ok(())
    }
}

/// Whether `net` is that single address.
fn is_same(net: IpNet, ip: IpAddr) -> bool {
    net == IpNet::from(ip)
}

/// What is refused so is as it should be.
fn unless(outcome: Result<(), Fault>, mut fine: impl Iterator<Item = Errno>) -> Result<(), Fault> {
    match outcome {
        Err(Fault::Refused(errno)) if fine.any(|fine| fine == errno) => Ok(()),
        other => other,
    }
}

/// What a kernel without IPv6 does not do, nobody can use.
fn without_v6(v6: bool) -> impl Iterator<Item = Errno> {
    v6.then_some([Errno::EAFNOSUPPORT, Errno::EOPNOTSUPP]).into_iter().flatten()
}
