//! The admin port: whether the controller lives and is ready, its metrics, and what it knows. Read-only.
//!
//! ```text
//!   GET /healthz    200 while the loop turns, 503 when it has stood still for 30 s
//!   GET /readyz     200 when every kind has been listed once; whether this instance leads does not matter
//!   GET /metrics    OpenMetrics text
//!   GET /snapshot   what is known and decided, as JSON; the commands read it
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::{self, Metrics};
use crate::shared::Shared;

/// A loop that has stood still for so long is stuck: it turns at least once a second.
pub const STUCK: Duration = Duration::from_secs(30);
/// So long a question waits for the loop: a decision about the largest cluster takes a fraction of it, and a scrape that
/// comes back with what is known is better than one that times out.
const PATIENCE: Duration = Duration::from_secs(5);
/// So long the requests that are under way may take when the process ends.
const GRACE: Duration = Duration::from_secs(1);

/// Answers until `stop`, then lets the requests that are under way end.
///
/// # Errors
/// If the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let (begun, ended) = (stop.clone(), stop);
    let serving = axum::serve(listener, router(shared, metrics)).with_graceful_shutdown(begun.cancelled_owned());
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
    if !port.shared.listed() {
        return refuse("not every kind has been listed yet");
    }
    (StatusCode::OK, "ok\n").into_response()
}

async fn exposition(State(port): State<Port>) -> Response {
    // Those of a loop that does not answer stay as they were; the age of its heartbeat tells.
    if let Some(numbers) = port.shared.numbers(PATIENCE).await {
        port.metrics.record(&numbers);
    }
    port.metrics.leading(port.shared.leading());
    port.metrics.heartbeat_age(port.shared.silent_for());
    let content_type = HeaderValue::from_static(metrics::CONTENT_TYPE);
    ([(CONTENT_TYPE, content_type)], port.metrics.exposition()).into_response()
}

async fn snapshot(State(port): State<Port>) -> Response {
    if !port.shared.listed() {
        return refuse("not every kind has been listed yet");
    }
    let Some(view) = port.shared.view(PATIENCE).await else {
        return refuse("the loop does not answer");
    };
    let json: (HeaderName, HeaderValue) = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    match serde_json::to_vec(&view) {
        Ok(body) => ([json, (CACHE_CONTROL, HeaderValue::from_static("no-store"))], body).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to write the snapshot");
            (StatusCode::INTERNAL_SERVER_ERROR, "failed to write the snapshot\n").into_response()
        }
    }
}

fn refuse(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use egret_daemon::{Listen, bind};

    use super::*;
    use crate::shared::Question;

    async fn ask(shared: &Arc<Shared>, path: &str) -> (StatusCode, String, String) {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let answer = router(Arc::clone(shared), Arc::new(Metrics::new())).oneshot(request).await.expect("an answer");
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let (status, content_type) = (answer.status(), content_type.unwrap_or_default().to_owned());
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        (status, content_type, String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_not_alive_and_one_that_turns_is() {
        let (shared, _questions) = Shared::new();
        let shared = Arc::new(shared);
        tokio::time::advance(STUCK).await;
        assert_eq!(ask(&shared, "/healthz").await.0, StatusCode::OK);
        tokio::time::advance(Duration::from_secs(1)).await;
        let (status, _, body) = ask(&shared, "/healthz").await;
        assert_eq!((status, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "the loop has stood still for 31 s\n"));
        shared.beat();
        assert_eq!(ask(&shared, "/healthz").await.0, StatusCode::OK);
    }

    #[tokio::test(start_paused = true)]
    async fn ready_means_that_everything_was_listed_once() {
        let (shared, _questions) = Shared::new();
        let shared = Arc::new(shared);
        assert_eq!(ask(&shared, "/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(&shared, "/snapshot").await.0, StatusCode::SERVICE_UNAVAILABLE);
        shared.set_listed();
        assert_eq!(ask(&shared, "/readyz").await.0, StatusCode::OK);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_answer_costs_the_snapshot_but_not_the_metrics() {
        let (shared, _questions) = Shared::new();
        shared.set_listed();
        let shared = Arc::new(shared);
        assert_eq!(ask(&shared, "/snapshot").await.0, StatusCode::SERVICE_UNAVAILABLE);
        let (status, content_type, body) = ask(&shared, "/metrics").await;
        assert_eq!((status, content_type.as_str()), (StatusCode::OK, metrics::CONTENT_TYPE));
        assert!(body.contains("egret_controller_heartbeat_age_seconds 10.0\n"), "{body}");
    }

    #[tokio::test]
    async fn the_snapshot_is_what_the_loop_says() {
        let (shared, mut questions) = Shared::new();
        shared.set_listed();
        let shared = Arc::new(shared);
        let view = egret_brain::View::default();
        let expected = serde_json::to_string(&view).expect("JSON");
        let answers = async {
            if let Some(Question::View(sender)) = questions.recv().await {
                let _ = sender.send(view);
            }
        };
        let ((status, content_type, body), ()) = tokio::join!(ask(&shared, "/snapshot"), answers);
        assert_eq!((status, content_type.as_str(), body), (StatusCode::OK, "application/json", expected));
    }

    #[tokio::test]
    async fn nothing_can_be_changed_through_it() {
        let (shared, _questions) = Shared::new();
        let (shared, metrics) = (Arc::new(shared), Arc::new(Metrics::new()));
        for path in ["/healthz", "/readyz", "/metrics", "/snapshot"] {
            let request = Request::post(path).body(Body::empty()).expect("a request");
            let answer = router(Arc::clone(&shared), Arc::clone(&metrics)).oneshot(request).await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        }
    }

    #[tokio::test]
    async fn stop_ends_it_though_a_peer_keeps_its_connection() {
        let listen = Listen { address: Some(std::net::Ipv4Addr::LOCALHOST.into()), port: 0 };
        let listener = bind(&listen).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (shared, _questions) = Shared::new();
        let stop = CancellationToken::new();
        let served = tokio::spawn(serve(listener, Arc::new(shared), Arc::new(Metrics::new()), stop.clone()));
        let peer = tokio::net::TcpStream::connect(address).await.expect("it listens");
        stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(30), served).await.expect("it ends");
        assert!(ended.is_ok_and(|served| served.is_ok()));
        drop(peer);
    }
}
