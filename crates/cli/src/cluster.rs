//! The cluster as the sources have it, and what had to be assumed of it.

mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use egret_api::{Fault, Manifests, ObjectKey};
use egret_brain::View;
use egret_core::{NodeName, Options, Platform, Reachability, Snapshot};

use crate::args::{InputArgs, LiveArgs, PlatformArg};
use crate::input::{Diagnostic, Loaded, Origin, Progress, Severity, Source, load, printable};
use crate::live::{self, Known, Live, Unknown};
use crate::nearest::did_you_mean;

/// Why a command cannot answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// An object that the command line names is not in the input.
    #[error("there is no {kind}/{name} there{hint}")]
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
    /// Something may be in the pipe, and nobody said that it should be read.
    #[error(
        "standard input is a pipe, and it is not clear whether to read it: write - for what comes through it, or \
         --context NAME (or < /dev/null) for the live cluster"
    )]
    UnreadPipe,
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
    /// What else is good to know.
    pub notes: Vec<String>,
    /// Faults that are not among the diagnostics, because there are so many already.
    pub untold: usize,
    /// The live cluster, if it is one.
    stored_in: Option<String>,
    told: BTreeSet<(ObjectKey, Fault)>,
    /// What the controller knows.
    known: Option<View>,
    unreachable: Vec<NodeName>,
}

/// So many faults are shown; one that thousands of objects share fills screens and says nothing new.
const FAULTS_TOLD: usize = 50;

impl Cluster {
    /// Reads the sources, or the live cluster if there are none.
    ///
    /// # Errors
    /// If an option names a node that is not there, or the live cluster cannot be read. What is wrong with the input
    /// itself is a diagnostic.
    pub(crate) fn read(args: &InputArgs, progress: &dyn Progress) -> anyhow::Result<Self> {
        if args.sources.is_empty() {
            refuse_unread_pipe(&args.live)?;
            return Ok(Self::from_live(args, live::read(&args.live, progress)?)?);
        }
        let sources: Vec<Source> = args.sources.iter().cloned().map(Source::from).collect();
        let Loaded { manifests, origins, ignored, diagnostics, .. } = load(&sources, progress);
        let platform = platform(args, &manifests, None);
        let mut cluster = Self::new(args, manifests, platform, None);
        (cluster.origins, cluster.ignored, cluster.diagnostics) = (origins, ignored, diagnostics);
        cluster.assumed = assumed(args, platform, &Err(Unknown::Files));
        Ok(cluster.observed()?)
    }

    /// What was read of a live cluster.
    ///
    /// # Errors
    /// If an option names a node that is not there.
    pub(crate) fn from_live(args: &InputArgs, live: Live) -> Result<Self, Refusal> {
        let notes = live.notes();
        let Live { name, manifests, known, .. } = live;
        let view = known.as_ref().ok().map(|known| &known.view);
        let platform = platform(args, &manifests, view);
        let mut cluster = Self::new(args, manifests, platform, view);
        cluster.assumed = assumed(args, platform, &known);
        (cluster.notes, cluster.stored_in) = (notes, Some(name));
        cluster.observed()
    }

    fn new(args: &InputArgs, manifests: Manifests, platform: Platform, view: Option<&View>) -> Self {
        let options = Options {
            platform,
            no_host_subnet: args.no_hostsubnet_nodes.clone().or_else(|| known::ignored(view)),
            cordon_excludes: args.cordon_excludes || view.is_some_and(|view| view.cordon_excludes),
            cluster_subnets: args.cluster_subnets.iter().copied().chain(known::subnets(view)).collect(),
        };
        Self {
            manifests,
            origins: BTreeMap::new(),
            snapshot: Snapshot { options, ..Snapshot::default() },
            diagnostics: Vec::new(),
            assumed: Vec::new(),
            ignored: BTreeMap::new(),
            notes: Vec::new(),
            untold: 0,
            stored_in: None,
            told: BTreeSet::new(),
            known: view.cloned(),
            unreachable: args.assume_unreachable.iter().map(|name| name.as_str().into()).collect(),
        }
    }

    fn observed(mut self) -> Result<Self, Refusal> {
        self.snapshot = self.observe(&self.manifests.clone(), &BTreeMap::new());
        for name in &self.unreachable {
            find_node(&self.snapshot, name.as_str())?;
        }
        Ok(self)
    }

