//! Steps, done.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_hostmodel::{EgressAddress, Route, Rule, Step};
use nix::errno::Errno;
use nix::libc;

use crate::link::{FoundLink, links, put_on, take_off};
use crate::netlink::{Fault, Message};
use crate::nft;
use crate::rule::rules;
use crate::rule_order::RuleOrder;
use crate::wire::{self, Mac, Question};
use crate::worker::Worker;
use crate::{StepError, conntrack, route, rule};

/// What came of steps.
#[derive(Debug)]
#[must_use]
pub struct Applied {
    /// How many are done; those before the one that failed.
    pub done: usize,
    /// Why the next one is not; nothing of it and of what comes after it is done.
    pub failed: Option<StepError>,
}

/// What steps are done with a look at.
#[derive(Debug, Default)]
struct View {
    /// Links by name, listed when one is first asked for.
    links: BTreeMap<String, FoundLink>,
    /// Our rules, listed when it must be known which are there, until one is added.
    rules: Option<RuleOrder>,
    /// Addresses taken since the links were listed.
    taken: BTreeSet<EgressAddress>,
    /// The wire was asked for these, and somebody answered for some of them.
    asked: BTreeMap<EgressAddress, Option<Mac>>,
    /// The connections of these are forgotten.
    forgotten: BTreeSet<IpAddr>,
}

impl Worker {
    pub(crate) fn apply(&mut self, steps: &[Step]) -> Applied {
        let mut view = View::default();
        for done in 0..steps.len() {
            if let Err(error) = self.step(&steps[done..], &mut view) {
                return Applied { done, failed: Some(error) };
            }
        }
        Applied { done: steps.len(), failed: None }
    }

    /// Does the first of these. What takes as long for one as for many is done for those of its kind that come next, too.
    fn step(&mut self, steps: &[Step], view: &mut View) -> Result<(), StepError> {
        match &steps[0] {
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
            Step::ChangeElements { remove, add } => {
                Ok(nft::change(self.nft.as_mut(), &mut self.netfilter, &mut self.listed, (remove, add))?)
            }
            Step::AddRule { rule } => self.add_rule(rule, view),
            Step::DeleteRule { rule } => self.delete_rule(rule, view),
            Step::AddRoute { route } => self.add_route(route, view),
            Step::DeleteRoute { route } => self.delete_route(route),
            Step::TakeAddress { address } => self.take_address(address, steps, view),
            Step::DropAddress { address } => self.drop_address(address, view),
            Step::Announce { address } => self.announce(address, view),
            Step::ForgetConnections { source } => self.forget_connections(*source, steps, view),
        }
    }

    fn tell_rule(&mut self, message: Message, rule: &Rule) -> Result<(), StepError> {
        let source = |source| StepError::Rule { rule: Box::new(rule.clone()), source };
        let gone = [Errno::ENOENT].into_iter();
        unless(self.route.tell(message), gone.chain(without_v6(rule.v6))).map_err(source)
    }

    fn add_rule(&mut self, rule: &Rule, view: &mut View) -> Result<(), StepError> {
        let protocol = self.settings.protocol;
        let added = self.tell_rule(rule::add_new(rule, protocol), rule);
        if let Err(StepError::Rule { source: Fault::Refused(Errno::EEXIST), .. }) = added {
            // It, or only one that says more.
            if self.rule_order(rule, view)?.contains(rule) {
                return Ok(());
            }
            view.rules = None;
            return self.tell_rule(rule::add(rule, protocol), rule);
        }
        view.rules = None;
        added
    }

    /// The kernel deletes the first rule that has all that it is told; what a rule does not say it does not compare. So
    /// others that also have all of it, and come before, are taken out for a moment.
    fn delete_rule(&mut self, rule: &Rule, view: &mut View) -> Result<(), StepError> {
        let protocol = self.settings.protocol;
        let order = self.rule_order(rule, view)?;
        let others = order.before(rule);
        order.remove(rule);
        if !others.is_empty() {
            // They come back behind those that they were before.
            view.rules = None;
        }
        for other in &others {
            self.tell_rule(rule::delete(other, protocol), other)?;
        }
        let deleted = self.tell_rule(rule::delete(rule, protocol), rule);
        for other in &others {
            self.tell_rule(rule::add(other, protocol), other)?;
        }
        deleted
    }

