//! The certificates of the probe, read again when the files change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName, pem};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

/// Files are looked at this often at most, and only when a connection is made.
const FRESH: Duration = Duration::from_secs(1);

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

/// Why the certificates of the probe cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or not readable.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file holds something else.
    #[error("no PEM certificate or key in {}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// The certificates are no good: nobody's root, or a key that does not belong to its certificate.
    #[error("certificates that cannot be used")]
    Unusable(#[source] rustls::Error),
    /// The name cannot be in a certificate.
    #[error("{name:?} is not a name that a certificate can have")]
    Name {
        /// The name.
        name: String,
        /// Why.
        #[source]
        source: InvalidDnsNameError,
    },
}

/// The files and what was last read from them.
#[derive(Debug)]
pub(super) struct Tls {
    files: TlsFiles,
    name: ServerName<'static>,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    config: Arc<ClientConfig>,
    content: Content,
    looked: Instant,
}

/// The files' content. It is compared whole: times of modification are too coarse, and volumes swap links.
#[derive(PartialEq, Eq)]
struct Content {
    ca: Vec<u8>,
    client: Option<(Vec<u8>, Vec<u8>)>,
}

/// One of them is a private key.
impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
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
        let content = read(&files)?;
        let loaded = Loaded { config: Arc::new(configure(&files, &content)?), content, looked: Instant::now() };
        Ok(Self { files, name, loaded: Mutex::new(loaded) })
    }

    /// Whom the nodes must prove to be.
    pub(super) fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// What connections are made with now. While new files are no good (an update may be half done) the old ones stay.
    ///
    /// Reads up to three small files, without leaving the thread: tens of microseconds once a second.
    pub(super) fn config(&self) -> Arc<ClientConfig> {
        // Replaced only as a whole: after a panic elsewhere it is as good as before.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now.duration_since(loaded.looked) >= FRESH {
            loaded.looked = now;
            match self.renew(&loaded.content) {
                Ok(None) => {}
                Ok(Some((config, content))) => {
                    tracing::info!(ca = %self.files.ca.display(), "probe certificates replaced");
                    loaded.config = config;
                    loaded.content = content;
                }
                Err(error) => {
                    let error = egret_daemon::chain(&error);
                    tracing::warn!(error, "new probe certificates cannot be used, keeping the old ones");
                }
            }
        }
        loaded.config.clone()
    }

    fn renew(&self, old: &Content) -> Result<Option<(Arc<ClientConfig>, Content)>, TlsError> {
        let content = read(&self.files)?;
        if content == *old {
            return Ok(None);
        }
        Ok(Some((Arc::new(configure(&self.files, &content)?), content)))
    }
}

fn read(files: &TlsFiles) -> Result<Content, TlsError> {
    let read = |path: &PathBuf| fs::read(path).map_err(|source| TlsError::Read { path: path.clone(), source });
    let client = files.client.as_ref().map(|client| Ok((read(&client.cert)?, read(&client.key)?)));
    Ok(Content { ca: read(&files.ca)?, client: client.transpose()? })
}

fn configure(files: &TlsFiles, content: &Content) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.ca, &content.ca)? {
        roots.add(certificate).map_err(TlsError::Unusable)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_root_certificates(roots);
    let mut config = match (&files.client, &content.client) {
        (Some(client), Some((cert, key))) => {
            let pem = |source| TlsError::Pem { path: client.key.clone(), source };
            let key = PrivateKeyDer::from_pem_slice(key).map_err(pem)?;
            builder.with_client_auth_cert(certificates(&client.cert, cert)?, key).map_err(TlsError::Unusable)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Tickets are remembered by server name, which all nodes have in common: they would be shown to the wrong ones.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// At least one certificate.
fn certificates(path: &Path, content: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = |source| TlsError::Pem { path: path.to_path_buf(), source };
    let found = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>().map_err(pem)?;
    if found.is_empty() { Err(pem(pem::Error::NoItemsFound)) } else { Ok(found) }
}
