//! Manifests as values.

use serde_json::Value;

use crate::tool::{printed, root};

/// Everything that goes into a cluster, in the order that it is rendered in.
#[derive(Clone, Debug)]
pub(crate) struct Manifests(pub(crate) Vec<Value>);

/// Kind, namespace, name.
pub(crate) fn key(object: &Value) -> (String, String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// The documents of a YAML text.
pub(crate) fn parse(text: &str) -> Manifests {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    Manifests(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// What kustomize makes of a folder, with components as somebody else's kustomization adds them.
pub(crate) fn rendered(folder: &str, components: &[&str]) -> Manifests {
    let deploy = root().join("deploy");
    if components.is_empty() {
        return parse(&printed("kustomize", &deploy, &["build", folder]));
    }
    // kustomize takes relative paths only, and they may lead out of the folder.
    let outer = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(&deploy, outer.path().join("deploy")).expect("a link");
    let list = |paths: Vec<String>| serde_json::to_string(&paths).expect("JSON is YAML");
    let kustomization = format!(
        "resources: {}\ncomponents: {}\n",
        list(vec![format!("deploy/{folder}")]),
        list(components.iter().map(|name| format!("deploy/components/{name}")).collect()),
    );
    std::fs::write(outer.path().join("kustomization.yaml"), kustomization).expect("a file");
    parse(&printed("kustomize", outer.path(), &["build", "."]))
}

/// What Helm makes of the chart.
pub(crate) fn chart(values: &[&str]) -> Manifests {
    let deploy = root().join("deploy");
    let mut arguments = vec!["template", "egret", "chart", "--namespace", "egret-system", "--kube-version", "1.33.0"];
    for value in values {
        arguments.extend(["--set", value]);
    }
    parse(&printed("helm", &deploy, &arguments))
}

impl Manifests {
    /// The only object of a kind and a name.
    pub(crate) fn get(&self, kind: &str, name: &str) -> &Value {
        let mut found = self.0.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        let object = found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"));
        assert!(found.next().is_none(), "{kind} {name} is there twice");
        object
    }

    /// Without objects of these kinds.
    pub(crate) fn without(mut self, kinds: &[&str]) -> Self {
        self.0.retain(|object| !kinds.iter().any(|kind| object["kind"] == *kind));
        self
    }

    /// In an order that does not depend on who rendered them.
    pub(crate) fn sorted(mut self) -> Vec<Value> {
        self.0.sort_by_key(key);
        self.0
    }
}
