//! Certificates made for a test.

use std::path::{Path, PathBuf};

use egret_controller::probe::{ClientFiles, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// What nodes are called in OVN-Kubernetes.
pub(crate) const NAME: &str = "ovn";

/// An authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, both PEM.
pub(crate) struct Issued {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, name: &str) -> Issued {
        self.issue_with(&CertificateParams::new([name.to_owned()]).unwrap())
    }

    pub(crate) fn issue_expired(&self, name: &str) -> Issued {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 12, 31);
        self.issue_with(&params)
    }

    fn issue_with(&self, params: &CertificateParams) -> Issued {
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Issued { cert: cert.pem(), key: key.serialize_pem() }
    }
}

impl Issued {
    /// How a server uses it.
    pub(crate) fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new().identity(Identity::from_pem(&self.cert, &self.key))
    }

    /// How a server uses it that wants to see a certificate of this authority.
    pub(crate) fn server_for(&self, clients: &Authority) -> ServerTlsConfig {
        self.server().client_ca_root(Certificate::from_pem(clients.pem()))
    }
}

/// The files of a prober in a folder that is gone after the test.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new(ca: &Authority) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write("ca.crt", &ca.pem());
        files
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        // As volumes are updated: the new content is there from one moment to the next.
        let new = self.path("new");
        std::fs::write(&new, content).unwrap();
        std::fs::rename(new, self.path(name)).unwrap();
    }

    pub(crate) fn write_client(&self, issued: &Issued) {
        self.write("tls.crt", &issued.cert);
        self.write("tls.key", &issued.key);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        Path::new(self.0.path()).join(name)
    }

    pub(crate) fn tls(&self) -> TlsFiles {
        TlsFiles { ca: self.path("ca.crt"), common_name: NAME.to_owned(), client: None }
    }

    pub(crate) fn tls_with_client(&self) -> TlsFiles {
        let client = ClientFiles { cert: self.path("tls.crt"), key: self.path("tls.key") };
        TlsFiles { client: Some(client), ..self.tls() }
    }
}
