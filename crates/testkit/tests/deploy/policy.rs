//! The policy that protects marks: who may do what, as the API server itself answers.

use egret_api::crd::EgressIP;
use egret_testkit::objects::egress_ip;
use egret_testkit::server::Server;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::install::{install, installed};
use crate::manifests::parse;

const MARK: &str = "k8s.ovn.org/egressip-mark";
const OURS: &str = "system:serviceaccount:egret-system:egret-controller";
const THEIRS: &str = "system:serviceaccount:ovn-kubernetes:ovnkube-cluster-manager";

fn object(annotations: &Value) -> EgressIP {
    let mut object = egress_ip("a", &["192.0.2.1"]);
    object["metadata"]["annotations"] = annotations.clone();
    serde_json::from_value(object).expect("an EgressIP")
}

/// Writes are those of somebody whom access rights do not keep from anything.
async fn may(server: &Server, user: Option<&str>, annotations: Value) -> Result<(), String> {
    let client = user.map_or_else(|| server.client(), |user| server.client_as(user));
    patched(client, json!({"metadata": {"annotations": annotations}})).await
}

async fn patched(client: Client, patch: Value) -> Result<(), String> {
    let api: Api<EgressIP> = Api::all(client);
    let answer = api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await;
    answer.map(drop).map_err(|error| error.to_string())
}

/// Lets the accounts and an ordinary user write every EgressIP, so that only the policy can be in the way.
async fn let_everybody_write(server: &Server) {
    let rights = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writers}
rules: [{apiGroups: [k8s.ovn.org], resources: [egressips], verbs: ['*']}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}]
";
    install(server, &parse(rights)).await;
}

async fn created(server: &Server) {
    let api: Api<EgressIP> = Api::all(server.client());
    api.create(&PostParams::default(), &object(&json!({"team": "a"}))).await.expect("created without a mark");
}

async fn mark(server: &Server) -> Option<String> {
    let api: Api<EgressIP> = Api::all(server.client());
    api.get("a").await.expect("it is there").annotations().get(MARK).cloned()
}

#[track_caller]
fn denied(answer: &Result<(), String>, words: &str) {
    assert!(answer.as_ref().is_err_and(|error| error.contains(words)), "{answer:?}");
}

const KEEP: &str = "only the controller changes the annotation";

#[tokio::test]
async fn an_object_is_created_without_a_mark_whoever_creates_it() {
    let server = installed("base", &[]).await;
    let_everybody_write(&server).await;
    for client in [server.client(), server.client_as(OURS), server.client_as("jane")] {
        let api: Api<EgressIP> = Api::all(client);
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        for mark in ["50000", ""] {
            let refused = api.create(&parameters, &object(&json!({MARK: mark}))).await;
            denied(&refused.map(drop).map_err(|error| error.to_string()), "created without the annotation");
        }
        api.create(&parameters, &object(&json!({}))).await.expect("no mark, no objection");
    }
}

#[tokio::test]
async fn the_controller_sets_repairs_and_withdraws_a_mark() {
    let server = installed("base", &[]).await;
    let_everybody_write(&server).await;
    created(&server).await;
    for mark in [json!("50000"), json!("no mark"), json!("50001"), Value::Null] {
        may(&server, Some(OURS), json!({MARK: mark})).await.expect("the controller may");
    }
    assert_eq!(mark(&server).await, None);
}

#[tokio::test]
async fn nobody_else_touches_a_mark_not_even_an_administrator() {
    let server = installed("base", &[]).await;
    let_everybody_write(&server).await;
    created(&server).await;
    for user in [None, Some("jane"), Some(THEIRS), Some("system:serviceaccount:other:egret-controller")] {
        denied(&may(&server, user, json!({MARK: "50000"})).await, KEEP);
    }
    may(&server, Some(OURS), json!({MARK: "50000"})).await.expect("the controller may");
    for user in [None, Some("jane"), Some(THEIRS)] {
        denied(&may(&server, user, json!({MARK: "50001"})).await, KEEP);
        denied(&may(&server, user, json!({MARK: ""})).await, KEEP);
        denied(&may(&server, user, json!({MARK: null})).await, KEEP);
        denied(&patched(server.client(), json!({"metadata": {"annotations": null}})).await, KEEP);
    }
    assert_eq!(mark(&server).await.as_deref(), Some("50000"));
}

