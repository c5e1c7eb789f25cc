//! Whether the egress addresses that this node holds are still its own: asked of the API server when somebody else claims
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use egret_api::{Kind, egress_ip};
use egret_core::{EgressIpName, NodeName};
use egret_daemon::{Resource, Stored};
use egret_hostmodel::{EgressAddress, Policy};
use egret_hostnet::{Claims, Kernel, StepError};
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Whoever claims the address is heard by this node's pods, too, so the answer must be there soon. An API server that needs
/// longer is as good as none.
const PATIENCE: Duration = Duration::from_secs(1);
/// Who has given an address up asks after this long whether it is its own again, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Somebody who claims an address all the time is asked about this often, and as often told that it is not theirs (RFC
/// 5227, 2.4).
const QUIET: Duration = Duration::from_secs(10);

/// What is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It is this node's: tell whoever claimed it.
    Own(IpAddr),
    /// It is not known to be this node's any more, or it is again.
    Changed,
}

/// The egress addresses of this node, and doubts about them.
pub(crate) struct Rights {
    node: NodeName,
    /// `None`: who tells what is wanted is asked by nobody.
    api: Option<Api<Stored>>,
    claims: Claims,
    heard: BTreeSet<EgressAddress>,
    names: BTreeMap<IpAddr, EgressIpName>,
    doubts: BTreeMap<IpAddr, Doubt>,
    unconfirmed: BTreeSet<IpAddr>,
    answer: mpsc::Sender<(IpAddr, bool)>,
    answers: mpsc::Receiver<(IpAddr, bool)>,
}

/// A question to the API server, which is asked again until it is answered with yes.
struct Doubt {
    since: Instant,
    _task: JoinSet<()>,
}

impl Rights {
    pub(crate) fn new(client: Option<Client>, node: NodeName) -> Self {
        let (answer, answers) = mpsc::channel(egret_daemon::watch::WAITING);
        Self {
            node,
            api: client.map(|client| Api::all_with(client, &Resource::from(Kind::EgressIp).api())),
            claims: Claims::default(),
            heard: BTreeSet::new(),
            names: BTreeMap::new(),
            doubts: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
            answer,
            answers,
        }
    }

    /// Addresses that are not known to be this node's.
    pub(crate) fn unconfirmed(&self) -> &BTreeSet<IpAddr> {
        &self.unconfirmed
    }

    /// What this node wants, and has, is this from now on.
    pub(crate) async fn hold(
        &mut self,
        kernel: &Kernel,
        policy: &Policy,
        addresses: &BTreeSet<EgressAddress>,
        anew: bool,
    ) -> Result<(), StepError> {
        let own = policy.addresses.iter().filter(|address| address.node == self.node);
        self.names = own.map(|address| (address.ip, address.name.clone())).collect();
        // What is not wanted here any more is nobody's doubt.
        self.doubts.retain(|ip, _| self.names.contains_key(ip));
        self.unconfirmed.retain(|ip| self.names.contains_key(ip));
        if anew || self.heard != *addresses {
            self.heard.clear();
            self.claims = kernel.listen(addresses).await?;
            self.heard.clone_from(addresses);
        }
        Ok(())
    }

    /// The next thing to do something about. Nothing is lost if this is dropped before.
    pub(crate) async fn next(&mut self) -> Said {
        loop {
            tokio::select! {
                (address, by) = self.claims.next() => {
                    if self.doubt(address.ip) {
                        tracing::warn!(address = %address.ip, link = address.link, %by, "somebody else claims an egress address");
                        if self.api.is_none() {
                            return Said::Own(address.ip);
                        }
                    }
                }
                Some((ip, confirmed)) = self.answers.recv() => match (confirmed, self.unconfirmed.contains(&ip)) {
                    (true, false) => return Said::Own(ip),
                    (true, true) => {
                        tracing::info!(address = %ip, "the API server confirms an egress address");
                        self.unconfirmed.remove(&ip);
                        return Said::Changed;
                    }
                    (false, false) if self.names.contains_key(&ip) => {
                        tracing::warn!(address = %ip, "the API server does not confirm an egress address; it is given up");
                        self.unconfirmed.insert(ip);
                        return Said::Changed;
                    }
                    (false, _) => {}
                },
            }
        }
    }

    /// Begins to ask, unless that was done a short while ago.
    fn doubt(&mut self, ip: IpAddr) -> bool {
        let Some(name) = self.names.get(&ip) else { return false };
        let asks = self.doubts.get(&ip).is_some_and(|doubt| doubt.since.elapsed() < QUIET);
        if asks || self.unconfirmed.contains(&ip) {
            return false;
        }
        let mut task = JoinSet::new();
        if let Some(api) = &self.api {
            task.spawn(confirm(api.clone(), name.clone(), self.node.clone(), ip, self.answer.clone()));
        }
        self.doubts.insert(ip, Doubt { since: Instant::now(), _task: task });
        true
    }
}

/// Asks until the answer is yes, and tells each.
async fn confirm(
    api: Api<Stored>,
    name: EgressIpName,
    node: NodeName,
    ip: IpAddr,
    answers: mpsc::Sender<(IpAddr, bool)>,
) {
    let mut pause = FIRST_PAUSE;
    // Without a version it is what the API server would tell a writer; listed, for that the agent may do.
    let this = ListParams::default().fields(&format!("metadata.name={name}"));
    loop {
        let asked = tokio::time::timeout(PATIENCE, api.list(&this)).await;
        let listed = asked.ok().and_then(Result::ok).into_iter().flatten();
        let confirmed = listed.into_iter().any(|object| says(object, &node, ip));
        if answers.send((ip, confirmed)).await.is_err() || confirmed {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether the object's status says that the node has the address.
fn says(object: Stored, node: &NodeName, ip: IpAddr) -> bool {
    let object = egress_ip::from_value(&object.into_value(Kind::EgressIp.into())).object;
    object.is_some_and(|object| object.recorded.iter().any(|item| item.node == *node && item.address.ip() == ip))
}
