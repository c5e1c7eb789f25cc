//! The roles for people: what each may do, and above all what it may not.

use egret_testkit::patience::eventually;
use egret_testkit::server::Server;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;

use crate::install::{install, installed};
use crate::manifests::parse;

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
const READS: [&str; 3] = ["get", "list", "watch"];
const EGRESS: [(&str, &str); 2] = [("k8s.ovn.org", "egressips"), ("k8s.ovn.org", "egressservices")];

/// One person for each role, and the admin and a viewer of a namespace by the roles that Kubernetes brings.
const BINDINGS: &str = "
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: owner},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: egret-owner},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: owner}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: owner, namespace: egret-system},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: egret-owner},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: owner}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reader},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: egret-reader},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: caller},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: egret-viewer},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: caller}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: caller, namespace: egret-system},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: egret-viewer},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: caller}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: admins, namespace: default},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: admin-of-default}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewers, namespace: default},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer-of-default}]}
";

async fn people() -> Server {
    let server = installed("base", &[]).await;
    install(&server, &parse(BINDINGS)).await;
    server
}

/// What the API server's own authorizer answers. An empty namespace is all of them.
struct Question<'a> {
    user: &'a str,
    verb: &'a str,
    /// Group, resource or resource/subresource.
    what: (&'a str, &'a str),
    namespace: &'a str,
    name: Option<&'a str>,
}

async fn may(server: &Server, question: &Question<'_>) -> bool {
    let (group, resource) = question.what;
    let (resource, subresource) = resource.split_once('/').map_or((resource, None), |(a, b)| (a, Some(b.to_owned())));
    let attributes = ResourceAttributes {
        verb: Some(question.verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        namespace: Some(question.namespace.to_owned()),
        name: question.name.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(question.user.to_owned()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let api: Api<SubjectAccessReview> = Api::all(server.client());
    let answer = api.create(&PostParams::default(), &review).await.expect("an answer");
    answer.status.expect("a status").allowed
}

async fn all(server: &Server, user: &str, verbs: &[&str], what: (&str, &str), namespace: &str, expected: bool) {
    for verb in verbs {
        let question = Question { user, verb, what, namespace, name: None };
        let said = may(server, &question).await;
        assert_eq!(said, expected, "{user} {verb} {} in {namespace:?}", what.1);
    }
}

#[tokio::test]
async fn a_platform_team_owns_egress_objects_and_nothing_else() {
    let server = people().await;
    for what in EGRESS {
        all(&server, "owner", &WRITES, what, "", true).await;
        all(&server, "owner", &READS, what, "", true).await;
    }
    all(&server, "owner", &["get", "list", "watch"], ("cloud.network.openshift.io", "cloudprivateipconfigs"), "", true)
        .await;
    all(&server, "owner", &WRITES, ("cloud.network.openshift.io", "cloudprivateipconfigs"), "", false).await;
    all(&server, "owner", &WRITES, ("", "nodes"), "", false).await;
    all(&server, "owner", &["patch"], ("k8s.ovn.org", "egressservices/status"), "", false).await;
    let lease = |name, verb| Question {
        user: "owner",
        verb,
        what: ("coordination.k8s.io", "leases"),
        namespace: "egret-system",
        name: Some(name),
    };
    assert!(may(&server, &lease("egret-controller", "patch")).await, "to accept a mass silence");
    assert!(!may(&server, &lease("other", "patch")).await);
    assert!(!may(&server, &lease("egret-controller", "delete")).await);
}

#[tokio::test]
async fn an_application_team_reads_egress_objects_and_writes_none() {
    let server = people().await;
    for what in EGRESS {
        all(&server, "reader", &READS, what, "", true).await;
        all(&server, "reader", &WRITES, what, "", false).await;
    }
    all(&server, "reader", &READS, ("", "nodes"), "", false).await;
    all(&server, "reader", &READS, ("", "secrets"), "default", false).await;
}

#[tokio::test]
async fn whoever_runs_the_commands_reads_what_they_read() {
    let server = people().await;
    let read = [
        ("", "nodes"),
        ("", "services"),
        ("discovery.k8s.io", "endpointslices"),
        ("k8s.ovn.org", "egressips"),
        ("k8s.ovn.org", "egressservices"),
        ("cloud.network.openshift.io", "cloudprivateipconfigs"),
    ];
    for what in read {
        all(&server, "caller", &["list", "watch"], what, "", true).await;
        all(&server, "caller", &WRITES, what, "", false).await;
    }
    all(&server, "caller", &["get"], ("", "pods/proxy"), "egret-system", true).await;
    all(&server, "caller", &["create"], ("", "pods/proxy"), "egret-system", false).await;
    all(&server, "caller", &["get"], ("", "pods/proxy"), "default", false).await;
    let lease = Question {
        user: "caller",
        verb: "get",
        what: ("coordination.k8s.io", "leases"),
        namespace: "egret-system",
        name: Some("egret-controller"),
    };
    assert!(may(&server, &lease).await);
}

/// The API server's own roles are put together by the controller that aggregates them.
#[tokio::test]
async fn in_a_namespace_its_viewers_read_and_not_even_its_admin_writes() {
    let server = people().await;
    server.start_controller_manager(&["clusterrole-aggregation-controller"]).await.expect("a controller manager");
    let seen = Question { user: "viewer-of-default", verb: "list", what: EGRESS[1], namespace: "default", name: None };
    eventually("`view` to read EgressServices", async || may(&server, &seen).await.then_some(())).await;
    for user in ["viewer-of-default", "admin-of-default"] {
        all(&server, user, &READS, EGRESS[1], "default", true).await;
        all(&server, user, &WRITES, EGRESS[1], "default", false).await;
        all(&server, user, &READS, EGRESS[0], "", false).await;
    }
}
