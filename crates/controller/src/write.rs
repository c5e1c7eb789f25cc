//! What is written to the API server, and what came of it.
//!
//! Each write is tried once: whether and when it is worth trying again is the brain's decision, from the class of the
//! error. None is begun that could still be under way when the right to write has ended, and none in a later leadership
//! than the one that decided it: what was free then may be taken since.

pub(crate) mod class;

use std::sync::Arc;
use std::time::{Duration, Instant};

use egret_api::ObjectKey;
use egret_brain::{Action, Input, Write, WriteError};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::lease::Standing;
use crate::metrics::Metrics;
use egret_daemon::{Resource, Stored};

/// As what the API server records who has written a field.
pub const FIELD_MANAGER: &str = "egret-controller";

/// How long a write may take before nobody knows what has become of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A write that somebody has decided.
#[derive(Debug)]
pub struct Order {
    /// The leadership in which it was, and in which alone it may be done; see [`crate::lease::Right`].
    pub term: u64,
    /// What is to be done.
    pub write: Write,
}

/// Takes writes and gives back their results, in whatever order they end.
pub struct Writer {
    client: Client,
    standing: watch::Receiver<Standing>,
    results: mpsc::UnboundedSender<Input>,
    metrics: Arc<Metrics>,
    at_once: usize,
}

impl Writer {
    /// Writes with the client's rights, as long as the standing gives a right to; at most so many at once.
    #[must_use]
    pub fn new(
        client: Client,
        standing: watch::Receiver<Standing>,
        results: mpsc::UnboundedSender<Input>,
        metrics: Arc<Metrics>,
        at_once: usize,
    ) -> Self {
        Self { client, standing, results, metrics, at_once: at_once.max(1) }
    }

    /// Writes what comes until it is told to stop or nothing can come any more, and the last one that was begun has ended.
    pub async fn run(self, mut orders: mpsc::UnboundedReceiver<Order>, stop: CancellationToken) {
        let mut under_way = FuturesUnordered::new();
        let mut open = true;
        while open || !under_way.is_empty() {
            tokio::select! {
                biased;
                () = stop.cancelled(), if open => open = false,
                order = orders.recv(), if open && under_way.len() < self.at_once => match order {
                    Some(order) => under_way.push(self.write(order)),
                    None => open = false,
                },
                Some(()) = under_way.next() => {}
            }
        }
    }

    async fn write(&self, order: Order) {
        let began = Instant::now();
        let Order { term, write: Write { id, object, action } } = order;
        let result = self.in_time(term, &object, action).await;
        let label = result.as_ref().map_or_else(WriteError::class, |_| "ok");
        self.metrics.wrote(object.kind, label, began.elapsed());
        if let Err(error) = &result {
            tracing::debug!(object = %object, error = %error, "write failed");
        }
        // Whoever ends the loop does not want to know.
        let _ = self.results.send(Input::Written { id, result });
    }

    async fn in_time(&self, term: u64, object: &ObjectKey, action: Action) -> Result<Option<Value>, WriteError> {
        let right = self.standing.borrow().right_now().filter(|right| right.term == term);
        let Some(time) = right.and_then(|right| right.time_for_a_write(PATIENCE)) else {
            return Err(transient("this instance has no right to write any more"));
        };
        let attempt = async {
            let api = self.api(object);
            match send(&api, object, action).await {
                Ok(stored) => Ok(stored.map(|stored| stored.into_value(object.kind.into()))),
                Err(error) => Err(with_current(&api, object, class::of(&error)).await),
            }
        };
        tokio::time::timeout(time, attempt).await.unwrap_or_else(|_| Err(transient("no answer in time")))
    }

    fn api(&self, object: &ObjectKey) -> Api<Stored> {
        let (client, resource) = (self.client.clone(), Resource::from(object.kind).api());
        match &object.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }
}

async fn send(api: &Api<Stored>, object: &ObjectKey, action: Action) -> kube::Result<Option<Stored>> {
    let name = &object.name;
    match action {
        Action::Patch { subresource, operations } => {
            let operations = serde_json::from_value(Value::Array(operations)).map_err(kube::Error::SerdeError)?;
            let patch = Patch::Json::<()>(operations);
            let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let patched = match subresource {
                Some(subresource) => api.patch_subresource(subresource, name, &parameters, &patch).await,
                None => api.patch(name, &parameters, &patch).await,
            };
            patched.map(Some)
        }
        Action::Create(value) => {
            let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
            api.create(&parameters, &Stored::from(value)).await.map(Some)
        }
        Action::Delete { uid, resource_version } => {
            let preconditions = Preconditions { uid: Some(uid), resource_version: Some(resource_version) };
            let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            // With a finalizer on it, the object is still there and comes back as it is now.
            Ok(api.delete(name, &parameters).await?.left())
        }
    }
}

/// A conflict is worth nothing without the object as it is now.
async fn with_current(api: &Api<Stored>, object: &ObjectKey, error: WriteError) -> WriteError {
    if !matches!(error, WriteError::Conflict { .. }) {
        return error;
    }
    match api.get_opt(&object.name).await {
        Ok(Some(current)) => WriteError::Conflict { current: Some(current.into_value(object.kind.into())) },
        Ok(None) => WriteError::Gone,
        // The watch brings it, later.
        Err(_) => WriteError::Conflict { current: None },
    }
}

fn transient(message: &str) -> WriteError {
    WriteError::Transient { message: message.to_owned(), retry_after: None }
}
