//! What a user, a node or the cloud does: objects are created, changed and deleted.

use egret_api::{Kind, ObjectKey};
use serde_json::{Value, json};

use super::objects::{Part, version_of};
use super::{Inner, LOOK, failed};
use crate::world::object::{has_status_subresource, key_of};
use crate::world::stage::StageError;

impl Inner {
    pub(super) async fn create(&mut self, mut object: Value) -> Result<(), StageError> {
        let Some(key) = key_of(&object) else {
            let key = ObjectKey::cluster(Kind::Node, "");
            return Err(StageError::Refused { key, reason: "it does not say what it is".to_owned() });
        };
        if let Some(namespace) = &key.namespace
            && self.namespaces.insert(namespace.clone())
        {
            let created = self.objects.create_namespace(namespace).await;
            created.map_err(|error| failed("create a namespace", error))?;
        }
        // Which addresses are free for Services is the server's business.
        if let Some(spec) = object["spec"].as_object_mut().filter(|_| key.kind == Kind::Service) {
            spec.retain(|field, _| !["clusterIP", "clusterIPs"].contains(&field.as_str()));
        }
        self.wait_for_the_next_second().await;
        let mut stored = self.objects.create(&key, &object).await.map_err(|error| refused(&key, &error))?;
        self.own.insert(version_of(&stored));
        self.created = stored["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
        let apart = has_status_subresource(key.kind) && key.kind != Kind::Node;
        if apart && let Some(status) = object.get("status") {
            stored["status"] = status.clone();
            let stored = self.objects.replace(&key, Part::Status, &stored).await;
            self.own.insert(version_of(&stored.map_err(|error| refused(&key, &error))?));
        }
        Ok(())
    }

    /// The server's clock counts whole seconds.
    async fn wait_for_the_next_second(&self) {
        let now = || jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        while self.setup.age_matters && self.created.as_ref().is_some_and(|created| *created == now()) {
            tokio::time::sleep(LOOK * 20).await;
        }
    }

    pub(super) async fn edit(&mut self, key: &ObjectKey, change: &dyn Fn(&mut Value)) -> Result<(), StageError> {
        loop {
            let mut stored = match self.objects.get(key).await {
                Ok(stored) => stored,
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    return Err(StageError::NoSuchObject(key.clone()));
                }
                Err(error) => return Err(refused(key, &error)),
            };
            let mut wanted = stored.clone();
            change(&mut wanted);
            if key.kind == Kind::Service {
                keep_cluster_address(&stored, &mut wanted);
            }
            match self.write(key, &mut stored, &wanted).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                result => return result.map_err(|error| refused(key, &error)),
            }
        }
    }

    async fn write(&mut self, key: &ObjectKey, stored: &mut Value, wanted: &Value) -> kube::Result<()> {
        let apart = has_status_subresource(key.kind);
        let without_status = |object: &Value| {
            let mut object = object.clone();
            object.as_object_mut().filter(|_| apart).map(|fields| fields.remove("status"));
            // A change may have been made of a copy without them.
            object["metadata"].as_object_mut().map(|fields| fields.remove("managedFields"));
            object
        };
        if without_status(stored) != without_status(wanted) {
            let mut whole = wanted.clone();
            whole["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
            *stored = self.objects.replace(key, Part::Whole, &whole).await?;
            self.own.insert(version_of(stored));
        }
        if apart && stored["status"] != wanted["status"] {
            stored["status"] = wanted.get("status").cloned().unwrap_or_else(|| json!({}));
            *stored = self.objects.replace(key, Part::Status, stored).await?;
            self.own.insert(version_of(stored));
        }
        Ok(())
    }

    pub(super) async fn delete(&mut self, key: &ObjectKey) -> Result<(), StageError> {
        let stored = match self.objects.get(key).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(StageError::NoSuchObject(key.clone())),
            result => result.map_err(|error| refused(key, &error))?,
        };
        self.objects.delete(key).await.map_err(|error| refused(key, &error))?;
        self.deleted.insert((key.clone(), stored["metadata"]["uid"].as_str().unwrap_or_default().to_owned()));
        Ok(())
    }
}

/// Its address cannot be taken from a Service, nor does a scenario know it.
fn keep_cluster_address(stored: &Value, wanted: &mut Value) {
    for field in ["clusterIP", "clusterIPs"] {
        if let (Some(spec), Some(value)) = (wanted["spec"].as_object_mut(), stored["spec"].get(field)) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
}

fn refused(key: &ObjectKey, error: &kube::Error) -> StageError {
    StageError::Refused { key: key.clone(), reason: error.to_string() }
}
