//! What the node says of itself: the egress addresses on its secondary networks.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use egret_api::annotation::secondary_host_egress_ips;
use egret_core::{Address, NodeName};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

/// So long a request may take: while it does nothing else is done on the node.
const PATIENCE: Duration = Duration::from_secs(2);
/// After a failure nothing is written for so long: what else the node needs must not wait for it each time.
const PAUSE: Duration = Duration::from_secs(5);
/// So often it is tried when somebody else writes the annotation at the same time.
const TRIES: u32 = 5;

/// Why the annotation is not written.
#[derive(Debug, thiserror::Error)]
pub enum AnnotationError {
    /// The API server refuses.
    #[error("failed to write the annotation {} of the node", secondary_host_egress_ips::KEY)]
    Refused(#[source] Box<kube::Error>),
    /// The API server does not answer.
    #[error("the API server does not answer to the annotation {} within {PATIENCE:?}", secondary_host_egress_ips::KEY)]
    Silent,
    /// It was tried a short while ago.
    #[error("the annotation {} could not be written; it is tried again soon", secondary_host_egress_ips::KEY)]
    Waiting,
    /// Somebody else writes it all the time.
    #[error("the annotation {} changes all the time", secondary_host_egress_ips::KEY)]
    Contended,
}

/// The annotation of one node, and what is known to stand in it.
#[derive(Debug)]
pub(crate) struct Annotation {
    api: Api<Node>,
    node: NodeName,
    written: Option<BTreeSet<IpAddr>>,
    failed: Option<Instant>,
}

impl Annotation {
    pub(crate) fn new(client: Client, node: NodeName) -> Self {
        Self { api: Api::all(client), node, written: None, failed: None }
    }

    /// Makes it say `addresses`. `stored` is what the node was last seen to say.
    pub(crate) async fn say(
        &mut self,
        addresses: &BTreeSet<IpAddr>,
        stored: &BTreeSet<IpAddr>,
    ) -> Result<(), AnnotationError> {
        if self.written.as_ref().unwrap_or(stored) == addresses && stored == addresses {
            return Ok(());
        }
        if self.failed.is_some_and(|failed| failed.elapsed() < PAUSE) {
            return Err(AnnotationError::Waiting);
        }
        self.written = None;
        let done = tokio::time::timeout(PATIENCE, self.try_to_write(addresses)).await;
        let done = done.unwrap_or(Err(AnnotationError::Silent));
        self.failed = done.is_err().then(Instant::now);
        self.written = done.is_ok().then(|| addresses.clone());
        done
    }

    async fn try_to_write(&self, addresses: &BTreeSet<IpAddr>) -> Result<(), AnnotationError> {
        for _ in 0..TRIES {
            if self.write(addresses).await? {
                return Ok(());
            }
        }
        Err(AnnotationError::Contended)
    }

    /// One try: what is there is read, and replaced only if it is still that.
    async fn write(&self, addresses: &BTreeSet<IpAddr>) -> Result<bool, AnnotationError> {
        let refused = |error| AnnotationError::Refused(Box::new(error));
        let node = self.api.get_metadata(self.node.as_str()).await.map_err(refused)?;
        let present = node.metadata.annotations.as_ref().and_then(|all| all.get(secondary_host_egress_ips::KEY));
        let list: Vec<Address> = addresses.iter().map(|ip| Address::from(*ip)).collect();
        let text = secondary_host_egress_ips::encode(&list);
        let path = format!("/metadata/annotations/{}", secondary_host_egress_ips::KEY.replace('/', "~1"));
        let operations = match present {
            Some(present) if *present == text => return Ok(true),
            None if addresses.is_empty() => return Ok(true),
            Some(present) => json!([
                {"op": "test", "path": path, "value": present},
                {"op": "replace", "path": path, "value": text},
            ]),
            None => {
                let version =
                    json!({"op": "test", "path": "/metadata/resourceVersion", "value": node.metadata.resource_version});
                let op = if node.metadata.annotations.is_some() {
                    json!({"op": "add", "path": path, "value": text})
                } else {
                    let map = json!({secondary_host_egress_ips::KEY: text});
                    json!({"op": "add", "path": "/metadata/annotations", "value": map})
                };
                json!([version, op])
            }
        };
        let operations: json_patch::Patch = serde_json::from_value(operations).expect("a patch");
        match self.api.patch_status(self.node.as_str(), &PatchParams::default(), &Patch::Json::<()>(operations)).await {
            Ok(_) => Ok(true),
            // A failed test is 422, a lost race 409.
            Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }
}
