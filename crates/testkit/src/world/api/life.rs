//! The controller's life: it is started, comes to rest, and is stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use egret_api::{Kind, ObjectKey};
use egret_controller::{Config, Metrics, Shared, Surroundings};
use kube::client::ClientBuilder;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::wire::Wire;
use super::{CONTROLLER, Inner, LOOK, NAMESPACE, PATIENCE, failed};
use crate::world::stage::{Setup, StageError};

/// Longer than the controller waits for more changes before it decides.
const WINDOW: Duration = Duration::from_millis(15);
/// No step of a scenario needs more than a handful.
const MOST_WRITES: usize = 300;
/// So many tasks may wake one another within a moment.
const CHAIN: usize = 32;

/// A controller.
pub(super) struct Running {
    pub(super) wire: Wire,
    stop: CancellationToken,
    task: JoinHandle<Result<(), String>>,
}

impl Inner {
    pub(super) async fn start(&mut self) -> Result<(), StageError> {
        let wire = Wire::default();
        let builder = ClientBuilder::try_from(self.server.config_as(CONTROLLER));
        let client = builder.map_err(|error| failed("make a client", error))?.with_layer(&wire).build();
        let stop = CancellationToken::new();
        let probes = self.probes.clone();
        let config = config(&self.setup);
        let (shared, questions) = Shared::new();
        let (metrics, shared) = (Arc::new(Metrics::new()), Arc::new(shared));
        let surroundings = Surroundings { client, metrics, shared, questions, stop: stop.clone() };
        let task = tokio::spawn(async move {
            let run = egret_controller::run(&config, surroundings, move |answers| probes.prober(answers));
            Box::pin(run).await.map_err(|error| error.to_string())
        });
        self.running = Some(Running { wire, stop, task });
        let kinds = self.kinds();
        self.until("the controller to lead and to know everything", move |_, wire| wire.knows(&kinds)).await
    }

    pub(super) async fn stop(&mut self) -> Result<(), StageError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        if running.task.is_finished() {
            return Err(ended(running.task.await));
        }
        running.stop.cancel();
        let ends = tokio::time::timeout(PATIENCE, running.task).await;
        self.attempts.extend(running.wire.take_attempts());
        match ends {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(result) => Err(ended(result)),
            Err(_) => Err(StageError::Restless { waited: PATIENCE, missing: "the controller to stop".to_owned() }),
        }
    }

    /// The kinds that the controller watches.
    fn kinds(&self) -> Vec<Kind> {
        egret_controller::watched(&config(&self.setup))
    }

    pub(super) async fn rest(&mut self) -> Result<(), StageError> {
        let kinds = self.kinds();
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let Some(running) = &mut self.running else { return self.catch_up().await };
            if running.task.is_finished() {
                let running = self.running.take().expect("it was just there");
                return Err(ended(running.task.await));
            }
            if let Some(last) = running.wire.too_many_attempts(MOST_WRITES) {
                return Err(StageError::Endless { turns: MOST_WRITES, last });
            }
            let before = running.wire.quiet_at();
            tokio::time::sleep(if before.is_some() { WINDOW } else { LOOK }).await;
            // What the timers of others have just woken comes first.
            for _ in 0..CHAIN {
                tokio::task::yield_now().await;
            }
            let wire = running.wire.clone();
            if before.is_none() || wire.quiet_at() != before {
                continue;
            }
            let stored = self.stored().await?;
            let seen = self.recorder.tape().is_at(&stored) && wire.has_delivered(&kinds, &stored);
            if seen && wire.quiet_at() == before {
                return self.complete();
            }
        }
        Err(StageError::Restless { waited: PATIENCE, missing: "a controller with nothing to do".to_owned() })
    }

    /// Waits until the recorder has everything that is stored.
    pub(super) async fn catch_up(&mut self) -> Result<(), StageError> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let stored = self.stored().await?;
            if self.recorder.tape().is_at(&stored) {
                return self.complete();
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(StageError::Restless { waited: PATIENCE, missing: "the watches of the recorder".to_owned() })
    }

    async fn stored(&self) -> Result<BTreeMap<ObjectKey, u64>, StageError> {
        self.objects.versions(&Kind::ALL).await.map_err(|error| failed("list every kind", error))
    }

    fn complete(&self) -> Result<(), StageError> {
        match self.recorder.tape().failure() {
            None => Ok(()),
            Some(failure) => Err(StageError::Ended(format!("watching for the record failed: {failure}"))),
        }
    }

    async fn until(&mut self, what: &str, reached: impl Fn(&Self, &Wire) -> bool) -> Result<(), StageError> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match &self.running {
                Some(running) if running.task.is_finished() => {
                    let running = self.running.take().expect("it was just there");
                    return Err(ended(running.task.await));
                }
                Some(running) if reached(self, &running.wire) => return Ok(()),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
        Err(StageError::Restless { waited: PATIENCE, missing: what.to_owned() })
    }

    pub(super) async fn relist(&mut self) -> Result<(), StageError> {
        let kinds = self.kinds();
        if let Some(running) = &self.running {
            running.wire.cut();
        }
        self.until("the watches to begin anew", move |_, wire| wire.knows(&kinds)).await
    }
}

fn config(setup: &Setup) -> Config {
    let mut config = Config::new(NAMESPACE, "stage");
    config.options = setup.options.clone();
    config.probe.total_timeout = if setup.probing { Duration::from_secs(1) } else { Duration::ZERO };
    config
}

fn ended(result: Result<Result<(), String>, JoinError>) -> StageError {
    StageError::Ended(match result {
        Ok(Ok(())) => "without being told to".to_owned(),
        Ok(Err(error)) => error,
        Err(error) => error.to_string(),
    })
}
