//! A node with a health service, and who asks it.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use egret_agent::Metrics;
use egret_agent::health::{HealthOptions, serve};
use egret_brain::Answer;
use egret_controller::probe::{ProbeOptions, Prober, Probes, TlsFiles};
use egret_core::NodeName;
use egret_netlab::Alone;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The port by convention.
pub(crate) const PORT: u16 = 9107;

/// Runs the body in a new namespace.
pub(crate) fn alone(path: &str, body: impl Future<Output = ()>) {
    Alone::new(path).run(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(Duration::from_mins(1), body).await })?;
        runtime.shutdown_background();
        Ok(())
    });
}

/// `ip`, which must succeed.
pub(crate) fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

/// A node whose health service runs.
pub(crate) struct Node {
    management: watch::Sender<Vec<IpAddr>>,
    pub(crate) metrics: Arc<Metrics>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    pub(crate) folder: tempfile::TempDir,
}

impl Node {
    /// With these management addresses, separated by blanks.
    pub(crate) fn new(addresses: &str, options: impl FnOnce(&mut HealthOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let drain = folder.path().join("drain");
        let mut told = HealthOptions { port: Some(PORT), drain, ..HealthOptions::default() };
        options(&mut told);
        let (management, watched) = watch::channel(parsed(addresses));
        let (metrics, stop) = (Arc::new(Metrics::default()), CancellationToken::new());
        let serving = tokio::spawn(serve(told, watched, metrics.clone(), stop.clone()));
        Self { management, metrics, stop, serving, folder }
    }

    /// The object of the node says something else from now on.
    pub(crate) fn is_at(&self, addresses: &str) {
        self.management.send(parsed(addresses)).unwrap();
    }

    /// A metric's line, without its value, and the value.
    pub(crate) fn metric(&self, line: &str) -> Option<u64> {
        let text = self.metrics.exposition();
        text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until a metric has this value.
    pub(crate) async fn until(&self, line: &str, wanted: impl Fn(u64) -> bool) {
        while !self.metric(line).is_some_and(&wanted) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it as the agent does.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

fn parsed(addresses: &str) -> Vec<IpAddr> {
    addresses.split_whitespace().map(|address| address.parse().unwrap()).collect()
}

/// The controller's prober, asking at these addresses.
pub(crate) struct Asking {
    prober: Prober,
    answers: UnboundedReceiver<(NodeName, Answer)>,
}

impl Asking {
    pub(crate) fn at(addresses: &str, tls: Option<TlsFiles>) -> Self {
        let (sender, answers) = unbounded_channel();
        let options = ProbeOptions { port: Some(PORT), tls, ..ProbeOptions::default() };
        let prober = Prober::new(options, sender, Arc::new(|_, _| {})).unwrap();
        let mut asking = Self { prober, answers };
        asking.move_to(addresses);
        asking
    }

    pub(crate) fn move_to(&mut self, addresses: &str) {
        self.prober.set_targets(BTreeMap::from([(NodeName::from("n1"), parsed(addresses))]));
    }

    /// Waits until this is said.
    pub(crate) async fn until(&mut self, answer: Answer) {
        while self.answers.recv().await.expect("the prober lives").1 != answer {}
    }

    /// The next so many ends of probes.
    pub(crate) async fn next(&mut self, count: usize) -> Vec<Answer> {
        let mut ends = Vec::new();
        while ends.len() < count {
            let (_, answer) = self.answers.recv().await.expect("the prober lives");
            ends.extend((answer != Answer::Late).then_some(answer));
        }
        ends
    }
}