    fn rule_order<'a>(&mut self, rule: &Rule, view: &'a mut View) -> Result<&'a mut RuleOrder, StepError> {
        match &mut view.rules {
            Some(order) => Ok(order),
            none => {
                let source = |source| StepError::Rule { rule: Box::new(rule.clone()), source };
                let listed = rules(&mut self.route).map_err(source)?;
                Ok(none.insert(RuleOrder::new(listed, self.settings.protocol)))
            }
        }
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

    fn take_address(&mut self, address: &EgressAddress, steps: &[Step], view: &mut View) -> Result<(), StepError> {
        match self.link(&address.link, view)?.holds(address.ip, self.settings.address_protocol) {
            Some(true) => return Ok(()),
            Some(false) => return Err(StepError::OccupiedAddress { address: address.clone() }),
            None => {}
        }
        if !view.asked.contains_key(address) {
            ask(steps, view)?;
        }
        if let Some(by) = view.asked.get(address).copied().flatten() {
            return Err(StepError::Contested { address: address.clone(), by });
        }
        let source = |source| StepError::Address { address: address.clone(), source };
        let index = self.link(&address.link, view)?.link.index;
        self.route.tell(put_on(address.ip, index, self.settings.address_protocol)).map_err(source)?;
        view.taken.insert(address.clone());
        // Should a step before the one that announces it fail, none will be wanted once it is found here.
        self.announcements.repeat(address.clone());
        Ok(())
    }

    fn drop_address(&mut self, address: &EgressAddress, view: &mut View) -> Result<(), StepError> {
        self.announcements.retract(address);
        let source = |source| StepError::Address { address: address.clone(), source };
        let link = match self.link(&address.link, view) {
            // Its addresses went with the link.
            Err(StepError::NoLink { .. }) => return Ok(()),
            other => other?,
        };
        let index = link.link.index;
        let ours = link.holds(address.ip, self.settings.address_protocol) == Some(true);
        if !ours && !view.taken.remove(address) {
            return Ok(());
        }
        let fine = [Errno::EADDRNOTAVAIL, Errno::ENODEV].into_iter();
        unless(self.route.tell(take_off(address.ip, index)), fine).map_err(source)
    }

    fn announce(&mut self, address: &EgressAddress, view: &mut View) -> Result<(), StepError> {
        let protocol = self.settings.address_protocol;
        let taken = view.taken.contains(address);
        let link = self.link(&address.link, view)?;
        if !taken && link.holds(address.ip, protocol) != Some(true) {
            return Err(StepError::NotOurs { address: address.clone() });
        }
        let wire = |source| StepError::Wire { link: address.link.clone(), source };
        wire::announce(address.ip, link).map_err(wire)?;
        self.announcements.repeat(address.clone());
        Ok(())
    }

    fn forget_connections(&mut self, source: IpAddr, steps: &[Step], view: &mut View) -> Result<(), StepError> {
        if view.forgotten.remove(&source) {
            return Ok(());
        }
        let next = steps
            .iter()
            .map_while(|step| if let Step::ForgetConnections { source } = step { Some(*source) } else { None });
        let sources = next.collect();
        conntrack::forget(&mut self.netfilter, &sources).map_err(StepError::Connections)?;
        view.forgotten = sources;
        view.forgotten.remove(&source);
        Ok(())
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

/// Asks the wire for all addresses that are taken next.
fn ask(steps: &[Step], view: &mut View) -> Result<(), StepError> {
    let next =
        steps.iter().map_while(|step| if let Step::TakeAddress { address } = step { Some(address) } else { None });
    let mut questions = BTreeMap::new();
    for address in next {
        // A link that is not there fails its own step; one without neighbours has nobody to ask.
        let mac = view.links.get(&address.link).and_then(|found| found.ethernet.filter(|_| found.link.up));
        view.asked.insert(address.clone(), None);
        if let Some(mac) = mac {
            questions.insert(Question { ip: address.ip, link: address.link.clone(), mac }, address);
        }
    }
    let asked: Vec<Question> = questions.keys().cloned().collect();
    let links = || asked.iter().map(|question| question.link.as_str()).collect::<BTreeSet<_>>();
    let wire = |source| StepError::Wire { link: links().into_iter().collect::<Vec<_>>().join(", "), source };
    for (question, by) in wire::probe(&asked).map_err(wire)? {
        view.asked.insert(questions[&question].clone(), Some(by));
    }
    Ok(())
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
