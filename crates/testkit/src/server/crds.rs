//! Custom resource definitions, from their creation to the moment that they are served, and to the moment that not.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::wait::until;

/// Much longer than it ever takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Why the server does not serve what it was told to, or still does.
#[derive(Debug, Error)]
pub enum CrdError {
    /// It is no definition.
    #[error("failed to understand a definition")]
    Malformed {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The server refused the definition, or did not answer.
    #[error("failed to install {name} or to ask for it")]
    Request {
        /// The definition's.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The objects were not served, or not gone, in time.
    #[error("{name} is {}", if *gone { "still served" } else { "not served" })]
    Slow {
        /// The definition's.
        name: String,
        /// Whether it should have been gone.
        gone: bool,
    },
}

/// Where the objects of a definition are found.
///
/// Of all that a definition says, this is written alike in `v1` and in `v1beta1`, and Kubernetes stores the latter.
#[derive(Debug, Deserialize)]
pub(crate) struct Definition {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
struct Names {
    plural: String,
}

#[derive(Debug, Deserialize)]
struct Version {
    name: String,
    served: bool,
}

/// Creates or replaces a definition, and waits until its objects can be listed in each version that it serves.
pub(crate) async fn install(client: &Client, definition: &Value) -> Result<(), CrdError> {
    let wanted = Definition::deserialize(definition).map_err(|source| CrdError::Malformed { source })?;
    let name = &wanted.metadata.name;
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let params = PatchParams::apply("egret-testkit").force();
    let stored = api.patch(name, &params, &Patch::Apply(definition)).await;
    stored.map_err(|source| CrdError::Request { name: name.clone(), source: Box::new(source) })?;
    wait_until(client, &wanted, false).await
}

/// Waits until nothing is found where its objects were.
pub(crate) async fn wait_until_gone(client: &Client, definition: &Definition) -> Result<(), CrdError> {
    wait_until(client, definition, true).await
}

/// A server lists the objects of a definition as soon as that is Established and its names are accepted.
async fn wait_until(client: &Client, definition: &Definition, gone: bool) -> Result<(), CrdError> {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let path = format!("/apis/{}/{}/{}?limit=1", spec.group, version.name, spec.names.plural);
        let reached = until(LIMIT, async || {
            let request = http::Request::get(&path).body(Vec::new()).expect("a legal request");
            let missing = match client.request_text(request).await {
                Ok(_) => false,
                Err(kube::Error::Api(status)) if status.code == 404 => true,
                // Not yet or no longer: neither served nor gone.
                Err(kube::Error::Api(_)) => return Ok(None),
                Err(source) => {
                    let name = definition.metadata.name.clone();
                    return Err(CrdError::Request { name, source: Box::new(source) });
                }
            };
            Ok((missing == gone).then_some(()))
        });
        reached.await?.ok_or_else(|| CrdError::Slow { name: definition.metadata.name.clone(), gone })?;
    }
    Ok(())
}
