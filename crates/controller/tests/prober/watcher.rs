//! A prober with what it says.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egret_brain::Answer;
use egret_controller::probe::{ProbeOptions, Prober, Probes, TlsFiles};
use egret_core::NodeName;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Where the health servers listen.
pub(crate) const PORT: u16 = 9107;

/// Never, as far as a test is concerned.
pub(crate) const NEVER: Duration = Duration::from_hours(1);

/// As in production, with the health service.
pub(crate) fn grpc() -> ProbeOptions {
    ProbeOptions { port: Some(PORT), ..ProbeOptions::default() }
}

pub(crate) fn grpc_with(tls: TlsFiles) -> ProbeOptions {
    ProbeOptions { tls: Some(tls), ..grpc() }
}

/// A prober and everything that it has said so far.
pub(crate) struct Watcher {
    pub(crate) prober: Prober,
    answers: UnboundedReceiver<(NodeName, Answer)>,
    heard: BTreeMap<String, Vec<Answer>>,
    pub(crate) observed: Arc<Mutex<Vec<(Duration, Answer)>>>,
}

impl Watcher {
    pub(crate) fn new(options: ProbeOptions) -> Self {
        let (sender, answers) = unbounded_channel();
        let observed = Arc::new(Mutex::new(Vec::new()));
        let record = observed.clone();
        let observe = Arc::new(move |time, answer| record.lock().unwrap().push((time, answer)));
        let prober = Prober::new(options, sender, observe).unwrap();
        Self { prober, answers, heard: BTreeMap::new(), observed }
    }

    /// A prober with these targets: a node's name and its addresses, separated by blanks.
    pub(crate) fn of(options: ProbeOptions, targets: &[(&str, &str)]) -> Self {
        let mut watcher = Self::new(options);
        watcher.target(targets);
        watcher
    }

    pub(crate) fn target(&mut self, targets: &[(&str, &str)]) {
        let parse = |addresses: &str| addresses.split_whitespace().map(|address| address.parse().unwrap()).collect();
        let targets = targets.iter().map(|(node, addresses)| (NodeName::from(*node), parse(addresses)));
        self.prober.set_targets(targets.collect::<BTreeMap<NodeName, Vec<IpAddr>>>());
    }

    /// Waits for the next thing that is said of any node.
    pub(crate) async fn next(&mut self) -> (String, Answer) {
        let (node, answer) = self.answers.recv().await.expect("the prober lives");
        self.heard.entry(node.to_string()).or_default().push(answer);
        (node.to_string(), answer)
    }

    /// Waits for the end of a probe of this node.
    pub(crate) async fn end(&mut self, node: &str) -> Answer {
        loop {
            match self.next().await {
                (of, answer) if of == node && answer != Answer::Late => return answer,
                _ => {}
            }
        }
    }

    /// Waits until this is said of the node.
    pub(crate) async fn until(&mut self, node: &str, answer: Answer) {
        while self.next().await != (node.to_owned(), answer) {}
    }

    /// Waits until so many probes of each node have ended.
    pub(crate) async fn until_each(&mut self, nodes: &[&str], ends: usize) {
        while nodes.iter().any(|node| self.ends(node) < ends) {
            self.next().await;
        }
    }

    pub(crate) fn ends(&self, node: &str) -> usize {
        self.heard(node).iter().filter(|answer| **answer != Answer::Late).count()
    }

    /// All that was said of a node since it was last forgotten.
    pub(crate) fn heard(&self, node: &str) -> &[Answer] {
        self.heard.get(node).map_or(&[], Vec::as_slice)
    }

    /// Takes what is in the channel, then forgets it all.
    pub(crate) fn forget(&mut self) {
        while self.answers.try_recv().is_ok() {}
        self.heard.clear();
    }
}
