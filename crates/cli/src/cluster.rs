//! The cluster as the sources have it, and what had to be assumed of it.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::{Fault, Manifests, ObjectKey};
use egret_core::{NodeName, Options, Platform, Reachability, Snapshot};

use crate::args::{InputArgs, PlatformArg};
use crate::input::{Diagnostic, Loaded, Origin, Progress, Severity, Source, load};
use crate::nearest::did_you_mean;

/// Why a command cannot answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// An object that the command line names is not in the input.
    #[error("there is no {kind}/{name} in the input{hint}")]
    NotFound {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// The nearest names.
        hint: String,
    },
    /// An address that the command line names is not one of the object's.
    #[error("{object} does not ask for {address}; it asks for {asked}")]
    NotAsked {
        /// The object.
        object: String,
        /// The address.
        address: String,
        /// What it asks for.
        asked: String,
    },
    /// Nothing that was read is an object of ours.
    #[error("{what} no object that Egret reads; nothing is answered, for nothing is known")]
    Nothing {
        /// What was read, and the verb.
        what: &'static str,
    },
    /// A text on the command line does not say what it should.
    #[error("{text:?}: {why}")]
    BadText {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A cluster that was read.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The objects as they were read.
    pub manifests: Manifests,
    /// Where each object came from.
    pub origins: BTreeMap<ObjectKey, Origin>,
    /// What they say, with what is assumed put in.
    pub snapshot: Snapshot,
    /// What is wrong with the input.
    pub diagnostics: Vec<Diagnostic>,
    /// What a dump cannot tell, and what was taken instead; one sentence each.
    pub assumed: Vec<String>,
    /// How many objects of other kinds were left out.
    pub ignored: BTreeMap<String, usize>,
    /// Faults that are not among the diagnostics, because there are so many already.
    pub untold: usize,
    told: BTreeSet<(ObjectKey, Fault)>,
    unreachable: Vec<NodeName>,
}

/// So many faults are shown; one that thousands of objects share fills screens and says nothing new.
const FAULTS_TOLD: usize = 50;

impl Cluster {
    /// Reads the sources.
    ///
    /// # Errors
    /// If an option names a node that is not there. What is wrong with the input itself is a diagnostic.
    pub(crate) fn read(args: &InputArgs, progress: &dyn Progress) -> Result<Self, Refusal> {
        let sources: Vec<Source> = args.sources.iter().cloned().map(Source::from).collect();
        let Loaded { manifests, origins, ignored, diagnostics, .. } = load(&sources, progress);
        let platform = match args.platform {
            PlatformArg::Auto => manifests.platform_hint(),
            PlatformArg::None => Platform::BareMetal,
            PlatformArg::Aws | PlatformArg::Gcp | PlatformArg::Azure | PlatformArg::Openstack => Platform::Cloud,
        };
        let options = Options {
            platform,
            no_host_subnet: args.no_hostsubnet_nodes.clone(),
            cordon_excludes: args.cordon_excludes,
            cluster_subnets: args.cluster_subnets.clone(),
        };
        let snapshot = Snapshot { options, ..Snapshot::default() };
        let unreachable = args.assume_unreachable.iter().map(|name| name.as_str().into()).collect();
        let assumed = assumed(args, platform);
        let (untold, told) = (0, BTreeSet::new());
        let mut cluster =
            Self { manifests, origins, snapshot, diagnostics, assumed, ignored, untold, told, unreachable };
        cluster.snapshot = cluster.observe(&cluster.manifests.clone(), &BTreeMap::new());
        for name in &cluster.unreachable {
            find_node(&cluster.snapshot, name.as_str())?;
        }
        Ok(cluster)
    }

    /// What `manifests` say. Faults become diagnostics, those already known but once.
    pub(crate) fn observe(&mut self, manifests: &Manifests, origins: &BTreeMap<ObjectKey, Origin>) -> Snapshot {
        let observation = manifests.observe(&self.snapshot.options);
        for (key, fault) in observation.faults {
            let Some(origin) = origins.get(&key).or_else(|| self.origins.get(&key)) else { continue };
            if self.told.len() >= FAULTS_TOLD && !self.told.contains(&(key.clone(), fault.clone())) {
                self.untold += 1;
            } else if self.told.insert((key.clone(), fault.clone())) {
                self.diagnostics.push(Diagnostic::of_fault(origin, &fault).with_object(key.to_string()));
            }
        }
        let mut snapshot = observation.snapshot;
        for name in &self.unreachable {
            if let Some(node) = snapshot.nodes.get_mut(name) {
                node.reachability = Reachability::Unreachable;
            }
        }
        snapshot
    }

    /// Whether some of the input could not be used.
    #[must_use]
    pub(crate) fn has_errors(&self) -> bool {
        self.untold > 0 || self.diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }
}

/// The node of that name.
///
/// # Errors
/// The nearest names, if there is none.
pub(crate) fn find_node(snapshot: &Snapshot, name: &str) -> Result<NodeName, Refusal> {
    let name = name.strip_prefix("node/").unwrap_or(name);
    let wanted = NodeName::from(name);
    if snapshot.nodes.contains_key(&wanted) {
        return Ok(wanted);
    }
    let hint = did_you_mean(name, snapshot.nodes.keys().map(NodeName::as_str));
    Err(Refusal::NotFound { kind: "node".to_owned(), name: name.to_owned(), hint })
}

fn assumed(args: &InputArgs, platform: Platform) -> Vec<String> {
    let but = match args.assume_unreachable.as_slice() {
        [] => String::new(),
        names => format!(" but {}", names.join(", ")),
    };
    let place = match (args.platform, platform) {
        (PlatformArg::Auto, Platform::BareMetal) => "bare metal (nothing of a cloud in the input)",
        (PlatformArg::Auto, Platform::Cloud) => "on a cloud (a node's annotation or a CloudPrivateIPConfig says so)",
        (_, Platform::BareMetal) => "bare metal (as given)",
        (_, Platform::Cloud) => "on a cloud (as given)",
    };
    let ignored = match &args.no_hostsubnet_nodes {
        None => "every node has an OVN host subnet".to_owned(),
        Some(selector) => format!("nodes that match {selector} have no OVN host subnet"),
    };
    let cordon = if args.cordon_excludes { "a cordoned node hosts nothing" } else { "a cordon moves nothing" };
    vec![format!("every Ready node{but} answers probes"), place.to_owned(), ignored, cordon.to_owned()]
}
