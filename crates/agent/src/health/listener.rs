//! One address of the node: the port on it, as soon and as long as that is possible.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::Metrics;
use crate::health::{Health, RETRY, answer};

/// So many sessions at once on an address; a controller has one, and there are few controllers.
const SESSIONS: usize = 64;
/// So long a peer may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// While somebody else has the port, so often is seen whether that is still so.
const LOOK: Duration = Duration::from_secs(5);

/// Listens for ever.
pub(super) async fn listen(socket: SocketAddr, health: Arc<Health>) {
    let mut told = None;
    loop {
        match TcpListener::bind(socket).await {
            Ok(listener) => {
                tracing::info!(%socket, tls = health.tls.is_some(), "health service listens");
                told = None;
                accept(&listener, &health).await;
            }
            Err(error) => {
                let reason = reason(&error);
                health.metrics.health_failed(reason);
                if told != Some(error.kind()) {
                    told = Some(error.kind());
                    explain(socket, reason, &error);
                }
                if error.kind() == io::ErrorKind::AddrInUse {
                    until_free(socket, health.stand_back).await;
                }
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "in-use",
        io::ErrorKind::AddrNotAvailable => "no-address",
        _ => "other",
    }
}

fn explain(socket: SocketAddr, reason: &str, error: &io::Error) {
    match reason {
        "in-use" => tracing::warn!(
            %socket,
            "somebody else, probably ovnkube-node, has the port of the health service: standing back"
        ),
        "no-address" => tracing::info!(%socket, "the node does not have this management address yet; trying again"),
        _ => tracing::warn!(%socket, %error, "failed to listen for the health service; trying again"),
    }
}

/// Waits until nobody has answered on the port for so long.
async fn until_free(socket: SocketAddr, long: Duration) {
    let mut free = Instant::now();
    while free.elapsed() < long {
        tokio::time::sleep(LOOK.min(long)).await;
        match TcpStream::connect(socket).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            _ => free = Instant::now(),
        }
    }
}

/// Counts a listener while there is one.
struct Listening<'a>(&'a Metrics);

impl<'a> Listening<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.health_listens(1);
        Self(metrics)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.health_listens(-1);
    }
}

/// Takes connections for ever. Its sessions end with it.
async fn accept(listener: &TcpListener, health: &Arc<Health>) {
    let _listening = Listening::new(&health.metrics);
    let room = Arc::new(Semaphore::new(SESSIONS));
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Whoever is one too many is disconnected: that is an answer, waiting is none.
                    let Ok(seat) = Arc::clone(&room).try_acquire_owned() else {
                        health.metrics.health_failed("full");
                        continue;
                    };
                    let health = Arc::clone(health);
                    sessions.spawn(async move {
                        let _seat = seat;
                        session(stream, peer, &health).await;
                    });
                }
                // Too many open files, or a peer that has gone: the listener itself does not break.
                Err(error) => {
                    health.metrics.health_failed("accept");
                    tracing::debug!(%error, "failed to take a connection to the health service");
                    tokio::time::sleep(RETRY / 10).await;
                }
            },
            Some(_) = sessions.join_next() => {}
        }
    }
}

async fn session(stream: TcpStream, peer: SocketAddr, health: &Health) {
    // The few bytes of an answer would otherwise wait for the acknowledgement of the ones before.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let ended = match &health.tls {
        None => answer::session(stream, HANDSHAKE, health).await,
        Some(tls) => {
            let accepting = TlsAcceptor::from(tls.config()).accept(stream);
            match tokio::time::timeout(HANDSHAKE, accepting).await {
                Ok(Ok(stream)) => answer::session(stream, HANDSHAKE, health).await,
                Ok(Err(error)) => return tracing::debug!(%peer, %error, "no TLS session with the health service"),
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "session with the health service ended");
    }
}
