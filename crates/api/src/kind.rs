//! The kinds of objects that decisions are made from, and the key of one object.

use std::fmt;

/// A kind that Egret reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1`
    Node,
    /// `k8s.ovn.org/v1`
    EgressIp,
    /// `k8s.ovn.org/v1`
    EgressService,
    /// `v1`
    Service,
    /// `discovery.k8s.io/v1`
    EndpointSlice,
    /// `cloud.network.openshift.io/v1`
    CloudPrivateIpConfig,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Node,
        Self::EgressIp,
        Self::EgressService,
        Self::Service,
        Self::EndpointSlice,
        Self::CloudPrivateIpConfig,
    ];

    /// The kind of an object with these `apiVersion` and `kind`, both to the letter.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.api_version() == api_version && known.name() == kind)
    }

    /// The kind that a person means: kind, plural or short name in any case, as kubectl takes them.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        Self::ALL.into_iter().find(|kind| {
            let singular = kind.as_str();
            text == singular || text.strip_suffix('s') == Some(singular) || kind.short() == Some(text.as_str())
        })
    }

    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Node | Self::Service => "v1",
            Self::EgressIp | Self::EgressService => "k8s.ovn.org/v1",
            Self::EndpointSlice => "discovery.k8s.io/v1",
            Self::CloudPrivateIpConfig => "cloud.network.openshift.io/v1",
        }
    }

    /// `kind` of its objects.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::EgressIp => "EgressIP",
            Self::EgressService => "EgressService",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::CloudPrivateIpConfig => "CloudPrivateIPConfig",
        }
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub fn namespaced(self) -> bool {
        matches!(self, Self::EgressService | Self::Service | Self::EndpointSlice)
    }

    /// The singular resource name, as `Display` gives it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::EgressIp => "egressip",
            Self::EgressService => "egressservice",
            Self::Service => "service",
            Self::EndpointSlice => "endpointslice",
            Self::CloudPrivateIpConfig => "cloudprivateipconfig",
        }
    }

    /// The plural resource name.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::EgressIp => "egressips",
            Self::EgressService => "egressservices",
            Self::Service => "services",
            Self::EndpointSlice => "endpointslices",
            Self::CloudPrivateIpConfig => "cloudprivateipconfigs",
        }
    }

    fn short(self) -> Option<&'static str> {
        match self {
            Self::Node => Some("no"),
            Self::EgressIp => Some("eip"),
            Self::Service => Some("svc"),
            Self::EgressService | Self::EndpointSlice | Self::CloudPrivateIpConfig => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which object: unique in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; `None` exactly if the kind has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object of a kind without namespaces.
    #[must_use]
    pub fn cluster(kind: Kind, name: &str) -> Self {
        Self { kind, namespace: None, name: name.to_owned() }
    }

    /// The key of an object of a namespaced kind.
    #[must_use]
    pub fn namespaced(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: Some(namespace.to_owned()), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}/{namespace}/{}", self.kind, self.name),
            None => write!(f, "{}/{}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_another_group_is_not_known() {
        assert_eq!(Kind::of("k8s.ovn.org/v1", "EgressIP"), Some(Kind::EgressIp));
        assert_eq!(Kind::of("serving.knative.dev/v1", "Service"), None);
        assert_eq!(Kind::of("v1", "EgressIP"), None);
        assert_eq!(Kind::of("k8s.ovn.org/v1", "egressip"), None);
    }

    #[test]
    fn people_may_write_what_kubectl_takes() {
        for (texts, kind) in [
            (&["no", "node", "Nodes"][..], Kind::Node),
            (&["eip", "EgressIP", "egressips"], Kind::EgressIp),
            (&["egressservice", "EgressServices"], Kind::EgressService),
            (&["svc", "Service", "services"], Kind::Service),
            (&["endpointslice", "EndpointSlices"], Kind::EndpointSlice),
            (&["cloudprivateipconfig", "CloudPrivateIPConfigs"], Kind::CloudPrivateIpConfig),
        ] {
            for text in texts {
                assert_eq!(Kind::parse(text), Some(kind), "{text}");
            }
        }
        for text in ["", "s", "pod", "nodess", "eips"] {
            assert_eq!(Kind::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_reads_like_kubectls_output() {
        assert_eq!(ObjectKey::cluster(Kind::EgressIp, "foo").to_string(), "egressip/foo");
        assert_eq!(ObjectKey::namespaced(Kind::EgressService, "ns", "name").to_string(), "egressservice/ns/name");
    }
}
