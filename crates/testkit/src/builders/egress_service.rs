//! EgressServices, their Services and endpoints.

use egret_core::{EgressService, Endpoint, Host, NodeSelector, Service, ServiceKey, SourceIpBy, Timestamp};

use super::{address, selector};

/// Builds an [`EgressService`] with its Service and endpoints.
#[derive(Clone, Debug)]
#[must_use]
pub struct EgressServiceBuilder {
    object: EgressService,
    service: Option<Service>,
    endpoints: Vec<Endpoint>,
}

/// The key of `namespace/name`.
#[must_use]
pub fn service_key(text: &str) -> ServiceKey {
    let (namespace, name) = text.split_once('/').expect("a namespace and a name");
    ServiceKey::new(namespace, name)
}

/// An EgressService `namespace/name` by load balancer address, for every node, with a Service that has an address and
/// no endpoints.
pub fn egress_service(text: &str) -> EgressServiceBuilder {
    EgressServiceBuilder {
        object: EgressService {
            key: service_key(text),
            created: Timestamp(0),
            source_ip_by: SourceIpBy::LoadBalancerIp,
            selector: NodeSelector::everything(),
            network: None,
            recorded: Host::None,
        },
        service: Some(Service { has_ingress: true, traffic_policy_local: false }),
        endpoints: Vec::new(),
    }
}

/// A serving endpoint, on a node or on none that is known.
#[must_use]
pub fn endpoint(text: &str, node: Option<&str>) -> Endpoint {
    Endpoint { address: address(text), node: node.map(Into::into), serving: true }
}

impl EgressServiceBuilder {
    /// With `sourceIPBy: Network`.
    pub fn by_network(mut self) -> Self {
        self.object.source_ip_by = SourceIpBy::Network;
        self
    }

    /// With a selector in kubectl's notation, see [`selector`].
    pub fn selector(mut self, text: &str) -> Self {
        self.object.selector = selector(text);
        self
    }

    /// Created in this second.
    pub fn created(mut self, second: i64) -> Self {
        self.object.created = Timestamp(second);
        self
    }

    /// With this `status.host`.
    pub fn recorded(mut self, host: &str) -> Self {
        self.object.recorded = host.into();
        self
    }

    /// With `externalTrafficPolicy: Local`.
    pub fn local(mut self) -> Self {
        self.service = self.service.map(|service| Service { traffic_policy_local: true, ..service });
        self
    }

    /// Without an address of the load balancer.
    pub fn without_ingress(mut self) -> Self {
        self.service = self.service.map(|service| Service { has_ingress: false, ..service });
        self
    }

    /// Without a Service of its name.
    pub fn without_service(mut self) -> Self {
        self.service = None;
        self
    }

    /// With a serving endpoint on a node.
    pub fn endpoint(mut self, text: &str, node: &str) -> Self {
        self.endpoints.push(endpoint(text, Some(node)));
        self
    }

    /// The object, its Service, its endpoints.
    #[must_use]
    pub fn build(self) -> (EgressService, Option<Service>, Vec<Endpoint>) {
        (self.object, self.service, self.endpoints)
    }
}
