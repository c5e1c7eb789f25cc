//! Whether nodes answer.
//!
//! Every target has its own task, timer and session, so that a dead node delays no other. A node's first probe comes at
//! once, the next ones follow each end of a probe after an interval (see [`ProbeOptions`]). A probe has one time limit,
//! which all its attempts share; what it says is an [`Answer`]: `Late` at half of the time, then `Alive` or `Silent`.
//!
//! ```text
//!   set_targets ─> a task per node ─> turn ─> probe: kept session, then addresses in turn ─> answers
//!                        ^                                                     │
//!                        └──────────────────── gap ───────────────────────────┘
//! ```
//!
//! Two kinds of probe, both on the wire what OVN-Kubernetes sends: a connection to TCP port 9 ([`tcp`]), and the health
//! service of the node's agent ([`grpc`]).

mod attempt;
mod grpc;
mod schedule;
mod target;
mod tcp;
mod tls;
mod while_held;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use egret_brain::Answer;
use egret_core::NodeName;
use tokio::sync::mpsc::UnboundedSender;

use self::schedule::Pace;
use self::target::Target;
use self::tls::Tls;
pub use self::tls::{ClientFiles, TlsError, TlsFiles};
use self::while_held::WhileHeld;

/// Something that finds out whether nodes answer. What it finds out goes into the channel that it was made with.
pub trait Probes: Send + 'static {
    /// From now on exactly these nodes are probed, at these addresses. A node that is new, or has other addresses than
    /// before, is probed at once; one that is not among them any more is disconnected, and nothing is said of it after
    /// what is in the channel already.
    ///
    /// Must be called within a tokio runtime.
    fn set_targets(&mut self, targets: BTreeMap<NodeName, Vec<IpAddr>>);

    /// Probes nothing any more, and disconnects.
    fn stop(&mut self) {
        self.set_targets(BTreeMap::new());
    }
}

/// How nodes are probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeOptions {
    /// How long a node may take to answer. Zero: nothing is sent, and every target counts as alive.
    pub total_timeout: Duration,
    /// Where the health service of the node's agent listens. `None` or zero: there is none, TCP port 9 is tried.
    pub port: Option<u16>,
    /// How to speak to the health service. `None`: in plain text.
    pub tls: Option<TlsFiles>,
    /// From an answer of a node, or its silence, to its next probe. Longer if there are so many targets that there would
    /// be more probes than `most_per_second`.
    pub interval: Duration,
    /// So many probes may begin within a second, over all targets. Attempts within a probe do not count.
    pub most_per_second: u32,
}

impl Default for ProbeOptions {
    /// OVN-Kubernetes' time-out and kind of probe; silence is noticed within 1.4 s.
    fn default() -> Self {
        Self {
            total_timeout: Duration::from_secs(1),
            port: None,
            tls: None,
            interval: Duration::from_millis(400),
            most_per_second: 1500,
        }
    }
}

/// Called at every end of a probe with the time it took and what came out (`Alive` or `Silent`), by the task of the node:
/// it must not wait.
pub type Observe = Arc<dyn Fn(Duration, Answer) + Send + Sync>;

/// Probes nodes over the network.
#[must_use]
pub struct Prober {
    probing: Arc<Probing>,
    nodes: BTreeMap<NodeName, Probed>,
}

/// A node that is probed.
struct Probed {
    addresses: Vec<IpAddr>,
    /// `None` when probing is off.
    _task: Option<WhileHeld>,
}

/// What all nodes' tasks share.
struct Probing {
    way: Way,
    timeout: Duration,
    pace: Pace,
    answers: UnboundedSender<(NodeName, Answer)>,
    observe: Observe,
}

enum Way {
    Off,
    Tcp,
    Grpc { port: u16, tls: Option<Box<Tls>> },
}

impl Prober {
    /// A prober without targets.
    ///
    /// # Errors
    ///
    /// What is wrong with the certificates. They are not looked at when they are not needed.
    pub fn new(
        options: ProbeOptions,
        answers: UnboundedSender<(NodeName, Answer)>,
        observe: Observe,
    ) -> Result<Self, TlsError> {
        let way = match options.port.unwrap_or(0) {
            _ if options.total_timeout.is_zero() => Way::Off,
            0 => Way::Tcp,
            port => Way::Grpc { port, tls: options.tls.map(|files| Tls::load(files).map(Box::new)).transpose()? },
        };
        let pace = Pace::new(options.interval, options.most_per_second);
        let probing = Probing { way, timeout: options.total_timeout, pace, answers, observe };
        Ok(Self { probing: Arc::new(probing), nodes: BTreeMap::new() })
    }

    fn start(&self, node: NodeName, addresses: Vec<IpAddr>) -> Probed {
        if matches!(self.probing.way, Way::Off) {
            self.probing.tell(&node, Answer::Alive);
            return Probed { addresses, _task: None };
        }
        let target = Target::new(node, addresses.clone(), self.probing.clone());
        Probed { addresses, _task: Some(WhileHeld::spawn(target.probe_for_ever())) }
    }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober").field("targets", &self.nodes.len()).finish_non_exhaustive()
    }
}

impl Probes for Prober {
    fn set_targets(&mut self, targets: BTreeMap<NodeName, Vec<IpAddr>>) {
        self.probing.pace.share_among(targets.len());
        let mut before = std::mem::take(&mut self.nodes);
        let kept = targets.into_iter().map(|(node, addresses)| {
            let probed = before.remove(&node).filter(|probed| probed.addresses == addresses);
            (node.clone(), probed.unwrap_or_else(|| self.start(node, addresses)))
        });
        self.nodes = kept.collect();
    }
}

impl Probing {
    /// A brain that is gone needs no answers.
    fn tell(&self, node: &NodeName, answer: Answer) {
        let _ = self.answers.send((node.clone(), answer));
    }
}
