//! Who reaches whom, and with which source.

use std::net::IpAddr;

use egret_netlab::{
    Alone, Family, Host, Lab, Network, Outcome, PORT, Policy, Profile, Service, Transport, alone, test_name,
};

const EXTERNAL: [&str; 2] = ["192.168.70.10", "fd00:70::10"];
const CLUSTER: [&str; 2] = ["10.96.0.10", "fd00:10:96::a"];

fn parse(addresses: [&str; 2]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

fn in_every_way(client: &Host, to: IpAddr, expected: &str) {
    for transport in Transport::ALL {
        let reply = client.ask(transport, to, PORT, egret_netlab::PATIENCE);
        assert_eq!(reply, expected, "{} to {to} by {transport:?}", client.name());
    }
}

/// Everything that holds in every lab, whatever its nodes start from.
fn plain_traffic(lab: &Lab) {
    let [a, b, c] = [("n1", "a"), ("n1", "b"), ("n2", "c")].map(|(node, pod)| lab.add_pod(node, pod).unwrap());
    let [n1, n2] = ["n1", "n2"].map(|node| lab.node(node));
    for family in Family::BOTH {
        let of = |host: &Host| host.address(family);
        in_every_way(&a, of(&b), &format!("b saw {}", of(&a)));
        in_every_way(&a, of(&c), &format!("c saw {}", of(&a)));
        in_every_way(&a, of(&n2), &format!("n2 saw {}", of(&a)));
        in_every_way(&n1, of(&n2), &format!("n2 saw {}", of(&n1)));
        // Of the two servers that have the address, that of the primary network.
        in_every_way(&a, family.destination(), &format!("ext saw {}", of(&n1)));
        in_every_way(&c, family.destination(), &format!("ext saw {}", of(&n2)));
    }
}

#[test]
fn pods_reach_pods_nodes_and_the_outside_with_the_source_that_they_should_have() {
    alone(test_name!(), &[], || {
        plain_traffic(&Lab::builder().nodes(2).build()?);
        Ok(())
    });
}

#[test]
fn they_do_so_where_only_what_a_cni_needs_is_forwarded() {
    alone(test_name!(), &[], || {
        plain_traffic(&Lab::builder().nodes(2).profile(Profile::Restricted).build()?);
        Ok(())
    });
}

#[test]
fn pods_behind_ovn_do_as_well() {
    alone(test_name!(), &[], || {
        plain_traffic(&Lab::builder().nodes(2).ovn().build()?);
        Ok(())
    });
}

#[test]
fn anybody_can_build_a_lab() {
    Alone::new(test_name!()).rootless().run(|| {
        plain_traffic(&Lab::builder().nodes(2).build()?);
        Ok(())
    });
}

fn service(lab: &Lab, policy: Policy, pods: &[&str]) -> Outcome {
    let service = Service {
        name: "web".to_owned(),
        external: parse(EXTERNAL),
        cluster: parse(CLUSTER),
        port: 80,
        node_port: 30080,
        pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
        policy,
    };
    for address in &service.external {
        lab.route(*address, "n1")?;
    }
    Ok(lab.service(service)?)
}

/// A service with an endpoint on n2, reached by n1 from outside and from a pod.
fn a_service(lab: &Lab, outside_sees: impl Fn(Family) -> IpAddr) -> Outcome {
    let client = lab.add_pod("n1", "client")?;
    lab.add_pod("n2", "server")?;
    service(lab, Policy::Cluster, &["server"])?;
    let ext = lab.outside(Network::Red);
    for (index, family) in Family::BOTH.into_iter().enumerate() {
        let (external, cluster) = (parse(EXTERNAL)[index], parse(CLUSTER)[index]);
        for ask in [Host::tcp, Host::udp] {
            assert_eq!(ask(&ext, external, 80), format!("server saw {}", outside_sees(family)));
            assert_eq!(ask(&client, cluster, 80), format!("server saw {}", client.address(family)));
        }
    }
    lab.remove_service("web")?;
    assert!(!ext.tcp(parse(EXTERNAL)[0], 80).is_answer());
    Ok(())
}

#[test]
fn a_service_is_reached_from_outside_through_the_node_with_its_address() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).build()?;
        // That of n1 on its way to n2: masqueraded, as the policy Cluster is.
        a_service(&lab, |family| lab.node("n1").address(family))
    });
}

#[test]
fn a_service_is_reached_from_outside_through_the_cluster_ip_and_ovn() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).ovn().build()?;
        a_service(
            &lab,
            |family| if family == Family::V4 { [100, 88, 0, 1].into() } else { "fd00:100:88::1".parse().unwrap() },
        )
    });
}

