//! The commands on a live cluster: what the API server stores now, and what the controller knows besides.
//!
//! ```text
//!   kubeconfig ──> connection ──> client ──┬─> listing: every kind, all of it or an error ──> Manifests ─┐
//!                                          └─> leader: Lease ──> its pod ──> /snapshot ──> View ─────────┴─> Cluster
//! ```
//!
//! Nothing is ever written. Half a cluster is no cluster: if one kind cannot be read nothing is answered. What the
//! controller knows is another matter: without it reachability is assumed, and the answer says so and why.

pub(crate) mod connection;
mod leader;
mod listing;
mod screen;
pub(crate) mod watch;

use std::collections::BTreeSet;
use std::time::Duration;

use egret_api::{Kind, Manifests};
use egret_brain::View;
use kube::{Client, Config};

use self::connection::{Connection, ConnectionError};
pub(crate) use self::leader::Unknown;
use self::listing::{Listed, ListingError};
use crate::args::LiveArgs;
use crate::input::Progress;

/// To make a connection; the API server of a cluster that one can work with answers sooner.
const CONNECT: Duration = Duration::from_secs(5);
/// From a request to its answer: a page of 500 objects on a slow line.
const ANSWER: Duration = Duration::from_secs(30);

/// A live cluster at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    /// In the words of whoever asked: `context "prod"`.
    pub(crate) name: String,
    /// All objects.
    pub(crate) manifests: Manifests,
    /// The kinds that are not installed.
    pub(crate) absent: BTreeSet<Kind>,
    /// What the controller knows.
    pub(crate) known: Result<Known, Unknown>,
}

impl Live {
    /// What is good to know of the reading. Off the clouds nobody has CloudPrivateIPConfigs.
    pub(crate) fn notes(&self) -> Vec<String> {
        let missing = self.absent.iter().filter(|kind| **kind != Kind::CloudPrivateIpConfig);
        let missing: Vec<&str> = missing.map(|kind| kind.name()).collect();
        if missing.is_empty() {
            return Vec::new();
        }
        vec![format!("not installed in this cluster: {} (`egret crds` prints the definitions)", missing.join(", "))]
    }
}

/// What the controller knows.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// In words: `pod egret-system/egret-controller-0`.
    pub(crate) from: String,
    /// What it says.
    pub(crate) view: View,
}

/// A live cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    /// None is found.
    #[error("no cluster to look at; name files or folders to read instead, or - for standard input")]
    Connection(#[from] ConnectionError),
    /// Its configuration cannot be used.
    #[error("failed to set up a client for {name}")]
    Client {
        /// The cluster.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// Not everything can be read.
    #[error("{name} cannot be read, so nothing is answered: {why}")]
    Listing {
        /// The cluster.
        name: String,
        /// Why. Part of the message and not a cause behind it, because it may have many lines.
        why: ListingError,
    },
    /// No runtime for the client.
    #[error("failed to start the runtime")]
    Runtime(#[source] std::io::Error),
}

/// Reads the cluster that `args` mean.
///
/// # Errors
/// If there is none, or not all of it can be read.
pub(crate) fn read(args: &LiveArgs, progress: &dyn Progress) -> Result<Live, LiveError> {
    let (_, live) = runtime()?.block_on(reach(args, progress))?;
    Ok(live)
}

/// Reads it, and leaves the client to go on with.
async fn reach(args: &LiveArgs, progress: &dyn Progress) -> Result<(Client, Live), LiveError> {
    let Connection { config, name } = connection::find(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    progress.file(&name, 0);
    let client = client(&name, config)?;
    let (listed, known) = tokio::join!(listing::read(&client), leader::ask(&client, args));
    let Listed { manifests, absent } = listed.map_err(|why| LiveError::Listing { name: name.clone(), why })?;
    progress.all(manifests.len());
    Ok((client, Live { name, manifests, absent, known }))
}

/// The commands wait for one answer after the other, so one thread is enough.
fn runtime() -> Result<tokio::runtime::Runtime, LiveError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LiveError::Runtime)
}

fn client(name: &str, mut config: Config) -> Result<Client, LiveError> {
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(ANSWER);
    Client::try_from(config).map_err(|source| LiveError::Client { name: name.to_owned(), source: Box::new(source) })
}
