//! The one way to the kernel.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::thread;

use egret_hostmodel::{EgressAddress, Settings, Step};
use futures::Stream;
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use tokio::sync::oneshot;

use crate::announcements::Announcements;
use crate::netlink::Socket;
use crate::nft::{Memory, Program};
use crate::sysctl::Sysctls;
use crate::watch::Watch;
use crate::worker::{Request, Worker};
use crate::{Applied, Claims, Class, ObserveError, Observed, StepError};

/// Files and folders of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The folder in which it is kept what kernel parameters were and how the table looked. It must go with the kernel's
    /// own state: a file system in memory that a new agent finds again.
    pub state: PathBuf,
    /// Where kernel parameters are.
    pub proc_sys: PathBuf,
    /// Files, and folders with `*.conf` files, that give routing tables their names.
    pub table_names: Vec<PathBuf>,
}

impl Default for Files {
    fn default() -> Self {
        let etc = ["/usr/share/iproute2/rt_tables", "/etc/iproute2/rt_tables", "/etc/iproute2/rt_tables.d"];
        Self { state: "/run/egret".into(), proc_sys: "/proc/sys".into(), table_names: etc.map(PathBuf::from).to_vec() }
    }
}

/// Why the kernel cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder for what must be kept.
    #[error("failed to make the folder {}", path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A netlink socket.
    #[error("failed to open a netlink socket")]
    Socket(#[source] Errno),
    /// A thread.
    #[error("failed to start a thread")]
    Thread(#[source] io::Error),
}

impl OpenError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::State { source, .. } | Self::Thread(source) => Class::of_io(source),
            Self::Socket(errno) => Class::of_errno(*errno),
        }
    }
}

/// The kernel of one network namespace: that of the thread which opened it, whoever asks later.
#[derive(Debug)]
pub struct Kernel {
    requests: Sender<Request>,
    watch: Watch,
}

impl Kernel {
    /// Opens what is needed to speak to the kernel and hear from it.
    ///
    /// # Errors
    ///
    /// A socket, a thread or the folder cannot be had.
    pub fn open(settings: &Settings, files: &Files) -> Result<Self, OpenError> {
        let state = |source| OpenError::State { path: files.state.clone(), source };
        std::fs::create_dir_all(&files.state).map_err(state)?;
        let worker = Worker {
            settings: *settings,
            route: Socket::open(SockProtocol::NetlinkRoute).map_err(OpenError::Socket)?,
            netfilter: Socket::open(SockProtocol::NetlinkNetFilter).map_err(OpenError::Socket)?,
            nft: Box::new(Program),
            memory: Memory::new(&files.state),
            listed: None,
            sysctls: Sysctls::new(&files.proc_sys, &files.state),
            table_names: files.table_names.clone(),
            announcements: Announcements::default(),
        };
        let watch = Watch::start()?;
        let (requests, received) = mpsc::channel();
        let thread = thread::Builder::new().name("egret-kernel".to_owned());
        thread.spawn(move || worker.run(&received)).map_err(OpenError::Thread)?;
        Ok(Self { requests, watch })
    }

    /// What there is.
    ///
    /// # Errors
    ///
    /// The kernel or nft does not tell.
    pub async fn observe(&self) -> Result<Observed, ObserveError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Observe(answer)).map_err(|_| ObserveError::Stopped)?;
        answered.await.map_err(|_| ObserveError::Stopped)?
    }

    /// Does the steps, one after the other, and stops at the first that fails. Goes on to its end even if the future is
    /// dropped.
    pub async fn apply(&self, steps: &[Step]) -> Applied {
        let (answer, answered) = oneshot::channel();
        let stopped = Applied { done: 0, failed: Some(StepError::Stopped) };
        if self.requests.send(Request::Apply(steps.to_vec(), answer)).is_err() {
            return stopped;
        }
        answered.await.unwrap_or(stopped)
    }

    /// Hears who else claims these addresses, from now on. What is claimed is not given up by that alone.
    ///
    /// # Errors
    ///
    /// A link cannot be listened to.
    pub async fn listen(&self, addresses: &BTreeSet<EgressAddress>) -> Result<Claims, StepError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Listen(addresses.clone(), answer)).map_err(|_| StepError::Stopped)?;
        let open = answered.await.map_err(|_| StepError::Stopped)??;
        Claims::new(open).map_err(StepError::Listen)
    }

    /// Says when something may have changed in the kernel: links, addresses, routes, rules, our nftables table,
    /// ovnkube-node's chains. Several changes in a short time are said once. Our own are said too.
    ///
    /// Everything that changes after the call is said.
    pub fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        self.watch.changes()
    }
}
