//! Who may do everything, and how others are played.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::{Value, json};

use super::folder::Folder;

/// The one user that the server knows: name, number, group. The group passes every authorization, so that it may
/// impersonate anybody.
const ADMIN: &str = "admin,admin,system:masters";

/// The token of an administrator, and what a client needs beside it.
#[derive(Debug)]
pub(crate) struct Credentials {
    token: String,
    folder: PathBuf,
}

impl Credentials {
    /// A new token. Other users of this machine can reach the port, so it is one that cannot be guessed.
    pub(crate) fn new(folder: &Folder) -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let token = format!("{:032x}", u128::from_ne_bytes(bytes));
        let credentials = Self { token, folder: folder.path().to_owned() };
        fs::write(credentials.token_file(), format!("{},{ADMIN}\n", credentials.token))?;
        Ok(credentials)
    }

    /// What the server is told about who is who.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    /// Where the server puts a certificate and a key that it makes for itself.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.folder.join("certificates")
    }

    /// The certificate, the one of its issuer included.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.certificates().join("apiserver.crt")
    }

    /// A kubeconfig for the server at that address, for the administrator or somebody that it impersonates.
    pub(crate) fn kubeconfig(&self, server: SocketAddr, user: Option<&str>) -> Value {
        let mut auth = json!({"token": self.token});
        if let Some(user) = user {
            auth["as"] = user.into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": auth}],
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://{server}"),
                "certificate-authority": self.certificate(),
            }}],
        })
    }

    /// The same as a file.
    pub(crate) fn write_kubeconfig(&self, server: SocketAddr, user: Option<&str>) -> io::Result<PathBuf> {
        // A user's name has colons, and a test may use any.
        let name: String = user.unwrap_or("admin").chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        let file = self.folder.join(format!("kubeconfig-{name}.yaml"));
        fs::write(&file, self.kubeconfig(server, user).to_string())?;
        Ok(file)
    }
}

/// What a kubeconfig says, for a client in this process.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config, KubeconfigError> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // It would be taken from the environment, and the server is on this machine.
    config.proxy_url = None;
    Ok(config)
}
