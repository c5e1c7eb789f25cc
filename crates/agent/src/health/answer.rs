//! One HTTP/2 session: questions, and their answers.
//!
//! Straight on `h2`, as the prober is: two small messages do not need a gRPC library.

use std::time::Duration;

use bytes::Bytes;
use egret_daemon::grpc::{CHECK, Field, fields};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::health::Health;

/// A session on which nothing is asked for so long is closed: its peer may be gone without a word.
const IDLE: Duration = Duration::from_mins(2);
/// More than this is no health question. The usual one has 24 bytes.
const LONGEST: usize = 1024;
/// So many questions at once in a session.
const QUESTIONS: u32 = 16;
/// A tenth of what HTTP/2 libraries allow by themselves.
const HEADERS: u32 = 8 * 1024;

/// gRPC's codes for what is no good question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    InvalidArgument = 3,
    Unimplemented = 12,
}

/// Answers until the peer has no more questions.
pub(super) async fn session<T>(stream: T, handshake: Duration, health: &Health) -> Result<(), h2::Error>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(QUESTIONS).max_header_list_size(HEADERS);
    let Ok(connection) = tokio::time::timeout(handshake, builder.handshake::<_, Bytes>(stream)).await else {
        return Ok(());
    };
    let mut connection = connection?;
    let mut answers = FuturesUnordered::new();
    loop {
        tokio::select! {
            asked = connection.accept() => match asked {
                Some(asked) => {
                    let (request, respond) = asked?;
                    answers.push(answer(request, respond, health));
                }
                None => return Ok(()),
            },
            // A question that is broken off is its peer's business.
            Some(_) = answers.next() => {}
            () = tokio::time::sleep(IDLE) => return Ok(()),
        }
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    health: &Health,
) -> Result<(), h2::Error> {
    let (head, mut body) = request.into_parts();
    let status = if head.method == Method::POST && head.uri.path() == CHECK {
        let message = message(&mut body).await?;
        message.as_deref().and_then(service).map(|service| health.status(service)).ok_or(Refusal::InvalidArgument)
    } else {
        Err(Refusal::Unimplemented)
    };
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    match status {
        Ok(status) => {
            let mut stream = respond.send_response(response, false)?;
            let status = u8::try_from(status).expect("it has two values");
            // A gRPC message, not compressed, two bytes long: field 1, a varint.
            stream.send_data(Bytes::copy_from_slice(&[0, 0, 0, 0, 2, 8, status]), false)?;
            stream.send_trailers(HeaderMap::from_iter([grpc_status(0)]))
        }
        Err(refusal) => {
            response.headers_mut().extend([grpc_status(refusal as u16)]);
            respond.send_response(response, true).map(drop)
        }
    }
}

fn grpc_status(code: u16) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static("grpc-status"), HeaderValue::from(code))
}

/// The body, unless it is too long. What it took of the session's window is given back when it is dropped.
async fn message(body: &mut RecvStream) -> Result<Option<Vec<u8>>, h2::Error> {
    let mut message = Vec::new();
    while let Some(part) = body.data().await {
        message.extend_from_slice(&part?);
        if message.len() > LONGEST {
            return Ok(None);
        }
    }
    Ok(Some(message))
}

/// `HealthCheckRequest.service`: field 1, a text, empty when absent. Of several the last counts.
fn service(message: &[u8]) -> Option<&[u8]> {
    let mut told = fields(message)?.into_iter().filter_map(|field| match field {
        Field::Bytes(1, service) => Some(service),
        _ => None,
    });
    Some(told.next_back().unwrap_or_default())
}
