//! The certificate that the node shows.

use std::path::PathBuf;
use std::sync::Arc;

use egret_daemon::tls::{PemFile, Renewed, TlsError};
use rustls::ServerConfig;

use crate::Metrics;
use crate::health::RETRY;

/// The certificate of the node's health service and its key; PEM, read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    /// The certificate and what leads from it to its root.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Waits for files that can be used: whoever writes them may be later than the agent.
pub(super) async fn load(files: Option<&ServerFiles>, metrics: &Metrics) -> Option<Renewed<ServerConfig>> {
    let files = files?;
    let mut told = String::new();
    loop {
        let paths = vec![files.cert.clone(), files.key.clone()];
        match Renewed::load(paths, configure) {
            Ok(renewed) => return Some(renewed),
            Err(error) => {
                metrics.health_failed("certificate");
                let error = egret_daemon::chain(&error);
                if error != told {
                    tracing::warn!(error, "no health service without a certificate; trying again");
                    told = error;
                }
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Nobody has to show a certificate: whoever reaches the port may know that the node lives, as with ovnkube-node.
fn configure(files: &[PemFile]) -> Result<ServerConfig, TlsError> {
    let [cert, key] = files else { unreachable!("a certificate and a key are loaded") };
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(cert.certificates()?, key.key()?)
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