    /// What `manifests` say. Faults become diagnostics, those already known but once.
    pub(crate) fn observe(&mut self, manifests: &Manifests, origins: &BTreeMap<ObjectKey, Origin>) -> Snapshot {
        let observation = manifests.observe(&self.snapshot.options);
        for (key, fault) in observation.faults {
            let origin = origins.get(&key).or_else(|| self.origins.get(&key)).cloned();
            let Some(origin) = origin.or_else(|| self.stored(manifests, &key)) else { continue };
            if self.told.len() >= FAULTS_TOLD && !self.told.contains(&(key.clone(), fault.clone())) {
                self.untold += 1;
            } else if self.told.insert((key.clone(), fault.clone())) {
                self.diagnostics.push(Diagnostic::of_fault(&origin, &fault).with_object(key.to_string()));
            }
        }
        let mut snapshot = observation.snapshot;
        if let Some(view) = &self.known {
            known::put_in(view, &mut snapshot);
        }
        for name in &self.unreachable {
            if let Some(node) = snapshot.nodes.get_mut(name) {
                node.reachability = Reachability::Unreachable;
            }
        }
        snapshot
    }

    /// Everything beside the answer, where there is room for a few lines only.
    pub(crate) fn told_briefly(&self) -> Vec<String> {
        let faults = self.untold + self.diagnostics.len();
        let of_objects = (faults > 0).then(|| format!("{faults} faults in objects; without --watch they are told"));
        self.notes.iter().cloned().chain(of_objects).map(|note| printable(&note)).collect()
    }

    /// Where an object of the live cluster comes from.
    fn stored(&self, manifests: &Manifests, key: &ObjectKey) -> Option<Origin> {
        let name = format!("{key} in {}", self.stored_in.as_ref()?);
        manifests.get(key).map(|object| Origin::of_stored(&name, object))
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

fn platform(args: &InputArgs, manifests: &Manifests, view: Option<&View>) -> Platform {
    match (args.platform, view) {
        (PlatformArg::Auto, None) => manifests.platform_hint(),
        (PlatformArg::Auto, Some(view)) if view.cloud => Platform::Cloud,
        (PlatformArg::Auto, Some(_)) | (PlatformArg::None, _) => Platform::BareMetal,
        _ => Platform::Cloud,
    }
}

/// Whoever pipes something in wants it to be read; what is in a pipe cannot be looked at without taking it away from
/// whom it may be meant for, such as the loop in a script that runs this command.
fn refuse_unread_pipe(live: &LiveArgs) -> Result<(), Refusal> {
    let told = live.kubeconfig.is_some() || live.context.is_some();
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
    let piped = stdin.and_then(|file| file.metadata()).is_ok_and(|metadata| metadata.file_type().is_fifo());
    if piped && !told { Err(Refusal::UnreadPipe) } else { Ok(()) }
}

fn assumed(args: &InputArgs, platform: Platform, known: &Result<Known, Unknown>) -> Vec<String> {
    let but = match args.assume_unreachable.as_slice() {
        [] => String::new(),
        names => format!(" but {}", names.join(", ")),
    };
    let view = known.as_ref().ok().map(|known| &known.view);
    let place = match (args.platform, platform, view) {
        (PlatformArg::Auto, Platform::BareMetal, None) => "bare metal (nothing of a cloud in the input)",
        (PlatformArg::Auto, Platform::Cloud, None) => {
            "on a cloud (a node's annotation or a CloudPrivateIPConfig says so)"
        }
        (PlatformArg::Auto, Platform::BareMetal, Some(_)) => "bare metal (as the controller is told)",
        (PlatformArg::Auto, Platform::Cloud, Some(_)) => "on a cloud (as the controller is told)",
        (_, Platform::BareMetal, _) => "bare metal (as given)",
        (_, Platform::Cloud, _) => "on a cloud (as given)",
    };
    let selector = args.no_hostsubnet_nodes.clone().or_else(|| known::ignored(view));
    let ignored = match selector {
        None => "every node has an OVN host subnet".to_owned(),
        Some(selector) => format!("nodes that match {selector} have no OVN host subnet"),
    };
    let cordon = args.cordon_excludes || view.is_some_and(|view| view.cordon_excludes);
    let cordon = if cordon { "a cordoned node hosts nothing" } else { "a cordon moves nothing" };
    let reach = match known {
        Ok(known) => known::in_words(known, &but),
        Err(Unknown::Files) => format!("every Ready node{but} answers probes"),
        Err(unknown) => format!("every Ready node{but} answers probes (reachability assumed: {unknown})"),
    };
    vec![reach, place.to_owned(), ignored, cordon.to_owned()]
}
