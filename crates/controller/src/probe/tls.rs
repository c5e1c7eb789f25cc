//! The certificates of the probe, read again when the files change.

use std::path::PathBuf;
use std::sync::Arc;

pub use egret_daemon::tls::TlsError;
use egret_daemon::tls::{PemFile, Renewed};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

/// Which certificates the nodes must show, and which one the prober shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates (PEM) of whom the nodes' certificates must come from.
    pub ca: PathBuf,
    /// The name that the nodes' certificates must have. It is looked for among their alternative names (as OVN-Kubernetes'
    /// client does, whose flag calls it the common name), and is the server name in the handshake.
    pub common_name: String,
    /// Shown to a node that asks for it. OVN-Kubernetes' nodes do not ask, and its client has none to show.
    pub client: Option<ClientFiles>,
}

/// The prober's own certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate and what leads from it to its root (PEM).
    pub cert: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

/// The files and what was last read from them.
#[derive(Debug)]
pub(super) struct Tls {
    name: ServerName<'static>,
    configs: Renewed<ClientConfig>,
}

impl Tls {
    /// Reads the files a first time.
    ///
    /// # Errors
    ///
    /// What is wrong with the files or the name.
    pub(super) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let name = ServerName::try_from(files.common_name.clone())
            .map_err(|source| TlsError::Name { name: files.common_name.clone(), source })?;
        let mut paths = vec![files.ca];
        paths.extend(files.client.into_iter().flat_map(|client| [client.cert, client.key]));
        Ok(Self { name, configs: Renewed::load(paths, configure)? })
    }

    /// Whom the nodes must prove to be.
    pub(super) fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// What connections are made with now.
    pub(super) fn config(&self) -> Arc<ClientConfig> {
        self.configs.config()
    }
}

fn configure(files: &[PemFile]) -> Result<ClientConfig, TlsError> {
    let (ca, client) = files.split_first().expect("the first is the authority's");
    let mut roots = RootCertStore::empty();
    for certificate in ca.certificates()? {
        roots.add(certificate).map_err(TlsError::Unusable)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_root_certificates(roots);
    let mut config = match client {
        [cert, key] => {
            let key = key.key()?;
            builder.with_client_auth_cert(cert.certificates()?, key).map_err(TlsError::Unusable)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Tickets are remembered by server name, which all nodes have in common: they would be shown to the wrong ones.
    config.resumption = Resumption::disabled();
    Ok(config)
}
