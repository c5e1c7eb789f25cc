//! The admin port: whether a daemon lives and is ready, its metrics, and what it knows. Read-only.
//!
//! ```text
//!   GET /healthz    200 while the loop turns, 503 when it has stood still for 30 s
//!   GET /readyz     200 when it is ready
//!   GET /metrics    OpenMetrics text
//!   GET /snapshot   what it knows and does, as JSON
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A loop that has stood still for so long is stuck: it turns at least once a second.
pub const STUCK: Duration = Duration::from_secs(30);
/// So long the requests that are under way may take when the process ends.
const GRACE: Duration = Duration::from_secs(1);
/// Of metrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Why something cannot be told now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotYet(pub String);

impl From<&str> for NotYet {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// What a daemon tells of itself.
pub trait Daemon: Send + Sync + 'static {
    /// How long ago its loop turned.
    fn silent_for(&self) -> Duration;

    /// Whether it is ready, or why not yet.
    ///
    /// # Errors
    /// Why not yet.
    fn ready(&self) -> Result<(), NotYet>;

    /// Its metrics, as `OpenMetrics` text.
    fn metrics(&self) -> impl Future<Output = String> + Send;

    /// What it knows and does, as JSON.
    ///
    /// # Errors
    /// Why it knows nothing yet.
    fn snapshot(&self) -> impl Future<Output = Result<serde_json::Result<Vec<u8>>, NotYet>> + Send;
}

/// Answers until `stop`, then lets the requests that are under way end.
///
/// # Errors
/// If the listener fails for good.
pub async fn serve<D: Daemon>(listener: TcpListener, daemon: Arc<D>, stop: CancellationToken) -> std::io::Result<()> {
    let (begun, ended) = (stop.clone(), stop);
    let serving = axum::serve(listener, router(daemon)).with_graceful_shutdown(begun.cancelled_owned());
    // A peer that keeps its connection open must not keep the process.
    let patience = async move {
        ended.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = async { serving.await } => served,
        () = patience => Ok(()),
    }
}

/// The routes; [`serve`] answers by them.
pub fn router<D: Daemon>(daemon: Arc<D>) -> Router {
    Router::new()
        .route("/healthz", get(healthz::<D>))
        .route("/readyz", get(readyz::<D>))
        .route("/metrics", get(metrics::<D>))
        .route("/snapshot", get(snapshot::<D>))
        .with_state(daemon)
}

async fn healthz<D: Daemon>(State(daemon): State<Arc<D>>) -> Response {
    let silent = daemon.silent_for();
    if silent > STUCK {
        return NotYet(format!("the loop has stood still for {} s", silent.as_secs())).into_response();
    }
    fine()
}

async fn readyz<D: Daemon>(State(daemon): State<Arc<D>>) -> Response {
    daemon.ready().map_or_else(NotYet::into_response, |()| fine())
}

async fn metrics<D: Daemon>(State(daemon): State<Arc<D>>) -> Response {
    ([(CONTENT_TYPE, OPEN_METRICS)], daemon.metrics().await).into_response()
}

async fn snapshot<D: Daemon>(State(daemon): State<Arc<D>>) -> Response {
    match daemon.snapshot().await {
        Ok(Ok(body)) => ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], body).into_response(),
        Ok(Err(error)) => {
            tracing::error!(%error, "failed to write the snapshot");
            (StatusCode::INTERNAL_SERVER_ERROR, "failed to write the snapshot\n").into_response()
        }
        Err(not_yet) => not_yet.into_response(),
    }
}

fn fine() -> Response {
    (StatusCode::OK, "ok\n").into_response()
}

impl IntoResponse for NotYet {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{self}\n")).into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;
    use crate::{Listen, bind};

    struct Silent(Duration);

    impl Daemon for Silent {
        fn silent_for(&self) -> Duration {
            self.0
        }

        fn ready(&self) -> Result<(), NotYet> {
            Err("not yet".into())
        }

        async fn metrics(&self) -> String {
            "# EOF\n".to_owned()
        }

        async fn snapshot(&self) -> Result<serde_json::Result<Vec<u8>>, NotYet> {
            Ok(Ok(b"{}".to_vec()))
        }
    }

    fn silent(seconds: u64) -> Arc<Silent> {
        Arc::new(Silent(Duration::from_secs(seconds)))
    }

    async fn ask(daemon: &Arc<Silent>, path: &str) -> (StatusCode, String, String) {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let answer = router(Arc::clone(daemon)).oneshot(request).await.expect("an answer");
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let (status, content_type) = (answer.status(), content_type.unwrap_or_default().to_owned());
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        (status, content_type, String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn a_loop_that_stands_still_is_not_alive_and_one_that_turns_is() {
        assert_eq!(ask(&silent(30), "/healthz").await.0, StatusCode::OK);
        let (status, _, body) = ask(&silent(31), "/healthz").await;
        assert_eq!((status, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "the loop has stood still for 31 s\n"));
    }

    #[tokio::test]
    async fn what_a_daemon_tells_is_told_as_what_it_is() {
        let daemon = silent(0);
        let (status, _, body) = ask(&daemon, "/readyz").await;
        assert_eq!((status, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not yet\n"));
        let (status, content_type, body) = ask(&daemon, "/metrics").await;
        assert_eq!((status, content_type.as_str(), body.as_str()), (StatusCode::OK, OPEN_METRICS, "# EOF\n"));
        let (status, content_type, body) = ask(&daemon, "/snapshot").await;
        assert_eq!((status, content_type.as_str(), body.as_str()), (StatusCode::OK, "application/json", "{}"));
    }

    #[tokio::test]
    async fn nothing_can_be_changed_through_it() {
        for path in ["/healthz", "/readyz", "/metrics", "/snapshot"] {
            let request = Request::post(path).body(Body::empty()).expect("a request");
            let answer = router(silent(0)).oneshot(request).await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        }
    }

    #[tokio::test]
    async fn stop_ends_it_though_a_peer_keeps_its_connection() {
        let listen = Listen { address: Some(std::net::Ipv4Addr::LOCALHOST.into()), port: 0 };
        let listener = bind(&listen).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let stop = CancellationToken::new();
        let served = tokio::spawn(serve(listener, silent(0), stop.clone()));
        let peer = tokio::net::TcpStream::connect(address).await.expect("it listens");
        stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(30), served).await.expect("it ends");
        assert!(ended.is_ok_and(|served| served.is_ok()));
        drop(peer);
    }
}