#[tokio::test]
async fn everything_but_the_mark_is_free() {
    let server = installed("base", &[]).await;
    let_everybody_write(&server).await;
    created(&server).await;
    let others = async |server: &Server| {
        may(server, Some("jane"), json!({"team": "b"})).await.expect("another annotation");
        may(server, Some("jane"), json!({"team": null})).await.expect("another annotation goes");
        patched(server.client_as("jane"), json!({"spec": {"egressIPs": ["192.0.2.2"]}})).await.expect("the spec");
        patched(server.client_as("jane"), json!({"status": {"items": []}})).await.expect("the status");
    };
    others(&server).await;
    may(&server, Some(OURS), json!({MARK: "50000"})).await.expect("the controller may");
    others(&server).await;
    assert_eq!(mark(&server).await.as_deref(), Some("50000"));
    let api: Api<EgressIP> = Api::all(server.client_as("jane"));
    api.delete("a", &kube::api::DeleteParams::default()).await.expect("an object with a mark can be deleted");
}

/// A policy that does what OVN-Kubernetes' own one does.
fn theirs() -> crate::manifests::Manifests {
    let mark = format!("object.metadata.?annotations[?'{MARK}']");
    let before = format!("oldObject.metadata.?annotations[?'{MARK}']");
    parse(&format!(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: egressip-mark-annotation-validation}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {{apiGroups: [k8s.ovn.org], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [egressips]}}
  validations:
    - expression: \"request.operation != 'CREATE' || !{mark}.hasValue()\"
      message: theirs
    - expression: \"request.operation != 'UPDATE' || !{before}.hasValue() || {mark} == {before}\"
      message: theirs
    - expression: \"request.operation != 'UPDATE' || {mark} == {before} || request.userInfo.username == '{THEIRS}'\"
      message: theirs
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: their-binding}}
spec: {{policyName: egressip-mark-annotation-validation, validationActions: [Deny]}}
"
    ))
}

#[tokio::test]
async fn beside_their_policy_the_base_can_set_no_mark_and_the_overlay_can() {
    let server = installed("base", &[]).await;
    let_everybody_write(&server).await;
    install(&server, &theirs()).await;
    created(&server).await;
    denied(&may(&server, Some(OURS), json!({MARK: "50000"})).await, "theirs");
    install(&server, &crate::manifests::rendered("overlays/ovn-kubernetes", &[])).await;
    // The base's policy has not gone by itself; whoever goes from one to the other deletes it.
    may(&server, Some(OURS), json!({MARK: "50000"})).await.expect("it takes the place of theirs");
    may(&server, Some(OURS), json!({MARK: "50001"})).await.expect("and lets us repair");
}

#[tokio::test]
async fn in_the_overlay_their_manager_sets_a_first_mark_and_no_more() {
    let server = installed("overlays/ovn-kubernetes", &[]).await;
    let_everybody_write(&server).await;
    created(&server).await;
    denied(&may(&server, Some("jane"), json!({MARK: "50000"})).await, KEEP);
    may(&server, Some(THEIRS), json!({MARK: "50000"})).await.expect("as by their own policy");
    denied(&may(&server, Some(THEIRS), json!({MARK: "50001"})).await, KEEP);
    denied(&may(&server, Some(THEIRS), json!({MARK: null})).await, KEEP);
    may(&server, Some(OURS), json!({MARK: "50001"})).await.expect("the controller repairs it");
}

#[tokio::test]
async fn when_their_policy_comes_back_it_denies_and_names_itself() {
    let server = installed("overlays/ovn-kubernetes", &[]).await;
    let_everybody_write(&server).await;
    created(&server).await;
    install(&server, &theirs()).await;
    denied(&may(&server, Some(OURS), json!({MARK: "50000"})).await, "egressip-mark-annotation-validation");
    // What README.md promises: all but the mark can be written.
    patched(server.client_as(OURS), json!({"status": {"items": []}})).await.expect("the status");
}
