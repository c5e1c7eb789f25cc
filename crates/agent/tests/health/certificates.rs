//! TLS, and certificates that are replaced.

use std::path::{Path, PathBuf};
use std::time::Duration;

use egret_agent::health::ServerFiles;
use egret_brain::Answer::{Alive, Silent};
use egret_controller::probe::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::node::{Asking, Node};

/// What nodes are called in OVN-Kubernetes.
const NAME: &str = "ovn";

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes a new certificate of the node.
    fn issue(&self, files: &ServerFiles) {
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new([NAME.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        replace(&files.cert, &cert.pem());
        replace(&files.key, &key.serialize_pem());
    }

    /// How a prober is told of it.
    fn trusted(&self, folder: &Path, file: &str) -> TlsFiles {
        let ca = folder.join(file);
        replace(&ca, &self.0.pem());
        TlsFiles { ca, common_name: NAME.to_owned(), client: None }
    }
}

/// As volumes are updated: the new content is there from one moment to the next.
fn replace(path: &PathBuf, content: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn files(folder: &Path) -> ServerFiles {
    ServerFiles { cert: folder.join("tls.crt"), key: folder.join("tls.key") }
}

alone! {
    async fn a_replaced_certificate_is_shown_from_then_on_and_a_broken_one_never() {
        let (old, new) = (Authority::new(), Authority::new());
        let folder = tempfile::tempdir().unwrap();
        let served = files(folder.path());
        old.issue(&served);
        let node = Node::new("127.1.0.1", |options| options.tls = Some(served.clone()));
        let [trusts_old, trusts_new] =
            [(&old, "old.crt"), (&new, "new.crt")].map(|(ca, file)| Some(ca.trusted(folder.path(), file)));
        Asking::at("127.1.0.1", trusts_old.clone()).until(Alive).await;
        assert_eq!(Asking::at("127.1.0.1", trusts_new.clone()).next(2).await, [Silent; 2]);
        assert_eq!(Asking::at("127.1.0.1", None).next(2).await, [Silent; 2], "nobody is answered in plain text");
        replace(&served.cert, "half of a certifi");
        // Later than the files are looked at again.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        Asking::at("127.1.0.1", trusts_old.clone()).until(Alive).await;
        new.issue(&served);
        Asking::at("127.1.0.1", trusts_new).until(Alive).await;
        assert_eq!(Asking::at("127.1.0.1", trusts_old).next(2).await, [Silent; 2]);
        node.end().await;
    }

    async fn a_certificate_that_is_written_later_is_waited_for() {
        let authority = Authority::new();
        let folder = tempfile::tempdir().unwrap();
        let served = files(folder.path());
        let node = Node::new("127.1.0.1", |options| options.tls = Some(served.clone()));
        let mut asking = Asking::at("127.1.0.1", Some(authority.trusted(folder.path(), "ca.crt")));
        node.until("egret_agent_health_failures_total{reason=\"certificate\"}", |count| count > 0).await;
        assert_eq!(asking.next(1).await, [Silent]);
        authority.issue(&served);
        asking.until(Alive).await;
    }
}
