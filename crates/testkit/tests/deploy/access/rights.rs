//! Rights, as roles give them, one verb on one resource at a time.

use std::fmt;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::access::tap::Asked;
use crate::manifests::Manifests;

/// The service account of the controller.
pub(super) const ACCOUNT: &str = "system:serviceaccount:egret-system:egret-controller";

/// The service account of the agent.
pub(super) const AGENT: &str = "system:serviceaccount:egret-system:egret-agent";

/// One verb on one resource, in one rule of one role.
#[derive(Clone, Debug)]
pub(super) struct Right {
    account: &'static str,
    pub(super) role: String,
    kind: String,
    namespace: Option<String>,
    rule: usize,
    group: String,
    resource: String,
    name: Option<String>,
    pub(super) verb: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}/{} in the {} {}", self.verb, self.group, self.resource, self.kind, self.role)
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Everything that the roles of an account allow; their names begin with its own.
pub(super) fn rights(manifests: &Manifests, account: &'static str) -> Vec<Right> {
    let whose = account.rsplit(':').next().expect("it has a name");
    let mut rights = Vec::new();
    for role in &manifests.0 {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let Some(rules) = role["rules"].as_array().filter(|_| name.starts_with(whose)) else { continue };
        for (index, rule) in rules.iter().enumerate() {
            let [group] = texts(&rule["apiGroups"]).try_into().expect("one group a rule");
            let [resource] = texts(&rule["resources"]).try_into().expect("one resource a rule");
            rights.extend(texts(&rule["verbs"]).into_iter().map(|verb| Right {
                account,
                role: name.to_owned(),
                kind: role["kind"].as_str().unwrap_or_default().to_owned(),
                namespace: role["metadata"]["namespace"].as_str().map(str::to_owned),
                rule: index,
                group: group.clone(),
                resource: resource.clone(),
                name: texts(&rule["resourceNames"]).pop(),
                verb,
            }));
        }
    }
    rights
}

impl Right {
    /// The manifests without this right.
    pub(super) fn taken_from(&self, manifests: &Manifests) -> Manifests {
        let mut manifests = manifests.clone();
        let named = |object: &&mut Value| object["kind"] == self.kind && object["metadata"]["name"] == self.role;
        let role = manifests.0.iter_mut().find(named);
        let rules = role.and_then(|role| role["rules"].as_array_mut()).expect("it has rules");
        let verbs = rules[self.rule]["verbs"].as_array_mut().expect("it has verbs");
        verbs.retain(|verb| *verb != self.verb);
        if verbs.is_empty() {
            rules.remove(self.rule);
        }
        manifests
    }

    /// Whether this right would have allowed that.
    pub(super) fn covers(&self, asked: &Asked) -> bool {
        (self.verb.as_str(), self.group.as_str(), self.resource.as_str())
            == (asked.verb.as_str(), asked.group.as_str(), asked.resource.as_str())
    }

    /// Whether the API server knows of it already.
    pub(super) async fn in_effect(&self, client: &Client) -> bool {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (self.resource.as_str(), None),
        };
        let attributes = ResourceAttributes {
            group: Some(self.group.clone()),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            resource: Some(resource.to_owned()),
            subresource,
            verb: Some(self.verb.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(self.account.to_owned()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await.expect("an answer");
        answer.status.is_some_and(|status| status.allowed)
    }
}
