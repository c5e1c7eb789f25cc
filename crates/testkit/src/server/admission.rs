//! Admission policies take effect, or lose it, up to a second after they are stored: the API server looks once a second.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::wait::until;

/// Much longer than it ever takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Returns whether the server asks the policies that it stores, and no others: at once when it does, and that it does
/// not only after a very long time.
///
/// It takes all that have changed into use at once. So a policy that is made now is in effect only when everything is
/// that was changed before. This one warns of one name: a warning is given even where another policy forbids. Each time
/// it is another name, since the policy of the last time may still be in effect.
pub(crate) async fn settle(client: &Client) -> Result<bool, kube::Error> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // No name is the beginning of another.
    let name = format!("egret-testkit-{}-marker", COUNT.fetch_add(1, Ordering::Relaxed));
    let policies = Api::<ValidatingAdmissionPolicy>::all(client.clone());
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(client.clone());
    policies.create(&PostParams::default(), &policy(&name)).await?;
    bindings.create(&PostParams::default(), &binding(&name)).await?;
    let warned = until(LIMIT, async || {
        let answer = client.send(rehearsal(&name)).await?;
        let mut warnings = answer.headers().get_all(http::header::WARNING).iter();
        let warned = warnings.any(|warning| String::from_utf8_lossy(warning.as_bytes()).contains(&name));
        Ok::<_, kube::Error>(warned.then_some(()))
    });
    let settled = warned.await?.is_some();
    bindings.delete(&name, &DeleteParams::default()).await?;
    policies.delete(&name, &DeleteParams::default()).await?;
    Ok(settled)
}

/// Makes nothing, but is judged.
fn rehearsal(name: &str) -> http::Request<Body> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).to_string();
    let request = http::Request::post("/api/v1/namespaces/default/configmaps?dryRun=All");
    let request = request.header(http::header::CONTENT_TYPE, "application/json");
    request.body(Body::from(object.into_bytes())).expect("a legal request")
}

fn policy(name: &str) -> ValidatingAdmissionPolicy {
    parse(json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE"], "resourceNames": [name],
            }]},
            "validations": [{"expression": "false"}],
        },
    }))
}

fn binding(name: &str) -> ValidatingAdmissionPolicyBinding {
    parse(json!({
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Warn"]},
    }))
}

fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("written above")
}
