//! What the controller that leads knows: read from its admin port, through the API server or directly.

use std::fmt;
use std::time::Duration;

use egret_brain::View;
use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, Config};

use super::Known;
use super::listing::causes;
use crate::args::LiveArgs;

/// The name of the Lease that the controller holds unless it is told otherwise.
const LEASE: &str = "egret-controller";
/// All of it together: without it the commands still answer, so nobody should wait long for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why what the controller knows is not known.
#[derive(Clone, Debug)]
pub(crate) enum Unknown {
    /// Files were read.
    Files,
    /// There is no Lease.
    NoLease {
        /// Where it was looked for.
        namespace: String,
    },
    /// Nobody holds the Lease.
    NobodyLeads,
    /// Something of it may not be read.
    Forbidden {
        /// The words of the API server.
        message: String,
    },
    /// It did not answer.
    Silent {
        /// What was asked.
        from: String,
        /// What happened.
        why: String,
    },
    /// It answered, but does not lead.
    NotLeading {
        /// What was asked.
        from: String,
    },
    /// It answered, but in no way that is understood.
    Unreadable {
        /// What was asked.
        from: String,
        /// What is wrong.
        why: String,
    },
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files => f.write_str("files do not tell"),
            Self::NoLease { namespace } => write!(
                f,
                "there is no Lease {namespace}/{LEASE}; is the controller installed, and in another namespace \
                 (--controller-namespace)?"
            ),
            Self::NobodyLeads => f.write_str("no controller leads"),
            Self::Forbidden { message } => f.write_str(message),
            Self::Silent { from, why } => write!(f, "{from} does not answer: {why}"),
            Self::NotLeading { from } => write!(f, "{from} does not lead"),
            Self::Unreadable { from, why } => write!(f, "what {from} says is not understood: {why}"),
        }
    }
}

/// Asks the controller that leads.
pub(super) async fn ask(client: &Client, args: &LiveArgs) -> Result<Known, Unknown> {
    let from = match &args.controller_url {
        Some(url) => url.clone(),
        None => format!("the controller in {}", args.controller_namespace),
    };
    match tokio::time::timeout(PATIENCE, asked(client, args)).await {
        Ok(known) => known,
        Err(_) => Err(Unknown::Silent { from, why: format!("nothing came within {} s", PATIENCE.as_secs()) }),
    }
}

async fn asked(client: &Client, args: &LiveArgs) -> Result<Known, Unknown> {
    if let Some(url) = &args.controller_url {
        return read(direct(url)?, "/snapshot", url.clone()).await;
    }
    let namespace = &args.controller_namespace;
    let pod = pod(client, namespace).await?;
    // Without a port the API server takes the first that the pod declares, so the commands need not be told of another.
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/proxy/snapshot");
    read(client.clone(), &path, format!("pod {namespace}/{pod}")).await
}

/// Without credentials: it is no API server.
fn direct(url: &str) -> Result<Client, Unknown> {
    let unreadable = |why: String| Unknown::Silent { from: url.to_owned(), why };
    let mut config = Config::new(url.trim_end_matches('/').parse().map_err(|error| unreadable(format!("{error}")))?);
    config.connect_timeout = Some(PATIENCE);
    config.default_retry = false;
    Client::try_from(config).map_err(|error| unreadable(causes(&error)))
}

/// The pod that holds the Lease: the controller's identity is the pod's name, `_` and something unique.
async fn pod(client: &Client, namespace: &str) -> Result<String, Unknown> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let lease = leases.get_opt(LEASE).await.map_err(|error| told(error, format!("the Lease {namespace}/{LEASE}")))?;
    let lease = lease.ok_or_else(|| Unknown::NoLease { namespace: namespace.to_owned() })?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    match holder.split_once('_') {
        Some((pod, _)) if !pod.is_empty() => Ok(pod.to_owned()),
        _ => Err(Unknown::NobodyLeads),
    }
}

async fn read(client: Client, path: &str, from: String) -> Result<Known, Unknown> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(|error| Unknown::Unreadable { from: from.clone(), why: error.to_string() })?;
    let text = client.request_text(request).await.map_err(|error| told(error, from.clone()))?;
    let view: View = serde_json::from_str(&text)
        .map_err(|error| Unknown::Unreadable { from: from.clone(), why: error.to_string() })?;
    if view.leading { Ok(Known { from, view }) } else { Err(Unknown::NotLeading { from }) }
}

fn told(error: kube::Error, from: String) -> Unknown {
    match error {
        kube::Error::Api(status) if status.code == 403 => Unknown::Forbidden { message: status.message.clone() },
        kube::Error::Api(status) => {
            Unknown::Silent { from, why: format!("{} ({})", status.message.trim(), status.code) }
        }
        error => Unknown::Silent { from, why: causes(&error) },
    }
}