#[test]
fn a_local_service_keeps_the_source_and_has_only_endpoints_of_the_node() {
    alone(test_name!(), &[], || {
        for lab in [Lab::builder().nodes(2), Lab::builder().nodes(2).ovn()] {
            let lab = lab.build()?;
            lab.add_pods(&[("n1", "here"), ("n2", "there")])?;
            service(&lab, Policy::Local, &["here", "there"])?;
            let ext = lab.outside(Network::Red);
            for (external, family) in parse(EXTERNAL).into_iter().zip(Family::BOTH) {
                for _ in 0..8 {
                    assert_eq!(ext.tcp(external, 80), format!("here saw {}", ext.address(family)));
                }
            }
            service(&lab, Policy::Local, &["there"])?;
            assert!(!ext.tcp(parse(EXTERNAL)[0], 80).is_answer());
        }
        Ok(())
    });
}

#[test]
fn blue_has_the_same_destination_and_a_pod_gets_there_only_by_a_rule() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).blue(&[1]).build()?;
        let pod = lab.add_pod("n1", "pod")?;
        let node = lab.node("n1");
        for family in Family::BOTH {
            assert_eq!(pod.tcp(family.destination(), PORT).server(), Some("ext"));
            let blue = lab.outside(Network::Blue).address(family);
            assert_eq!(pod.tcp(blue, PORT), format!("blue saw {}", lab.node_address("n1", Network::Blue, family)));
            let option = if family == Family::V4 { "-4" } else { "-6" };
            let (from, via) = (pod.address(family).to_string(), blue.to_string());
            node.run(["ip", option, "route", "add", "default", "via", &via, "dev", "eth1", "table", "1234"])?;
            node.run(["ip", option, "rule", "add", "pref", "5000", "from", &from, "lookup", "1234"])?;
            assert_eq!(pod.tcp(family.destination(), PORT).server(), Some("blue"));
        }
        Ok(())
    });
}

#[test]
fn ovn_lets_a_rerouted_pod_out_by_the_other_node() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).ovn().build()?;
        let pod = lab.add_pod("n1", "pod")?;
        let other = lab.add_pod("n1", "other")?;
        lab.reroute("pod", "n2")?;
        let wire = lab.wire(Network::Red)?;
        for family in Family::BOTH {
            // Nobody gives it a source outside: that is for who reroutes it.
            let left = |from: &str| {
                let (own, from) = (pod.address(family), from.to_owned());
                wire.has(move |packet| packet.source == own && packet.from == from)
            };
            assert!(!pod.udp(family.destination(), PORT).is_answer());
            assert!(left("n2") && !left("n1"), "{:?}", wire.seen());
            assert_eq!(pod.tcp(other.address(family), PORT).server(), Some("other"));
        }
        lab.unreroute("pod")?;
        for family in Family::BOTH {
            assert_eq!(pod.tcp(family.destination(), PORT).source(), Some(lab.node("n1").address(family)));
        }
        Ok(())
    });
}

#[test]
fn why_nobody_answers_is_told() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().build()?;
        let pod = lab.add_pod("n1", "pod")?;
        for family in Family::BOTH {
            let to = family.destination();
            for ask in [Host::tcp, Host::udp] {
                assert_eq!(ask(&pod, to, 9), "no answer: refused");
            }
            lab.node("n1").nft(&format!(
                "table inet cut {{ chain forward {{ type filter hook forward priority 0; {} daddr {to} drop; }}\n}}",
                if family == Family::V4 { "ip" } else { "ip6" }
            ))?;
            in_every_way(&pod, to, "no answer: timed out");
            lab.node("n1").run(["nft", "delete", "table", "inet", "cut"])?;
            assert!(pod.tcp(to, PORT).is_answer());
            lab.node("n1").ip([&*format!("route add unreachable {to}")])?;
            // Who passes it on says so to the pod, whose TCP and UDP take that for a passing trouble.
            assert!(Transport::ALL.iter().all(|by| !pod.ask(*by, to, PORT, egret_netlab::PATIENCE).is_answer()));
            in_every_way(&lab.node("n1"), to, "no answer: unreachable");
        }
        Ok(())
    });
}

#[test]
fn who_is_cut_off_is_silent_until_that_is_mended() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).build()?;
        let (n1, to) = (lab.node("n1"), lab.node("n2").address(Family::V4));
        lab.cut("n2", Network::Red)?;
        assert!(!n1.udp(to, PORT).is_answer());
        lab.mend("n2", Network::Red)?;
        assert!(egret_netlab::until(std::time::Duration::from_secs(5), || n1.udp(to, PORT).is_answer()));
        Ok(())
    });
}
