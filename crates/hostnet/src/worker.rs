//! The thread that speaks to the kernel.
//!
//! Sockets, `/proc/sys/net` and programs belong to the network namespace of the thread that opens, reads or starts them.
//! So all of it is done on one thread, which inherits its namespace from the one that made it; requests come one after
//! the other, and one whose asker goes away is still done as a whole.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use egret_hostmodel::{EgressAddress, Settings, Step};
use tokio::sync::oneshot;

use crate::announcements::Announcements;
use crate::link::links;
use crate::netlink::Socket;
use crate::nft::{Listed, Memory, Nftables};
use crate::sysctl::Sysctls;
use crate::wire::claims::{self, Listens};
use crate::wire::{self, Port};
use crate::{Applied, ObserveError, Observed, StepError};

/// What the thread is asked for, and where the answer goes.
pub(crate) enum Request {
    Observe(oneshot::Sender<Result<Observed, ObserveError>>),
    Apply(Vec<Step>, oneshot::Sender<Applied>),
    Listen(BTreeSet<EgressAddress>, oneshot::Sender<Result<Vec<(Port, Listens)>, StepError>>),
}

pub(crate) struct Worker {
    pub(crate) settings: Settings,
    pub(crate) route: Socket,
    pub(crate) netfilter: Socket,
    pub(crate) nft: Box<dyn Nftables + Send>,
    pub(crate) memory: Memory,
    pub(crate) listed: Option<Listed>,
    pub(crate) sysctls: Sysctls,
    pub(crate) table_names: Vec<PathBuf>,
    pub(crate) announcements: Announcements,
}

impl Worker {
    /// Until nobody can ask any more.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        loop {
            let request = match self.announcements.due() {
                Some(left) => requests.recv_timeout(left),
                None => requests.recv().map_err(RecvTimeoutError::from),
            };
            // Who does not wait for the answer any more does not need it.
            match request {
                Ok(Request::Observe(answer)) => drop(answer.send(self.observe())),
                Ok(Request::Apply(steps, answer)) => drop(answer.send(self.apply(&steps))),
                Ok(Request::Listen(addresses, answer)) => drop(answer.send(self.listen(&addresses))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.announce_again();
        }
    }

    fn listen(&mut self, addresses: &BTreeSet<EgressAddress>) -> Result<Vec<(Port, Listens)>, StepError> {
        let links = links(&mut self.route).map_err(StepError::Links)?;
        let all = || addresses.iter().map(|address| address.link.as_str()).collect::<BTreeSet<_>>();
        let wire = |source| StepError::Wire { link: all().into_iter().collect::<Vec<_>>().join(", "), source };
        claims::open(addresses.iter(), &links).map_err(wire)
    }

    /// Announces what is due, if it still is here.
    fn announce_again(&mut self) {
        let due = self.announcements.take_due();
        if due.is_empty() {
            return;
        }
        let links = match links(&mut self.route) {
            Ok(links) => links,
            Err(error) => return tracing::warn!(%error, "failed to list links for announcements"),
        };
        for address in due {
            let link = links.values().find(|found| found.link.name == address.link);
            let here = link.filter(|link| link.holds(address.ip, self.settings.address_protocol) == Some(true));
            match here.map(|link| wire::announce(address.ip, link)) {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    tracing::warn!(ip = %address.ip, link = address.link, %error, "failed to announce again");
                }
                None => self.announcements.retract(&address),
            }
        }
    }
}
