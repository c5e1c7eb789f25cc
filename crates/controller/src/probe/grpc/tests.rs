use std::net::Ipv4Addr;

use http::Response;

use super::*;

/// How a server of a test answers every request.
#[derive(Clone)]
struct Reply {
    status: StatusCode,
    /// Alone, as in an answer without a message, or after one.
    message: Option<Bytes>,
    grpc_status: Option<&'static str>,
}

const SERVING_MESSAGE: &[u8] = b"\0\0\0\0\x02\x08\x01";

impl Reply {
    fn serving() -> Self {
        Self { status: StatusCode::OK, message: Some(Bytes::from_static(SERVING_MESSAGE)), grpc_status: Some("0") }
    }
}

/// A session with a server in memory.
async fn session(reply: Reply) -> Session {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let mut server = h2::server::handshake(theirs).await.unwrap();
        while let Some(request) = server.accept().await {
            let (_, mut respond) = request.unwrap();
            let mut head = Response::new(());
            *head.status_mut() = reply.status;
            let status = reply.grpc_status.map(|status| ("grpc-status".parse().unwrap(), status.parse().unwrap()));
            let status: HeaderMap = status.into_iter().collect();
            let Some(message) = reply.message.clone() else {
                *head.headers_mut() = status;
                respond.send_response(head, true).unwrap();
                continue;
            };
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(message, false).unwrap();
            stream.send_trailers(status).unwrap();
        }
    });
    let (sender, driver) = handshake(ours).await.unwrap();
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let request = request("http", SocketAddr::new(address, 9107), Duration::from_secs(1));
    Session { address, request, sender, _driver: driver }
}

async fn check(reply: Reply) -> Result<bool, String> {
    session(reply).await.check().await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn an_answer_counts_only_with_its_status_and_its_message() {
    let reply = Reply::serving();
    assert_eq!(check(reply.clone()).await, Ok(true));
    assert_eq!(check(Reply { message: None, grpc_status: Some("5"), ..reply.clone() }).await, Ok(false), "not found");
    let broken = [
        (Reply { status: StatusCode::SERVICE_UNAVAILABLE, ..reply.clone() }, "HTTP status 503 Service Unavailable"),
        (Reply { grpc_status: None, ..reply.clone() }, "gRPC status None"),
        (Reply { grpc_status: Some("14"), ..reply.clone() }, "gRPC status Some(\"14\")"),
        (Reply { message: None, ..reply.clone() }, "not a health answer"),
        (Reply { message: Some(vec![0; LONGEST + 1].into()), ..reply }, "not a health answer"),
    ];
    for (reply, error) in broken {
        assert_eq!(check(reply).await, Err(error.to_owned()));
    }
}

#[test]
fn the_request_names_the_service() {
    assert_eq!(REQUEST.len(), 5 + 19);
    assert_eq!(usize::from(REQUEST[4]), REQUEST.len() - 5);
    assert_eq!(&REQUEST[7..], b"Service_Egress_IP");
}

#[test]
fn the_status_is_read_from_a_message_of_any_legal_form() {
    assert_eq!(serving_status(b"\0\0\0\0\x02\x08\x01"), Some(SERVING));
    assert_eq!(serving_status(b"\0\0\0\0\x02\x08\x02"), Some(2), "not serving");
    assert_eq!(serving_status(b"\0\0\0\0\0"), Some(0), "unknown");
    assert_eq!(serving_status(b"\0\0\0\0\x06\x12\x02hi\x08\x01"), Some(SERVING), "a field of a later version");
    assert_eq!(serving_status(b"\0\0\0\0\x04\x08\x01\x08\x02"), Some(2), "the last one counts");
    assert_eq!(serving_status(b"\0\0\0\0\x03\x08\x81\0"), Some(SERVING), "a varint longer than need be");
}

#[test]
fn what_is_no_message_is_no_answer() {
    for broken in [
        &b""[..],
        b"\0\0\0\0",
        b"\x01\0\0\0\x02\x08\x01",
        b"\0\0\0\0\x03\x08\x01",
        b"\0\0\0\0\x02\x08\x81",
        b"\0\0\0\0\x02\x12\x7f",
        b"\0\0\0\0\x02\x0b\x01",
        b"\0\0\0\0\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        assert_eq!(serving_status(broken), None, "{broken:?}");
    }
}

#[test]
fn ipv6_addresses_make_a_legal_request() {
    let request = request("https", "[2001:db8::1]:9107".parse().unwrap(), Duration::from_secs(1));
    assert_eq!(request.uri().to_string(), "https://[2001:db8::1]:9107/grpc.health.v1.Health/Check");
    assert_eq!(request.headers()["grpc-timeout"], "1000m");
}
