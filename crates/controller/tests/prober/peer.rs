//! Servers that stand in for the nodes' agents.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::Pending;
use tokio::runtime::Runtime;
use tonic::transport::server::{Server, ServerTlsConfig};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::watcher::PORT;

/// What a health server says when it is asked for the service `Service_Egress_IP`; of others it says `SERVING`, which
/// nobody should ask.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Says {
    Status(ServingStatus),
    Error(Code),
    /// Once; then `SERVING`.
    ErrorOnce(Code),
    /// `SERVING`, but slowly.
    After(Duration),
    Nothing,
}

pub(crate) const SERVING: Says = Says::Status(ServingStatus::Serving);

/// A health server on its own threads: dropped, it is gone at once, and all its connections with it.
pub(crate) struct Peer {
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
}

struct Shared {
    says: Mutex<Says>,
    checks: AtomicUsize,
    accepted: AtomicUsize,
}

impl Peer {
    pub(crate) fn plain(address: &str, says: Says) -> Self {
        Self::start(&[address.parse().unwrap()], says, None)
    }

    pub(crate) fn secure(address: &str, tls: &ServerTlsConfig) -> Self {
        Self::start(&[address.parse().unwrap()], SERVING, Some(tls))
    }

    /// One server at many addresses. It listens when this returns.
    pub(crate) fn start(addresses: &[IpAddr], says: Says, tls: Option<&ServerTlsConfig>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("peer").enable_all().build();
        let runtime = runtime.unwrap();
        let shared =
            Arc::new(Shared { says: Mutex::new(says), checks: AtomicUsize::new(0), accepted: AtomicUsize::new(0) });
        for &address in addresses {
            let listener = listen(address, PORT);
            let mut server = Server::builder();
            if let Some(tls) = tls {
                server = server.tls_config(tls.clone()).unwrap();
            }
            let service = HealthServer::new(Answering(shared.clone()));
            let counting = shared.clone();
            runtime.spawn(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let accepted = futures::stream::unfold(listener, |listener| async move {
                    Some((listener.accept().await.map(|(stream, _)| stream), listener))
                });
                let accepted = accepted.inspect(|_| {
                    counting.accepted.fetch_add(1, Ordering::SeqCst);
                });
                server.add_service(service).serve_with_incoming(accepted).await.unwrap();
            });
        }
        Self { runtime: Some(runtime), shared }
    }

    /// From now on it says something else.
    pub(crate) fn says(&self, says: Says) {
        *self.shared.says.lock().unwrap() = says;
    }

    /// How often it was asked.
    pub(crate) fn checks(&self) -> usize {
        self.shared.checks.load(Ordering::SeqCst)
    }

    /// How many connections it has accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A runtime must not be waited for within another.
        self.runtime.take().unwrap().shutdown_background();
    }
}

struct Answering(Arc<Shared>);

#[tonic::async_trait]
impl Health for Answering {
    type WatchStream = Pending<Result<HealthCheckResponse, Status>>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        self.0.checks.fetch_add(1, Ordering::SeqCst);
        let says = {
            let mut says = self.0.says.lock().unwrap();
            let now = *says;
            if matches!(now, Says::ErrorOnce(_)) {
                *says = SERVING;
            }
            now
        };
        let status = match says {
            _ if request.get_ref().service != "Service_Egress_IP" => ServingStatus::Serving,
            Says::Status(status) => status,
            Says::Error(code) | Says::ErrorOnce(code) => return Err(Status::new(code, "as the test wants it")),
            Says::After(time) => {
                tokio::time::sleep(time).await;
                ServingStatus::Serving
            }
            Says::Nothing => futures::future::pending().await,
        };
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("nobody watches"))
    }
}

/// Waits until what has listened there is gone: that a peer is dropped does not mean that its threads have noticed.
pub(crate) fn listen(address: IpAddr, port: u16) -> TcpListener {
    loop {
        match TcpListener::bind(SocketAddr::new(address, port)) {
            Ok(listener) => {
                listener.set_nonblocking(true).unwrap();
                return listener;
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => std::thread::yield_now(),
            Err(error) => panic!("{address}: {error}"),
        }
    }
}

/// What a peer without HTTP/2 does with a connection.
#[derive(Clone, Copy)]
pub(crate) enum Rude {
    /// Takes it and says nothing.
    Hangs,
    /// Takes it and breaks it off with a reset.
    Resets,
    /// Says something else than HTTP/2, and waits.
    Babbles,
}

/// Runs until the test ends.
pub(crate) fn rude(address: &str, behaviour: Rude) {
    let listener = listen(address.parse().unwrap(), PORT);
    tokio::spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let mut held = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            match behaviour {
                Rude::Hangs => held.push(stream),
                Rude::Resets => stream.set_zero_linger().unwrap(),
                Rude::Babbles => {
                    let words = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
                    // The prober may have hung up already.
                    let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, words).await;
                    held.push(stream);
                }
            }
        }
    });
}

/// Waits until a condition holds that nothing announces.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), holds).await.unwrap_or_else(|_| panic!("not within 20 s: {what}"));
}
