//! `egress-service.k8s.ovn.org/<namespace>-<service>`, a label on the node that hosts an EgressService

use egret_core::ServiceKey;

/// What the label's key begins with; its value is empty.
pub const PREFIX: &str = "egress-service.k8s.ovn.org/";

/// The label's key. It does not tell where the namespace ends, so there is no way back.
#[must_use]
pub fn label(service: &ServiceKey) -> String {
    format!("{PREFIX}{}-{}", service.namespace, service.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_names_namespace_and_service() {
        assert_eq!(label(&ServiceKey::new("testns", "svc1")), "egress-service.k8s.ovn.org/testns-svc1");
    }
}
