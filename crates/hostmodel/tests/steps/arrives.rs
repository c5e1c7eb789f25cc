//! Where packets go once a policy is whole.

use egret_core::{Host, SourceIpBy, Timestamp};
use egret_hostmodel::{
    AddressExit, Datapath, Finding, Key, NetworkFault, Owner, Policy, Report, ServiceExit, State, Transport, wanted,
};

use crate::model::{Kernel, Outcome, Seen};
use crate::policies::{OUTSIDE, PODS, ip, node, nothing, of_family, service};

struct Arrived {
    kernel: Kernel,
    reports: Vec<Report>,
}

fn arrive(policy: &Policy) -> Arrived {
    let surroundings = node();
    let wanted = wanted(policy, &surroundings, &State::default());
    let mut kernel = Kernel::new(&surroundings, policy.settings);
    kernel.put(wanted.state);
    Arrived { kernel, reports: wanted.reports }
}

fn with(services: Vec<ServiceExit>, addresses: Vec<AddressExit>) -> Policy {
    Policy { services, addresses, ..nothing(Datapath::Direct) }
}

impl Arrived {
    fn sent(&mut self, pod: &str) -> Outcome {
        let source = ip(pod);
        self.kernel.open(source, of_family(OUTSIDE, source))
    }

    fn reply(&self, source: &str, port: u16, address: &str) -> Option<String> {
        let entry = Key::Entry(ip(address), Transport::Tcp, port);
        self.kernel.reply(ip(source), 8080, &entry, of_family(OUTSIDE, ip(source)))
    }

    fn told(&self, owner: &Owner) -> Vec<&Finding> {
        self.reports.iter().filter(|report| report.about == *owner).map(|report| &report.finding).collect()
    }
}

fn leaves(link: &str, seen: Option<&str>) -> Outcome {
    Outcome::Leaves { link: link.to_owned(), seen: seen.map_or(Seen::Masqueraded, |seen| Seen::As(ip(seen))) }
}

fn owner(name: &str) -> Owner {
    Owner::Service(egret_core::ServiceKey::new("default", name))
}

fn address(ip_text: &str, pods: &[&str]) -> AddressExit {
    AddressExit {
        name: "eip".into(),
        created: Timestamp(0),
        ip: ip(ip_text),
        node: "n1".into(),
        pods: pods.iter().map(|pod| (ip(pod), format!("ns/{pod}"))).collect(),
    }
}

#[test]
fn endpoints_leave_by_the_network_with_the_load_balancers_address() {
    let mut arrived = arrive(&with(vec![service("web", &PODS)], Vec::new()));
    for pod in PODS {
        let seen = if ip(pod).is_ipv6() { "fd00:70::10" } else { "192.168.70.10" };
        assert_eq!(arrived.sent(pod), leaves("eth1", Some(seen)));
    }
    assert_eq!(arrived.told(&owner("web")), [&Finding::Active { sources: 6 }]);
}

#[test]
fn without_a_network_only_the_source_changes() {
    let web = ServiceExit { network: None, ..service("web", &PODS[..1]) };
    let mut arrived = arrive(&with(vec![web], Vec::new()));
    assert_eq!(arrived.sent(PODS[0]), leaves("eth0", Some("192.168.70.10")));
    assert!(arrived.kernel.state.rules.is_empty(), "an empty network makes no rules");
}

#[test]
fn by_network_the_source_is_the_networks_and_only_local_endpoints_count() {
    let web = ServiceExit { source_ip_by: SourceIpBy::Network, host: Host::All, ..service("web", &PODS) };
    let mut arrived = arrive(&with(vec![web], Vec::new()));
    assert_eq!(arrived.sent(PODS[0]), leaves("eth1", None));
    assert_eq!(arrived.sent("10.244.2.21"), leaves("eth0", None), "its own node does it");
}

#[test]
fn a_node_without_endpoints_serves_replies_unless_the_policy_is_local() {
    for (local_policy, by) in [(false, "eth1"), (true, "eth0")] {
        let web = ServiceExit {
            source_ip_by: SourceIpBy::Network,
            host: Host::All,
            local_policy,
            ..service("web", &["10.244.2.21"])
        };
        let arrived = arrive(&with(vec![web], Vec::new()));
        assert_eq!(arrived.reply("10.244.2.21", 80, "192.168.70.10").as_deref(), Some(by));
        assert_eq!(arrived.kernel.state == State::default(), local_policy);
    }
}

