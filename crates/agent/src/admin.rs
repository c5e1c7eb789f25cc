//! The admin port: whether the agent lives and is ready, its metrics, and what it does. Read-only.
//!
//! ```text
//!   GET /healthz    200 while the loop turns, 503 when it has stood still for 30 s
//!   GET /readyz     200 when the desired state has been read and the kernel is as it should be
//!   GET /metrics    OpenMetrics text
//!   GET /snapshot   what this node does and says of its objects, as JSON
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::{self, Metrics};
use crate::shared::Shared;

/// A loop that has stood still for so long is stuck. A pass over a full node takes seconds at most.
pub const STUCK: Duration = Duration::from_secs(30);

/// Answers until `stop`.
///
/// # Errors
/// If the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    tokio::select! {
        served = axum::serve(listener, router(shared, metrics)).into_future() => served,
        () = stop.cancelled() => Ok(()),
    }
}

#[derive(Clone)]
struct Port {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
}

fn router(shared: Arc<Shared>, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(exposition))
        .route("/snapshot", get(snapshot))
        .with_state(Port { shared, metrics })
}

async fn healthz(State(port): State<Port>) -> Response {
    let silent = port.shared.silent_for();
    if silent > STUCK {
        return refuse(&format!("the loop has stood still for {} s", silent.as_secs()));
    }
    (StatusCode::OK, "ok\n").into_response()
}

async fn readyz(State(port): State<Port>) -> Response {
    match port.shared.view() {
        None => refuse("the desired state has not been read yet"),
        Some(view) if view.settled => (StatusCode::OK, "ok\n").into_response(),
        Some(view) => refuse(view.failure.as_deref().unwrap_or("the kernel is not yet as it should be")),
    }
}

async fn exposition(State(port): State<Port>) -> Response {
    port.metrics.heartbeat_age(port.shared.silent_for());
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], port.metrics.exposition()).into_response()
}

async fn snapshot(State(port): State<Port>) -> Response {
    match port.shared.view() {
        Some(view) => Json(&*view).into_response(),
        None => refuse("the desired state has not been read yet"),
    }
}

fn refuse(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response()
}
