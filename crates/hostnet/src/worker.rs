//! The thread that speaks to the kernel.
//!
//! Sockets, `/proc/sys/net` and programs belong to the network namespace of the thread that opens, reads or starts them.
//! So all of it is done on one thread, which inherits its namespace from the one that made it; requests come one after
//! the other, and one whose asker goes away is still done as a whole.

use std::path::PathBuf;
use std::sync::mpsc::Receiver;

use egret_hostmodel::{Settings, Step};
use tokio::sync::oneshot;

use crate::netlink::Socket;
use crate::nft::{Memory, Nftables};
use crate::sysctl::Sysctls;
use crate::{Applied, ObserveError, Observed};

/// What the thread is asked for, and where the answer goes.
pub(crate) enum Request {
    Observe(oneshot::Sender<Result<Observed, ObserveError>>),
    Apply(Vec<Step>, oneshot::Sender<Applied>),
}

pub(crate) struct Worker {
    pub(crate) settings: Settings,
    pub(crate) route: Socket,
    pub(crate) netfilter: Socket,
    pub(crate) nft: Box<dyn Nftables + Send>,
    pub(crate) memory: Memory,
    pub(crate) sysctls: Sysctls,
    pub(crate) table_names: Vec<PathBuf>,
}

impl Worker {
    /// Until nobody can ask any more.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        while let Ok(request) = requests.recv() {
            // Who does not wait for the answer any more does not need it.
            match request {
                Request::Observe(answer) => drop(answer.send(self.observe())),
                Request::Apply(steps, answer) => drop(answer.send(self.apply(&steps))),
            }
        }
    }
}
