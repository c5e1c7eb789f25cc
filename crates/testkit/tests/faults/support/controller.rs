//! Controllers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use egret_brain::Answer;
use egret_controller::lease::Terms;
use egret_controller::probe::Probes;
use egret_controller::{Config, Metrics, RunError, Shared, Surroundings, client, run};
use egret_core::NodeName;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{CONTROLLER, Cluster, PATIENCE, eventually};

/// Short, so that the tests are; the proportions are about those of the real ones.
pub(crate) const TERMS: Terms =
    Terms { duration: Duration::from_secs(5), deadline: Duration::from_secs(3), retry: Duration::from_millis(300) };

/// Every node answers.
struct Alive(UnboundedSender<(NodeName, Answer)>);

impl Probes for Alive {
    fn set_targets(&mut self, targets: BTreeMap<NodeName, Vec<IpAddr>>) {
        for node in targets.into_keys() {
            let _ = self.0.send((node, Answer::Alive));
        }
    }
}

/// Probes that every node answers.
pub(crate) fn probes(answers: UnboundedSender<(NodeName, Answer)>) -> Box<dyn Probes> {
    Box::new(Alive(answers))
}

/// What a controller is told here.
pub(crate) fn config(identity: &str) -> Config {
    let mut config = Config::new("default", identity);
    config.election.terms = TERMS;
    config
}

/// A whole controller within this process.
pub(crate) struct Controller {
    pub(crate) shared: Arc<Shared>,
    pub(crate) metrics: Arc<Metrics>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Controller {
    pub(crate) fn start(cluster: &Cluster) -> Self {
        Self::start_as(cluster.server.config_as(CONTROLLER), config("one"))
    }

    /// With another connection, or told something else.
    pub(crate) fn start_as(connection: kube::Config, config: Config) -> Self {
        let (shared, questions) = Shared::new();
        let (shared, metrics) = (Arc::new(shared), Arc::new(Metrics::new()));
        let stop = CancellationToken::new();
        let surroundings = Surroundings {
            client: client(connection).unwrap(),
            metrics: Arc::clone(&metrics),
            shared: Arc::clone(&shared),
            questions,
            stop: stop.clone(),
        };
        let task = tokio::spawn(async move { Box::pin(run(&config, surroundings, probes)).await });
        Self { shared, metrics, stop, task }
    }

    pub(crate) async fn until_leading(&self, leading: bool) {
        eventually("the leadership to change", async || (self.shared.leading() == leading).then_some(())).await;
    }

    /// Ends it in good order.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap().unwrap();
    }
}