#[test]
fn replies_of_the_load_balancers_connections_take_the_network_and_others_do_not() {
    let arrived = arrive(&with(vec![service("web", &["10.244.2.21"])], Vec::new()));
    assert_eq!(arrived.reply("10.244.2.21", 80, "192.168.70.10").as_deref(), Some("eth1"));
    assert_eq!(arrived.reply("10.244.2.21", 81, "192.168.70.10").as_deref(), Some("eth0"), "another service's port");
    assert_eq!(arrived.reply("10.244.2.21", 80, "192.168.50.11").as_deref(), Some("eth0"), "a node port");
}

#[test]
fn through_the_cluster_ip_its_rule_chooses_the_way_of_replies() {
    let policy = Policy { services: vec![service("web", &PODS[..1])], ..nothing(Datapath::Ovn) };
    let mut arrived = arrive(&policy);
    assert_eq!(arrived.reply("10.96.0.10", 80, "192.168.70.10").as_deref(), Some("eth1"));
    let mut state = arrived.kernel.state.clone();
    state.rules.retain(|rule| rule.from != Some("10.96.0.10/32".parse().unwrap()));
    arrived.kernel.put(state);
    assert_eq!(arrived.reply("10.96.0.10", 80, "192.168.70.10"), None, "without it there is none");
}

