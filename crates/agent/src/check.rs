//! A look at a node that changes nothing: what is there against what should be.

use std::collections::BTreeSet;

use egret_hostmodel::{Drift, DriftKind, Others, Rule, RuleAction, Settings, Step, Thing, Wanted, diff, drift, wanted};
use egret_hostnet::{Foreign, Kernel, ObserveError, Observed};
use kube::Client;

use crate::{Kind, Objects, Options, told};

/// What a look came to.
#[derive(Debug)]
pub struct Checked {
    /// What was found.
    pub observed: Observed,
    /// What should be there, and what there is to know of the objects.
    pub wanted: Wanted,
    /// What differs; of ovnkube-node's where the job is its own.
    pub drifts: Vec<Drift>,
    /// What would make it as it should be. What is ovnkube-node's is left to it.
    pub steps: Vec<Step>,
}

/// Looks at a node's kernel.
///
/// # Errors
/// The kernel does not tell.
pub async fn check(kernel: &Kernel, objects: &Objects, options: &Options) -> Result<Checked, ObserveError> {
    let observed = kernel.observe().await?;
    let at = |others| told::policy(objects, options, others);
    let aim = wanted(&at(observed.others), &observed.surroundings, &observed.found);
    let mut drifts = drift(&observed.found, &aim.state);
    if observed.others != Others::default() {
        let all = wanted(&at(Others::default()), &observed.surroundings, &observed.found);
        drifts.extend(of_ovn(&all.state.rules, &observed, &options.settings));
    }
    let steps = diff(&observed.found, &aim.state);
    Ok(Checked { observed, wanted: aim, drifts, steps })
}

/// The lookups that ovnkube-node should have, in the places that it shares with us, against those that it has.
fn of_ovn(all: &BTreeSet<Rule>, observed: &Observed, settings: &Settings) -> Vec<Drift> {
    let Others { services, addresses } = observed.others;
    let its = |rule: &Rule| {
        let place = services && rule.priority == settings.service_priority
            || addresses && rule.priority == settings.address_priority;
        place && matches!(rule.action, RuleAction::Lookup(_)) && rule.from.is_some()
    };
    let should: BTreeSet<&Rule> = all.iter().filter(|rule| its(rule)).collect();
    let there = observed.foreign.iter().filter_map(|foreign| match foreign {
        Foreign::Rule { rule: Some(rule), .. } if its(rule) => Some(rule),
        _ => None,
    });
    let there: BTreeSet<&Rule> = there.collect();
    let told = |kind, rule: &&Rule| Drift { kind, thing: Thing::Rule, text: format!("of ovnkube-node: {rule}") };
    let missing = should.difference(&there).map(|rule| told(DriftKind::Missing, rule));
    missing.chain(there.difference(&should).map(|rule| told(DriftKind::Extra, rule))).collect()
}

/// All objects that matter to a node, as they are now.
///
/// # Errors
/// Why they cannot be read; half of them would be taken for all.
pub async fn list(client: &Client) -> kube::Result<Objects> {
    let mut objects = Objects::default();
    for kind in Kind::ALL {
        let pods = matches!(kind, Kind::Pod | Kind::Namespace);
        if pods && !told::needs_pods(&objects) {
            continue;
        }
        let listed = egret_daemon::list(client, kind.resource()).await?;
        objects.listed(kind, &listed.unwrap_or_default());
    }
    Ok(objects)
}
