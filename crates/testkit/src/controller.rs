//! A whole controller within the process of a test.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use egret_brain::Answer;
use egret_controller::lease::Terms;
use egret_controller::probe::Probes;
use egret_controller::{Config, Metrics, RunError, Shared, Surroundings, run};
use egret_core::NodeName;
use kube::Client;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::patience::{PATIENCE, eventually};

/// Short, so that tests are; the proportions are about those of the real ones.
pub const TERMS: Terms =
    Terms { duration: Duration::from_secs(5), deadline: Duration::from_secs(3), retry: Duration::from_millis(300) };

/// Every node answers.
struct Alive(UnboundedSender<(NodeName, Answer)>);

impl Probes for Alive {
    fn set_targets(&mut self, targets: BTreeMap<NodeName, Vec<IpAddr>>) {
        for node in targets.into_keys() {
            // Whoever listens may have ended.
            let _ = self.0.send((node, Answer::Alive));
        }
    }
}

/// What a controller is told in tests.
#[must_use]
pub fn config(identity: &str) -> Config {
    let mut config = Config::new("default", identity);
    config.election.terms = TERMS;
    config
}

/// A controller that runs until it is told to end.
#[derive(Debug)]
pub struct Controller {
    /// What it shows.
    pub shared: Arc<Shared>,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Controller {
    /// Starts one whose nodes all answer.
    #[must_use]
    pub fn start(client: Client, config: Config) -> Self {
        let (shared, questions) = Shared::new();
        let (shared, metrics) = (Arc::new(shared), Arc::new(Metrics::new()));
        let stop = CancellationToken::new();
        let surroundings = Surroundings {
            client,
            metrics: Arc::clone(&metrics),
            shared: Arc::clone(&shared),
            questions,
            stop: stop.clone(),
        };
        let task =
            tokio::spawn(async move { Box::pin(run(&config, surroundings, |answers| Box::new(Alive(answers)))).await });
        Self { shared, metrics, stop, task }
    }

    /// Waits until it leads, or does not.
    pub async fn until_leading(&self, leading: bool) {
        eventually("the leadership to change", async || (self.shared.leading() == leading).then_some(())).await;
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it in good order. Panics if there is none.
    pub async fn end(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, self.task).await.expect("it ends when it is told to");
        ended.expect("it does not panic").expect("no part of it ends by itself");
    }
}