#[test]
fn a_local_policy_has_its_node_ports_rule_with_ovn() {
    let policy = |local_policy| {
        let web = ServiceExit { local_policy, ..service("web", &PODS[..1]) };
        Policy { services: vec![web], ..nothing(Datapath::Ovn) }
    };
    let ports = |policy: &Policy| {
        let arrived = arrive(policy);
        let rules = arrived.kernel.state.rules.iter().filter(|rule| rule.source_port.is_some());
        rules.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(ports(&policy(false)), Vec::<String>::new());
    assert_eq!(
        ports(&policy(true)),
        [
            "priority 5000 from 169.254.169.3/32 sport 30080 lookup 1234",
            "priority 5000 from fd69::3/128 sport 30080 lookup 1234",
        ]
    );
}

#[test]
fn what_another_node_has_stays_in_unless_ovn_leads_there() {
    let elsewhere = || ServiceExit { host: Host::Node("n2".into()), ..service("web", &PODS[..1]) };
    let mut arrived = arrive(&with(vec![elsewhere()], Vec::new()));
    assert_eq!(arrived.sent(PODS[0]), Outcome::Dropped);
    assert_eq!(arrived.told(&owner("web")), [&Finding::Elsewhere { host: Some("n2".to_owned()), refused: 1 }]);
    let ovn = arrive(&Policy { services: vec![elsewhere()], ..nothing(Datapath::Ovn) });
    assert_eq!(ovn.kernel.state, State::default());
}

#[test]
fn a_network_that_is_not_there_leads_nowhere() {
    let web = ServiceExit { network: Some("nowhere".to_owned()), ..service("web", &PODS[..1]) };
    let mut arrived = arrive(&with(vec![web], Vec::new()));
    assert_eq!(arrived.sent(PODS[0]), Outcome::Dropped);
    assert_eq!(arrived.reply(PODS[0], 80, "192.168.70.10"), None);
    let missing = Finding::Network { fault: NetworkFault::Missing { name: "nowhere".to_owned() } };
    assert!(arrived.told(&owner("web")).contains(&&missing));
}

#[test]
fn a_network_without_a_route_of_the_family_leads_nowhere() {
    let mut surroundings = node();
    surroundings.routes.retain(|route| route.table != 1234 || route.destination.addr().is_ipv4());
    let policy = with(vec![service("web", &[PODS[0], PODS[4]])], Vec::new());
    let wanted = wanted(&policy, &surroundings, &State::default());
    let mut kernel = Kernel::new(&surroundings, policy.settings);
    kernel.put(wanted.state);
    assert_eq!(kernel.open(ip(PODS[0]), ip(OUTSIDE[0])), leaves("eth1", Some("192.168.70.10")));
    assert_eq!(kernel.open(ip(PODS[4]), ip(OUTSIDE[1])), Outcome::Dropped);
    let told = Finding::NoRoute { network: "1234".to_owned(), family: "IPv6".to_owned() };
    assert!(wanted.reports.iter().any(|report| report.finding == told));
}

#[test]
fn a_plain_interface_gets_a_table_with_its_routes() {
    let web = ServiceExit { network: Some("eth2".to_owned()), ..service("web", &PODS[..1]) };
    let mut arrived = arrive(&with(vec![web], Vec::new()));
    assert_eq!(arrived.sent(PODS[0]), leaves("eth2", Some("192.168.70.10")));
    let routes: Vec<String> = arrived.kernel.state.routes.iter().map(ToString::to_string).collect();
    assert_eq!(
        routes,
        [
            "default via 192.168.70.200 dev eth2 table 680007 metric 100 proto 68",
            "192.168.70.0/24 dev eth2 table 680007 metric 0 proto 68",
            "fd00:70::/64 dev eth2 table 680007 metric 256 proto 68",
        ]
    );
}

#[test]
fn of_two_services_the_older_has_a_shared_endpoint_and_each_has_its_replies() {
    let older = ServiceExit { created: Timestamp(1), ..service("older", &PODS[..2]) };
    let younger = ServiceExit {
        created: Timestamp(2),
        network: Some("eth2".to_owned()),
        load_balancer: vec![ip("192.168.70.11")],
        ..service("younger", &PODS[1..3])
    };
    let mut arrived = arrive(&with(vec![younger.clone(), older], Vec::new()));
    assert_eq!(arrived.sent(PODS[1]), leaves("eth1", Some("192.168.70.10")));
    assert_eq!(arrived.sent(PODS[2]), leaves("eth2", Some("192.168.70.11")));
    assert_eq!(arrived.reply(PODS[1], 80, "192.168.70.11").as_deref(), Some("eth2"), "rule D2 is not about replies");
    assert_eq!(arrived.reply(PODS[1], 80, "192.168.70.10").as_deref(), Some("eth1"));
    let standby = Finding::Standby { winner: owner("older"), sources: 1 };
    assert!(arrived.told(&owner("younger")).contains(&&standby));

    let mut promoted = arrive(&with(vec![younger], Vec::new()));
    assert_eq!(promoted.sent(PODS[1]), leaves("eth2", Some("192.168.70.11")));
}

#[test]
fn a_service_comes_before_an_egress_ip() {
    let eip = address("192.168.70.50", &PODS[..2]);
    let mut arrived = arrive(&with(vec![service("web", &PODS[..1])], vec![eip.clone()]));
    assert_eq!(arrived.sent(PODS[0]), leaves("eth1", Some("192.168.70.10")), "rule D1");
    assert_eq!(arrived.sent(PODS[1]), leaves("eth2", Some("192.168.70.50")));
    let standby = Finding::Standby { winner: owner("web"), sources: 1 };
    assert!(arrived.told(&Owner::Address("eip".into())).contains(&&standby));
    let mut promoted = arrive(&with(Vec::new(), vec![eip]));
    assert_eq!(promoted.sent(PODS[0]), leaves("eth2", Some("192.168.70.50")));
}

#[test]
fn an_egress_ip_without_a_link_or_contested_keeps_its_pods_in() {
    let mut nowhere = arrive(&with(Vec::new(), vec![address("203.0.113.9", &PODS[..1])]));
    assert_eq!(nowhere.sent(PODS[0]), Outcome::Dropped);
    let contested = Policy {
        contested: [ip("192.168.70.50")].into(),
        ..with(Vec::new(), vec![address("192.168.70.50", &PODS[..1])])
    };
    let mut contested = arrive(&contested);
    assert_eq!(contested.sent(PODS[0]), Outcome::Dropped);
    assert!(contested.kernel.state.addresses.is_empty());
}

#[test]
fn an_egress_ip_that_another_node_has_keeps_its_pods_in_and_says_so_where_nothing_leads_there() {
    for (datapath, said) in [(Datapath::Direct, 1), (Datapath::Ovn, 0)] {
        let elsewhere = AddressExit { node: "n2".into(), ..address("192.168.70.50", &PODS[..2]) };
        let mut arrived = arrive(&Policy { datapath, ..with(Vec::new(), vec![elsewhere]) });
        assert_eq!(arrived.sent(PODS[0]), Outcome::Dropped, "it would leave as the node");
        assert!(arrived.kernel.state.addresses.is_empty());
        let told = Finding::Elsewhere { host: Some("n2".to_owned()), refused: 2 };
        assert_eq!(arrived.told(&Owner::Address("eip".into())), vec![&told; said]);
    }
}

#[test]
fn what_ovnkube_node_does_is_left_to_it() {
    let policy = Policy {
        others: egret_hostmodel::Others { services: true, addresses: true },
        ..with(vec![service("web", &PODS)], vec![address("192.168.70.50", &PODS)])
    };
    let arrived = arrive(&policy);
    assert_eq!(arrived.kernel.state, State::default());
    assert!(arrived.reports.iter().all(|report| report.finding == Finding::LeftToOvn));
}

#[test]
fn only_strict_filters_are_loosened() {
    let networks = [("1234", &["net/ipv4/conf/eth1/rp_filter"][..]), ("eth2", &["net/ipv4/conf/eth2/rp_filter"][..])];
    for (network, expected) in networks {
        let web = ServiceExit { network: Some(network.to_owned()), ..service("web", &PODS[..1]) };
        let arrived = arrive(&with(vec![web], Vec::new()));
        let set: Vec<&str> = arrived.kernel.state.sysctls.keys().map(String::as_str).collect();
        assert_eq!(set, expected);
    }
}
