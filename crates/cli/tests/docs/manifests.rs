//! Whoever copies a manifest out of a page gets one that Egret takes.

use egret_api::Kind;

use crate::none;
use crate::page::{pages, split};
use crate::support::{egret, run_with};

/// What `egret` says against `manifest`; empty if nothing. Of other people's kinds only that they are YAML is judged.
fn complaints(manifest: &str) -> String {
    if !Kind::ALL.into_iter().any(|kind| manifest.contains(&format!("kind: {}\n", kind.name()))) {
        let read = serde_saphyr::from_multiple::<serde_json::Value>(manifest);
        return read.err().map(|error| error.to_string()).unwrap_or_default();
    }
    let run = run_with(egret(["status", "-"]), manifest);
    let told = run.stderr.lines().any(|line| line.starts_with("error") || line.starts_with("warning"));
    if run.code == Some(0) && !told { String::new() } else { run.stderr }
}

#[test]
fn every_manifest_is_taken() {
    let (mut wrong, mut kinds) = (Vec::new(), Vec::new());
    for page in pages() {
        for block in split(&page.text).0.into_iter().filter(|block| block.language == "yaml") {
            kinds.extend(block.text.lines().filter_map(|line| line.strip_prefix("kind: ")).map(str::to_owned));
            let complaints = complaints(&block.text);
            if !complaints.is_empty() {
                wrong.push(format!("{}:\n{}\n{complaints}", page.name, block.text));
            }
        }
    }
    none(&wrong);
    for kind in ["EgressIP", "EgressService", "Service"] {
        assert!(kinds.iter().any(|shown| shown == kind), "no page shows how to write the kind {kind}");
    }
}

#[test]
fn a_manifest_with_a_slip_is_found() {
    let manifest = |field: &str| {
        format!(
            "apiVersion: k8s.ovn.org/v1\nkind: EgressIP\nmetadata:\n  name: a\nspec:\n  egressIPs: [192.0.2.1]\n  \
             namespaceSelector: {{}}\n  {field}: {{}}\n"
        )
    };
    assert_eq!(complaints(&manifest("egressNodeSelector")), "");
    assert!(complaints(&manifest("egressNodeSelectors")).contains("egressNodeSelectors"));
}
