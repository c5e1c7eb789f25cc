//! The watches that a node needs now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use egret_core::NodeName;
use egret_daemon::watch::{Change, Target, WAITING, Watch};
use egret_hostmodel::Datapath;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::{Kind, Metrics, Objects, told};

/// What an agent reads of the kinds that a definition defines every definition of theirs knows, and there are many agents.
const RELIST: Duration = Duration::from_mins(10);
/// Above so many Services a selector of their EndpointSlices would make too long a request; then all are watched.
const NAMED_SERVICES: usize = 100;

/// A change of a kind.
pub type Told = (Kind, Change);

/// Where objects come from.
pub enum Source {
    /// An API server.
    Cluster(Client),
    /// Whoever tells: every kind must be listed once before anything is done.
    Told(mpsc::Receiver<Told>),
}

/// The watches that run.
pub(crate) struct Watches {
    /// `None`: somebody else tells.
    client: Option<Client>,
    metrics: Arc<Metrics>,
    told: mpsc::Sender<Told>,
    running: BTreeMap<Kind, (Target, JoinSet<()>)>,
}

impl Watches {
    /// None yet.
    pub(crate) fn new(source: Source, metrics: Arc<Metrics>) -> (Self, mpsc::Receiver<Told>) {
        let (told, changes) = mpsc::channel(WAITING);
        let (client, changes) = match source {
            Source::Cluster(client) => (Some(client), changes),
            Source::Told(changes) => (None, changes),
        };
        (Self { client, metrics, told, running: BTreeMap::new() }, changes)
    }

    /// The API server's client, where there is one.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// Watches what `objects` say must be watched, and nothing else. Returns whether all of it has been listed once.
    pub(crate) fn follow(&mut self, objects: &mut Objects, node: &NodeName, datapath: Option<Datapath>) -> bool {
        let Some(client) = self.client.clone() else {
            return Kind::ALL.into_iter().all(|kind| objects.is_listed(kind));
        };
        for kind in Kind::ALL {
            match target(kind, objects, node, datapath) {
                Some(target) => self.run(&client, kind, target),
                None => {
                    if self.running.remove(&kind).is_some() {
                        objects.forget(kind);
                    }
                }
            }
        }
        self.running.keys().all(|kind| objects.is_listed(*kind))
    }

    fn run(&mut self, client: &Client, kind: Kind, target: Target) {
        if self.running.get(&kind).is_some_and(|(running, _)| *running == target) {
            return;
        }
        // What the old one told stays until the new one has listed.
        let metrics = Arc::clone(&self.metrics);
        let watch = Watch::new(
            client.clone(),
            (kind, target.clone()),
            (self.told.clone(), |kind, change| (kind, change)),
            Arc::new(move |kind| metrics.watch_failed(kind)),
        );
        let mut task = JoinSet::new();
        task.spawn(watch.run());
        self.running.insert(kind, (target, task));
    }
}

/// What is watched of a kind now.
fn target(kind: Kind, objects: &Objects, node: &NodeName, datapath: Option<Datapath>) -> Option<Target> {
    let defined = matches!(kind, Kind::EgressIp | Kind::EgressService | Kind::ServiceCidr);
    let mut target =
        Target { resource: kind.resource(), defined: defined.then_some(RELIST), labels: None, fields: None };
    match kind {
        Kind::Node | Kind::EgressIp | Kind::EgressService | Kind::ServiceCidr => {}
        Kind::Service => {
            (!objects.egress_services.is_empty()).then_some(())?;
        }
        Kind::EndpointSlice => target.labels = Some(slices_of(objects)?),
        Kind::Namespace | Kind::Pod => {
            told::needs_pods(objects).then_some(())?;
            let all = told::datapath(objects, node, datapath) == Datapath::Ovn && told::needs_all_pods(objects, node);
            if kind == Kind::Pod && !all {
                target.fields = Some(format!("spec.nodeName={node}"));
            }
        }
    }
    Some(target)
}

/// The selector of the EndpointSlices that matter.
fn slices_of(objects: &Objects) -> Option<String> {
    const SERVICE: &str = "kubernetes.io/service-name";
    let names = objects.selected_services();
    (!names.is_empty()).then_some(())?;
    if names.len() > NAMED_SERVICES {
        return Some(SERVICE.to_owned());
    }
    let names: Vec<String> = names.into_iter().collect();
    Some(format!("{SERVICE} in ({})", names.join(",")))
}
