//! Which API server, and as whom: as kubectl finds it, and within a pod by its service account.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::nearest::did_you_mean;

/// Where a cluster is found.
#[derive(Debug)]
pub(crate) struct Connection {
    /// For a client.
    pub(crate) config: Config,
    /// In the words of whoever asked: `context "prod"`.
    pub(crate) name: String,
}

/// No cluster is found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// A kubeconfig is there, or asked for, but of no use.
    #[error("failed to use the kubeconfig")]
    Kubeconfig(#[source] KubeconfigError),
    /// Its current context is not set.
    #[error("the kubeconfig has no current context; choose one with --context{}", known(.contexts))]
    NoCurrentContext {
        /// Those that it has.
        contexts: Vec<String>,
    },
    /// It has no such context.
    #[error("the kubeconfig has no context {context:?}{}", hint(.context, .contexts))]
    NoContext {
        /// What was asked for.
        context: String,
        /// Those that it has.
        contexts: Vec<String>,
    },
    /// There is no kubeconfig, and this is no pod.
    #[error("there is no kubeconfig (--kubeconfig, KUBECONFIG, ~/.kube/config), and this is not in a pod")]
    Nowhere(#[source] InClusterError),
}

fn hint(context: &str, contexts: &[String]) -> String {
    let near = did_you_mean(context, contexts.iter().map(String::as_str));
    if near.is_empty() { known(contexts) } else { near }
}

fn known(contexts: &[String]) -> String {
    match contexts {
        [] => String::new(),
        contexts => format!("; it has {}", contexts.join(", ")),
    }
}

/// Finds it; what is asked for in vain is an error, never a reason to take something else.
///
/// # Errors
/// Why there is none.
pub(crate) async fn find(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Connection, ConnectionError> {
    let asked = kubeconfig.is_some() || context.is_some() || std::env::var_os("KUBECONFIG").is_some();
    let file = kubeconfig.map(Path::to_owned);
    if !asked && !home_kubeconfig().is_some_and(|path| path.exists()) {
        let config = Config::incluster().map_err(ConnectionError::Nowhere)?;
        return Ok(Connection { config, name: "the cluster around this pod".to_owned() });
    }
    let read = match &file {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = read.map_err(ConnectionError::Kubeconfig)?;
    let contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let Some(name) =
        context.map(str::to_owned).or_else(|| kubeconfig.current_context.clone()).filter(|n| !n.is_empty())
    else {
        return Err(ConnectionError::NoCurrentContext { contexts });
    };
    if !contexts.contains(&name) {
        return Err(ConnectionError::NoContext { context: name, contexts });
    }
    let options = KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(ConnectionError::Kubeconfig)?;
    Ok(Connection { config, name: format!("context {name:?}") })
}

fn home_kubeconfig() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".kube/config"))
}
