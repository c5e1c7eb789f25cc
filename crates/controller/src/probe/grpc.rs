//! One question over a kept HTTP/2 session: `grpc.health.v1.Health/Check` for the service `Service_Egress_IP`.
//!
//! Straight on `h2`, not on a gRPC library: one unary call with a constant request is 40 lines, and per node it saves
//! tasks, queues and buffers that a channel has for reconnecting and balancing, which is decided here anyway.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use egret_daemon::grpc::{CHECK, Field, SERVING, fields};
use h2::RecvStream;
use h2::client::SendRequest;
use http::header::{CONTENT_TYPE, HeaderValue, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::attempt::Ended;
use super::tls::Tls;
use super::while_held::WhileHeld;

/// A gRPC message: not compressed, 19 bytes long, `HealthCheckRequest { service: "Service_Egress_IP" }`.
const REQUEST: &[u8] = b"\x00\x00\x00\x00\x13\x0a\x11Service_Egress_IP";

/// More than this is no health answer. The answer has seven bytes.
const LONGEST: usize = 1024;

/// Why a session gave no answer.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("failed to connect")]
    Connect(#[source] io::Error),
    #[error("failed to set up TLS")]
    Tls(#[source] io::Error),
    #[error("HTTP/2 session broken")]
    Broken(#[from] h2::Error),
    #[error("HTTP status {0}")]
    Status(StatusCode),
    #[error("gRPC status {0:?}")]
    Failed(Option<HeaderValue>),
    #[error("not a health answer")]
    Malformed,
}

/// A connection to a node's health server that has answered before.
#[derive(Debug)]
pub(super) struct Session {
    address: IpAddr,
    request: Request<()>,
    sender: SendRequest<Bytes>,
    /// Reads and writes the connection; dropped with the session, which closes the connection.
    _driver: WhileHeld,
}

/// Connects and asks.
pub(super) async fn attempt(address: IpAddr, port: u16, tls: Option<&Tls>, timeout: Duration) -> Ended<Session> {
    match Session::open(address, port, tls, timeout).await {
        Ok(session) => session.ask().await,
        Err(error) => {
            let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
            let ended = match &error {
                SessionError::Connect(error) if refused(error) => Ended::Refused,
                _ => Ended::Failed,
            };
            explain(address, &error);
            ended
        }
    }
}

fn explain(address: IpAddr, error: &SessionError) {
    tracing::debug!(%address, error = egret_daemon::chain(error), "health check failed");
}

impl Session {
    async fn open(address: IpAddr, port: u16, tls: Option<&Tls>, timeout: Duration) -> Result<Self, SessionError> {
        let socket = SocketAddr::new(address, port);
        let stream = TcpStream::connect(socket).await.map_err(SessionError::Connect)?;
        // The few bytes of a probe would otherwise wait for the acknowledgement of the ones before.
        stream.set_nodelay(true).map_err(SessionError::Connect)?;
        let (sender, driver) = match tls {
            None => handshake(stream).await?,
            Some(tls) => {
                let connecting = TlsConnector::from(tls.config()).connect(tls.name(), stream);
                handshake(connecting.await.map_err(SessionError::Tls)?).await?
            }
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        Ok(Self { address, request: request(scheme, socket, timeout), sender, _driver: driver })
    }

    /// The address that it is connected to.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Asks once. A session that breaks over it is gone.
    pub(super) async fn ask(mut self) -> Ended<Self> {
        match self.check().await {
            Ok(well) => Ended::Answered { well, session: self },
            Err(error) => {
                explain(self.address, &error);
                Ended::Failed
            }
        }
    }

    async fn check(&mut self) -> Result<bool, SessionError> {
        let mut sender = self.sender.clone().ready().await?;
        let (response, mut stream) = sender.send_request(self.request.clone(), false)?;
        stream.send_data(Bytes::from_static(REQUEST), true)?;
        let (head, mut body) = response.await?.into_parts();
        if head.status != StatusCode::OK {
            return Err(SessionError::Status(head.status));
        }
        let message = message(&mut body).await?;
        let trailers = body.trailers().await?;
        // An answer without a message has its status in the only headers there are.
        match outcome(trailers.as_ref().unwrap_or(&head.headers))? {
            Outcome::Message => Ok(serving_status(&message).ok_or(SessionError::Malformed)? == SERVING),
            Outcome::No => Ok(false),
        }
    }
}

async fn handshake<T>(stream: T) -> Result<(SendRequest<Bytes>, WhileHeld), h2::Error>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    // The windows that HTTP/2 begins with (64 KiB) are enough, and bound what a broken peer can make us remember.
    let (sender, connection) = h2::client::Builder::new().enable_push(false).handshake(stream).await?;
    let driver = WhileHeld::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "health session ended");
        }
    });
    Ok((sender, driver))
}

fn request(scheme: &str, socket: SocketAddr, timeout: Duration) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = format!("{scheme}://{socket}{CHECK}").parse().expect("an address is legal");
    let headers = request.headers_mut();
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("egret/", env!("CARGO_PKG_VERSION"))));
    // At most eight digits are legal: a day and more.
    let timeout = format!("{}m", timeout.as_millis().min(99_999_999));
    headers.insert("grpc-timeout", timeout.parse().expect("digits are legal"));
    request
}

/// The body, up to its end. What it took of the session's window is given back when it is dropped.
async fn message(body: &mut RecvStream) -> Result<Vec<u8>, SessionError> {
    let mut message = Vec::new();
    while let Some(part) = body.data().await {
        message.extend_from_slice(&part?);
        if message.len() > LONGEST {
            return Err(SessionError::Malformed);
        }
    }
    Ok(message)
}

enum Outcome {
    Message,
    /// The server says that it has no such service: an answer, and not one that is worth a second question.
    No,
}

fn outcome(headers: &HeaderMap) -> Result<Outcome, SessionError> {
    let status = headers.get("grpc-status");
    match status.map(HeaderValue::as_bytes) {
        Some(b"0") => Ok(Outcome::Message),
        // NOT_FOUND: unknown service; UNIMPLEMENTED: no health server at all.
        Some(b"5" | b"12") => Ok(Outcome::No),
        _ => Err(SessionError::Failed(status.cloned())),
    }
}

/// `HealthCheckResponse.status` of a gRPC message: field 1, a varint, 0 when absent. Other fields are skipped, the last
/// of several counts.
fn serving_status(message: &[u8]) -> Option<u64> {
    let mut told = fields(message)?.into_iter().filter_map(|field| match field {
        Field::Varint(1, status) => Some(status),
        _ => None,
    });
    Some(told.next_back().unwrap_or(0))
}

#[cfg(test)]
mod tests;
