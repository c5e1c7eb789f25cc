//! The checks of EgressServices.

use egret_core::{EgressService, Endpoint, GatewayMode, Host, Node, NodeName, Reachability, Snapshot, SourceIpBy};

use super::{Check, Finding, State};

fn finding(check: Check, service: &EgressService, message: String) -> Finding {
    Finding::new(check, format_args!("egressservice/{}", service.key), message)
}

/// S3: an endpoint that is a pod's: inside the pod subnets, where any are known, and no node's own address.
fn is_pod(snapshot: &Snapshot, endpoint: &Endpoint) -> bool {
    let inside = snapshot.pod_networks().any(|net| net.contains(&endpoint.address.ip()));
    let own = |node: &Node| {
        node.host_addresses.contains(&endpoint.address) || node.primary_addresses.contains(&endpoint.address)
    };
    (inside || snapshot.pod_networks().next().is_none()) && !snapshot.nodes.values().any(own)
}

/// S1 to S3: why the service cannot have any host.
fn hostless(snapshot: &Snapshot, object: &EgressService) -> Option<&'static str> {
    let Some(service) = snapshot.services.get(&object.key) else { return Some("it has no Service (S1)") };
    if object.source_ip_by == SourceIpBy::Network {
        let shared = snapshot.nodes.values().any(|node| node.gateway_mode == Some(GatewayMode::Shared));
        return shared.then_some("a node is in shared gateway mode (S2)");
    }
    let pods = snapshot.endpoints.get(&object.key).into_iter().flatten();
    match (service.has_ingress, pods.filter(|endpoint| is_pod(snapshot, endpoint)).count()) {
        (false, _) => Some("its Service has no load-balancer address (S3)"),
        (true, 0) => Some("its Service has no pod endpoint (S3)"),
        (true, _) => None,
    }
}

/// S4: why `node` cannot keep the service.
fn unfit(snapshot: &Snapshot, object: &EgressService, node: &Node) -> Option<&'static str> {
    let options = &snapshot.options;
    let local = snapshot.services.get(&object.key).is_some_and(|service| service.traffic_policy_local);
    let serves = |endpoint: &Endpoint| {
        endpoint.serving && endpoint.node.as_ref() == Some(&node.name) && is_pod(snapshot, endpoint)
    };
    if options.no_host_subnet.as_ref().is_some_and(|ignored| ignored.matches(&node.labels)) {
        Some("it has no OVN host subnet (N1)")
    } else if node.drained || object.selector.compiled().is_some_and(|selector| !selector.matches(&node.labels)) {
        Some("its labels do not match the selector (N2)")
    } else if !node.ready || (options.cordon_excludes && node.cordoned) {
        Some("it is not ready (N4)")
    } else if node.reachability == Reachability::Unreachable {
        Some("it does not answer probes (N5)")
    } else if local && !snapshot.endpoints.get(&object.key).into_iter().flatten().any(serves) {
        Some("it has no serving pod endpoint (S4)")
    } else {
        None
    }
}

/// Why `host` is wrong for the service.
fn wrong(snapshot: &Snapshot, object: &EgressService, host: &Host) -> Option<String> {
    if *host == Host::None {
        return None;
    }
    if let Some(why) = hostless(snapshot, object) {
        return Some(why.to_owned());
    }
    match (object.source_ip_by, host) {
        (SourceIpBy::Network, Host::Node(_)) => Some("sourceIPBy: Network is hosted by ALL (S2)".to_owned()),
        (SourceIpBy::LoadBalancerIp, Host::All) => {
            Some("sourceIPBy: LoadBalancerIP is hosted by one node (S2)".to_owned())
        }
        (SourceIpBy::Network, _) | (_, Host::None) => None,
        (SourceIpBy::LoadBalancerIp, Host::Node(name)) => match snapshot.nodes.get(name) {
            None => Some("there is no such node".to_owned()),
            Some(node) => unfit(snapshot, object, node).map(str::to_owned),
        },
    }
}

/// Eligible host: whoever hosts a service can.
pub(super) fn eligible_host(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let wrong = state.hosts.iter().filter_map(|(key, host)| {
        let object = snapshot.egress_services.get(key)?;
        let why = wrong(snapshot, object, host)?;
        Some(finding(Check::EligibleHost, object, format!("the host is {host}, which cannot be: {why}")))
    });
    wrong.collect()
}

/// Host or reason: a service without a host has no node that could take it.
pub(super) fn host_or_reason(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let mut findings = Vec::new();
    for object in snapshot.egress_services.values() {
        let host = state.hosts.get(&object.key).unwrap_or(&Host::None);
        if *host != Host::None || hostless(snapshot, object).is_some() {
            continue;
        }
        let able = || {
            let compiled = object.selector.compiled().is_some();
            let electable = |node: &Node| node.reachability != Reachability::InDoubt;
            let fit = |node: &&Node| compiled && electable(node) && unfit(snapshot, object, node).is_none();
            snapshot.nodes.values().find(fit).map(|node| node.name.clone())
        };
        let able = if object.source_ip_by == SourceIpBy::Network { Some(NodeName::from("ALL")) } else { able() };
        if let Some(node) = able {
            findings.push(finding(Check::HostOrReason, object, format!("it has no host, and {node} could host it")));
        }
    }
    findings
}

/// No needless change: a host that was valid still hosts.
pub(super) fn no_needless_change(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let mut findings = Vec::new();
    for object in snapshot.egress_services.values() {
        let host = state.hosts.get(&object.key).unwrap_or(&Host::None);
        let valid = object.recorded != Host::None && wrong(snapshot, object, &object.recorded).is_none();
        if valid && *host != object.recorded {
            let message = format!("{} was a valid host and is not any more", object.recorded);
            findings.push(finding(Check::NoNeedlessMove, object, message));
        }
    }
    findings
}
