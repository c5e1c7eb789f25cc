//! The stage before a real API server: the whole controller, with a prober and a cloud that are played.
//!
//! ```text
//!   stage ── objects ──> kube-apiserver <── wire ── controller <── probes (played)
//!     ^                       │
//!     └──── recorder <────────┘ watches: every version of every object, every event
//! ```
//!
//! One thread runs the controller's tasks, the recorder's and the stage's own, so that "it has nothing to do" is a
//! fact: when a timer of the stage rings, every shorter one has rung before, and what that woke has run.

mod life;
mod objects;
mod probes;
mod recorder;
mod user;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use egret_api::{Kind, ObjectKey, crd};
use egret_core::NodeName;
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::life::Running;
use self::objects::Objects;
use self::probes::Played;
use self::recorder::Recorder;
use super::history::{History, Version, Writer};
use super::object::key_of;
use super::stage::{Definition, Setup, Stage, StageError};
use crate::server::{Server, ServerError};

/// As whom the controller speaks.
const CONTROLLER: &str = "system:serviceaccount:egret:egret-controller";
/// Where its Lease is.
const NAMESPACE: &str = "egret";
/// What is under way is over by then, unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// The stage before a real API server.
pub struct Api {
    runtime: Runtime,
    inner: Inner,
}

struct Inner {
    server: Server,
    objects: Objects,
    recorder: Recorder,
    probes: Played,
    setup: Setup,
    running: Option<Running>,
    /// What controllers that run no more tried to write.
    attempts: Vec<ObjectKey>,
    /// Versions that the stage itself stored.
    own: BTreeSet<u64>,
    /// Objects that the stage itself deleted.
    deleted: BTreeSet<(ObjectKey, String)>,
    installed: Option<Definition>,
    namespaces: BTreeSet<String>,
    /// The second in which the youngest object was created.
    created: Option<String>,
}

impl Api {
    /// Takes an API server, and starts one if there is none yet.
    ///
    /// # Errors
    /// If there is none to be had.
    pub fn take() -> Result<Self, StageError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed("start a runtime", error))?;
        let inner = runtime.block_on(Inner::take())?;
        Ok(Self { runtime, inner })
    }
}

impl Inner {
    async fn take() -> Result<Self, StageError> {
        let server = Server::take().await.map_err(|error| failed("take an API server", error))?;
        server.install_crds(true).await.map_err(|error| failed("install the definitions", error))?;
        let objects = Objects::new(server.client());
        objects.create_namespace(NAMESPACE).await.map_err(|error| failed("create a namespace", error))?;
        objects.grant_everything(CONTROLLER).await.map_err(|error| failed("give the controller its rights", error))?;
        let recorder = Recorder::start(&server.client(), &Kind::ALL).await;
        let recorder = recorder.map_err(|error| failed("watch every kind", error))?;
        Ok(Self {
            server,
            objects,
            recorder,
            probes: Played::default(),
            setup: Setup::default(),
            running: None,
            attempts: Vec::new(),
            own: BTreeSet::new(),
            deleted: BTreeSet::new(),
            installed: Some(Definition::Current),
            namespaces: BTreeSet::new(),
            created: None,
        })
    }

    async fn open(&mut self, setup: &Setup) -> Result<(), StageError> {
        if self.running.is_some() {
            self.stop().await?;
        }
        self.catch_up().await?;
        let keys = self.recorder.tape().keys();
        let deletions = keys.iter().map(|key| self.objects.delete(key));
        try_join_all(deletions).await.map_err(|error| failed("empty the server", error))?;
        self.catch_up().await?;
        self.recorder.tape().take();
        self.define(setup.definition).await?;
        self.attempts.clear();
        self.own.clear();
        self.deleted.clear();
        self.setup = setup.clone();
        Ok(())
    }

    /// Installs a definition of EgressIP and waits until the server goes by it.
    async fn define(&mut self, definition: Definition) -> Result<(), StageError> {
        if self.installed == Some(definition) {
            return Ok(());
        }
        self.installed = None;
        let mut crd = crd::egress_ip_definition();
        if definition == Definition::Old {
            let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
            for (part, field) in [("spec", "egressNodeSelector"), ("status", "conditions")] {
                let fields = crd.pointer_mut(&format!("{schema}/{part}/properties")).and_then(Value::as_object_mut);
                fields.map(|fields| fields.remove(field));
            }
        }
        let installed = self.server.install_crd(&crd).await;
        installed.map_err(|error: ServerError| failed("install a definition", error))?;
        let probe = json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressIP",
            "metadata": { "name": "probe" },
            "spec": { "egressIPs": [], "namespaceSelector": {} },
        });
        let key = key_of(&probe).expect("it says what it is");
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let stored = self.objects.rehearse(&key, &probe).await;
            let stored = stored.map_err(|error| failed("rehearse a creation", error))?;
            if stored["spec"]["egressNodeSelector"].is_null() == (definition == Definition::Old) {
                self.installed = Some(definition);
                return Ok(());
            }
            tokio::time::sleep(LOOK * 20).await;
        }
        Err(StageError::Restless { waited: PATIENCE, missing: "the server to go by the new definition".to_owned() })
    }

    async fn history(&mut self) -> Result<History, StageError> {
        self.catch_up().await?;
        let (recorded, raised) = self.recorder.tape().take();
        let versions = recorded.into_iter().map(|recorded| {
            let own = match &recorded.object {
                Some(_) => self.own.contains(&recorded.at),
                None => self.deleted.contains(&(recorded.key.clone(), recorded.uid)),
            };
            let writer = if own { Writer::Other } else { Writer::Controller };
            Version { key: recorded.key, object: recorded.object, writer }
        });
        let versions = versions.collect();
        let mut attempts = std::mem::take(&mut self.attempts);
        attempts.extend(self.running.iter().flat_map(|running| running.wire.take_attempts()));
        Ok(History { versions, raised, attempts })
    }
}

impl Stage for Api {
    fn name(&self) -> &'static str {
        "the API server"
    }

    fn open(&mut self, setup: &Setup) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.open(setup))
    }

    fn create(&mut self, object: Value) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.create(object))
    }

    fn edit(&mut self, key: &ObjectKey, change: &dyn Fn(&mut Value)) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.edit(key, change))
    }

    fn delete(&mut self, key: &ObjectKey) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.delete(key))
    }

    fn start(&mut self) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.start())
    }

    fn stop(&mut self) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.stop())
    }

    fn rest(&mut self) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.rest())
    }

    fn targets(&self) -> BTreeSet<NodeName> {
        self.inner.probes.targets()
    }

    fn probe(&mut self, truth: &BTreeMap<NodeName, bool>) -> Result<(), StageError> {
        if self.inner.probes.answer(truth) { Ok(()) } else { Err(StageError::Ended("it hears no probe".to_owned())) }
    }

    fn relist(&mut self) -> Result<(), StageError> {
        self.runtime.block_on(self.inner.relist())
    }

    fn history(&mut self) -> Result<History, StageError> {
        self.runtime.block_on(self.inner.history())
    }
}

fn failed(action: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> StageError {
    StageError::Server { action, source: Box::new(error) }
}
