//! A cluster with a controller, and everything around it that scenarios need.
//!
//! ```text
//!   World: user, nodes, cloud ──> Stage ──> memory: Store <──> the real brain, made-up time
//!     ^                             │  └──> api: a real API server <──> the whole controller
//!     └── state, history <──────────┘
//! ```
//!
//! The same world on both stages: what users and nodes do, what the cloud answers and what probes find comes from here.
//! Only the wire of the prober and the cloud behind its API are played.

mod api;
mod change;
mod cloud;
mod disorder;
mod history;
mod memory;
mod object;
mod settle;
mod stage;
mod state;
mod store;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use egret_api::annotation::node_subnets;
use egret_core::{NodeName, Options, Platform, Selector};
use ipnet::IpNet;

pub use api::Api;
pub use change::ChangeError;
pub use history::{History, Raised, Version, Writer};
pub use memory::Memory;
pub use object::items;
pub use stage::{Definition, Setup, Stage, StageError};
pub use state::{CloudConfig, Items, State, cloud_config, controllers_part};

use crate::scenario::{CloudAck, GatewayModeName, NodeSpec, PlatformName, Settings};

/// A cluster on a stage.
pub struct World<'a> {
    stage: &'a mut dyn Stage,
    gateway_mode: GatewayModeName,
    /// Whether the cloud confirms every request at once.
    confirms: bool,
    /// What a probe of each node finds.
    truth: BTreeMap<NodeName, bool>,
    /// Who was a target in the last reachability round, or is one now if there was none since the last change.
    probed: BTreeSet<NodeName>,
    /// As far as `history` was read.
    state: State,
    /// Since it was last taken.
    history: History,
}

impl<'a> World<'a> {
    /// An empty cluster. Its pod networks are those of `nodes`, which are all that will ever be in it.
    ///
    /// # Errors
    /// If the no-host-subnet selector does not compile, or the stage cannot be emptied.
    pub fn open<'b>(
        stage: &'a mut dyn Stage,
        settings: &Settings,
        nodes: impl Iterator<Item = &'b NodeSpec>,
    ) -> Result<Self, ChangeError> {
        stage.open(&setup(settings, nodes)?)?;
        Ok(Self {
            stage,
            gateway_mode: settings.gateway_mode,
            confirms: settings.cloud_ack == CloudAck::Auto,
            truth: BTreeMap::new(),
            probed: BTreeSet::new(),
            state: State::default(),
            history: History::default(),
        })
    }

    /// What is stored, as of the last rest.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Who was a target in the last reachability round; who is one now, if the last settling had none.
    #[must_use]
    pub fn probed(&self) -> &BTreeSet<NodeName> {
        &self.probed
    }

    /// What happened since this was last taken.
    pub fn take_history(&mut self) -> History {
        std::mem::take(&mut self.history)
    }

    /// Reads what happened on the stage, and returns where in `history` it begins.
    fn read(&mut self) -> Result<usize, StageError> {
        let news = self.stage.history()?;
        for version in &news.versions {
            self.state.apply(version);
        }
        let begin = self.history.versions.len();
        self.history.extend(news);
        Ok(begin)
    }
}

fn setup<'b>(settings: &Settings, nodes: impl Iterator<Item = &'b NodeSpec>) -> Result<Setup, ChangeError> {
    let no_host_subnet = settings.no_host_subnet_selector.as_ref().map(|labels| {
        Selector::compile(labels.iter().map(|(k, v)| (k.as_str(), v.as_str())), [])
            .map_err(|faults| ChangeError::Selector(faults[0].clone()))
    });
    let platform = match settings.platform {
        PlatformName::BareMetal => Platform::BareMetal,
        _ => Platform::Cloud,
    };
    let cluster_subnets = nodes.flat_map(pod_networks).collect();
    Ok(Setup {
        options: Options {
            platform,
            no_host_subnet: no_host_subnet.transpose()?,
            cluster_subnets,
            ..Options::default()
        },
        probing: settings.reachability_total_timeout_seconds != Some(0),
        definition: if settings.apply_crd_default == Some(false) { Definition::Old } else { Definition::Current },
        age_matters: settings.age_matters,
    })
}

fn pod_networks(node: &NodeSpec) -> Vec<IpNet> {
    let subnets = node.annotations.get(node_subnets::KEY).and_then(|text| node_subnets::decode(text).ok());
    subnets.and_then(|mut subnets| subnets.remove(node_subnets::DEFAULT_NETWORK)).unwrap_or_default()
}
