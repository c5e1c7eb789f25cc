//! Certificates in files, read again when the files change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, pem};
use tokio::time::Instant;

/// Files are looked at this often at most, and only when a connection is made.
const FRESH: Duration = Duration::from_secs(1);

/// Why certificates cannot be used.
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

/// A file with what was read from it.
pub struct PemFile {
    path: PathBuf,
    content: Vec<u8>,
}

impl PemFile {
    /// Its certificates, at least one.
    ///
    /// # Errors
    /// There is none in it.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found = CertificateDer::pem_slice_iter(&self.content).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|source| self.fault(source))?;
        if found.is_empty() { Err(self.fault(pem::Error::NoItemsFound)) } else { Ok(found) }
    }

    /// Its private key.
    ///
    /// # Errors
    /// There is none in it.
    pub fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.content).map_err(|source| self.fault(source))
    }

    fn fault(&self, source: pem::Error) -> TlsError {
        TlsError::Pem { path: self.path.clone(), source }
    }
}

/// One of them may be a private key.
impl std::fmt::Debug for PemFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What connections are made with, out of the files of now.
///
/// The files' content is compared whole: times of modification are too coarse, and volumes swap links.
pub struct Renewed<C> {
    paths: Vec<PathBuf>,
    make: Make<C>,
    loaded: Mutex<Loaded<C>>,
}

/// Makes it out of the files.
type Make<C> = Box<dyn Fn(&[PemFile]) -> Result<C, TlsError> + Send + Sync>;

struct Loaded<C> {
    config: Arc<C>,
    files: Vec<PemFile>,
    looked: Instant,
}

impl<C> std::fmt::Debug for Renewed<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewed").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl<C> Renewed<C> {
    /// Reads the files a first time; `make` gets them in the order of `paths`.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub fn load(
        paths: Vec<PathBuf>,
        make: impl Fn(&[PemFile]) -> Result<C, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        let files = read(&paths)?;
        let loaded = Loaded { config: Arc::new(make(&files)?), files, looked: Instant::now() };
        Ok(Self { paths, make: Box::new(make), loaded: Mutex::new(loaded) })
    }

    /// What connections are made with now. While new files are no good (an update may be half done) the old ones stay.
    ///
    /// Reads a few small files, without leaving the thread: tens of microseconds once a second.
    pub fn config(&self) -> Arc<C> {
        // Replaced only as a whole: after a panic elsewhere it is as good as before.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now.duration_since(loaded.looked) >= FRESH {
            loaded.looked = now;
            match self.renew(&loaded.files) {
                Ok(None) => {}
                Ok(Some(renewed)) => {
                    tracing::info!(first = self.first(), "certificates replaced");
                    *loaded = renewed;
                }
                Err(error) => {
                    let error = crate::chain(&error);
                    tracing::warn!(
                        error,
                        first = self.first(),
                        "new certificates cannot be used, keeping the old ones"
                    );
                }
            }
        }
        loaded.config.clone()
    }

    fn first(&self) -> String {
        self.paths.first().map(|path| path.display().to_string()).unwrap_or_default()
    }

    fn renew(&self, old: &[PemFile]) -> Result<Option<Loaded<C>>, TlsError> {
        let files = read(&self.paths)?;
        if files.iter().map(|file| &file.content).eq(old.iter().map(|file| &file.content)) {
            return Ok(None);
        }
        Ok(Some(Loaded { config: Arc::new((self.make)(&files)?), files, looked: Instant::now() }))
    }
}

fn read(paths: &[PathBuf]) -> Result<Vec<PemFile>, TlsError> {
    let content = |path: &Path| fs::read(path).map_err(|source| TlsError::Read { path: path.to_path_buf(), source });
    paths.iter().map(|path| Ok(PemFile { path: path.clone(), content: content(path)? })).collect()
}
