//! The connection to the API server.

use std::time::Duration;

use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

/// To make a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// From a request to the first byte of its answer. Requests that hurry have shorter limits of their own; this one is for
/// a watch that begins on an API server that has stopped to think.
const FIRST_BYTE: Duration = Duration::from_secs(30);
/// A peer that has vanished without a word is noticed after this long instead of at the end of the watch: three probes.
const QUIET: Duration = Duration::from_secs(9);
const PROBE: Duration = Duration::from_secs(3);
const PROBES: u32 = 3;
/// And this long after something was sent that it does not acknowledge.
const UNACKNOWLEDGED: Duration = Duration::from_secs(15);

/// No client can be made from a configuration.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up a client for {url}")]
pub struct ConnectError {
    url: String,
    source: Box<kube::Error>,
}

/// A client that notices dead connections soon and never repeats a request by itself: what has become of a write is for
/// the brain to know, and a write that waits inside a client may go out when its right has ended.
///
/// # Errors
/// If the configuration's certificates or credentials cannot be used.
pub fn client(config: Config) -> Result<Client, ConnectError> {
    let url = config.cluster_url.to_string();
    build(config).map_err(|source| ConnectError { url, source: Box::new(source) })
}

fn build(mut config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_keepalive(Some(QUIET));
    connector.set_keepalive_interval(Some(PROBE));
    connector.set_keepalive_retries(Some(PROBES));
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    let https = config.rustls_https_connector_with_connector(connector)?;
    let http: HttpClient<_, kube::client::Body> = HttpClient::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .timeout(FIRST_BYTE)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
