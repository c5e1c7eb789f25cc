//! Everything that a real API server knows is given to one, as `kubectl apply --server-side` would.

use egret_testkit::server::Server;
use egret_testkit::server::hand::api;
use kube::api::{Patch, PatchParams};

use crate::manifests::{Manifests, rendered};

/// Those of the Prometheus operator.
pub(crate) const FOREIGN: &[&str] = &["ServiceMonitor", "PodMonitor", "PrometheusRule"];

/// Applies everything, and returns when it is in effect.
pub(crate) async fn install(server: &Server, manifests: &Manifests) {
    let client = server.client();
    let parameters = PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::apply("test").force()
    };
    // Namespaces and definitions first, as kubectl's and kustomize's order has it.
    for object in &manifests.0 {
        if object["kind"] == "CustomResourceDefinition" {
            server.install_crd(object).await.expect("a definition");
        }
        let name = object["metadata"]["name"].as_str().expect("a name");
        let applied = api(&client, object).patch(name, &parameters, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name}: {error}", object["kind"]));
    }
    server.settle_admission().await.expect("policies in effect");
}

/// A server that has what a folder renders to.
pub(crate) async fn installed(folder: &str, components: &[&str]) -> Server {
    let server = Server::take().await.expect("a server");
    if components.contains(&"cloud") {
        server.install_crds(true).await.expect("definitions");
    }
    install(&server, &rendered(folder, components).without(FOREIGN)).await;
    server
}

#[tokio::test]
async fn the_api_server_takes_everything_that_it_knows() {
    let manifests = rendered("overlays/ovn-kubernetes", &["cloud", "monitoring"]).without(FOREIGN);
    let server = Server::take().await.expect("a server");
    install(&server, &manifests).await;
    // A second time nothing changes: nothing in them is altered or defaulted in a way that comes back as a difference.
    let client = server.client();
    for object in &manifests.0 {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let before = api(&client, object).get(name).await.expect("it is stored");
        let parameters = PatchParams::apply("test").force();
        let after = api(&client, object).patch(name, &parameters, &Patch::Apply(object)).await.expect("applied");
        // The API server notes in the status of a policy what it thinks of its expressions.
        if object["kind"] != "ValidatingAdmissionPolicy" {
            assert_eq!(before.metadata.resource_version, after.metadata.resource_version, "{} {name}", object["kind"]);
        }
    }
}

#[tokio::test]
async fn an_object_with_a_misspelt_field_is_not_taken() {
    let server = Server::take().await.expect("a server");
    let mut object = rendered("base", &[]).get("ClusterRole", "egret-controller").clone();
    object["rulez"] = object["rules"].clone();
    let parameters = PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::apply("test").force()
    };
    let refused = api(&server.client(), &object).patch("egret-controller", &parameters, &Patch::Apply(&object)).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("rulez")));
}
