//! Flows and wires.

use std::time::{Duration, Instant};

use egret_netlab::{
    Family, FlowKind, Lab, Network, PORT, Packet, Profile, Protocol, Transport, alone, difference, test_name, until,
};

const SOON: Duration = Duration::from_secs(5);

/// The example of `docs/architecture.md`.
#[test]
fn a_pod_leaves_with_the_address_of_its_node() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).blue(&[1]).profile(Profile::Restricted).build()?;
        let pod = lab.add_pod("n1", "web")?;
        let wire = lab.wire(Network::Red)?;
        let before = lab.node("n1").dump()?;
        let flow = pod.flow(FlowKind::Udp, Family::V6.destination(), PORT, 50);
        assert_eq!(pod.tcp(Family::V4.destination(), PORT), "ext saw 192.168.50.11");
        assert!(flow.answers(10, Duration::from_secs(5)));
        let nodes = |packet: &Packet| packet.source != pod.address(Family::of(packet.source));
        assert!(wire.wrong(nodes).is_empty() && wire.lost() == 0);
        assert_eq!(difference(&before, &lab.node("n1").dump()?), "");
        Ok(())
    });
}

#[test]
fn the_wire_sees_what_was_sent_and_only_where_it_was() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).blue(&[1]).build()?;
        let pod = lab.add_pod("n1", "pod")?;
        let (red, blue) = (lab.wire(Network::Red)?, lab.wire(Network::Blue)?);
        for family in Family::BOTH {
            for transport in Transport::ALL {
                assert!(pod.ask(transport, family.destination(), PORT, egret_netlab::PATIENCE).is_answer());
            }
            let (node, to) = (lab.node("n1").address(family), family.destination());
            for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Icmp] {
                assert!(
                    until(SOON, || red.has(|packet| {
                        let ends = packet.source == node && packet.destination == to && packet.from == "n1";
                        ends && packet.protocol == protocol && packet.client.as_deref() == Some("pod")
                    })),
                    "{protocol:?}: {:#?}",
                    red.seen()
                );
            }
        }
        let nodes = Family::BOTH.map(|family| lab.node("n1").address(family));
        let destinations = Family::BOTH.map(Family::destination);
        assert!(red.wrong(|packet| nodes.contains(&packet.source) || destinations.contains(&packet.source)).is_empty());
        let wrong = red.wrong(|packet| !nodes.contains(&packet.source));
        assert!(!wrong.is_empty() && wrong.iter().all(|seen| nodes.contains(&seen.packet.source)), "{wrong:?}");
        assert!(red.wrong_since(Instant::now(), |_| false).is_empty());
        assert!(blue.wrong(|_| false).is_empty(), "{:?}", blue.seen());
        // A pod that sends by the other network is seen there at once.
        lab.node("n1").nft("flush chain ip cni postrouting")?;
        let there = lab.outside(Network::Blue).address(Family::V4);
        assert!(!pod.udp(there, PORT).is_answer());
        assert!(until(SOON, || !blue.wrong(|packet| packet.source != pod.address(Family::V4)).is_empty()));
        assert_eq!(red.lost() + blue.lost(), 0);
        Ok(())
    });
}

#[test]
fn a_flow_sees_that_its_source_changes() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().build()?;
        let (pod, node) = (lab.add_pod("n1", "pod")?, lab.node("n1"));
        for family in Family::BOTH {
            let (own, other) =
                (node.address(family), if family == Family::V4 { "192.168.50.99" } else { "fd00:50::99" });
            let (nft, other) = (if family == Family::V4 { "ip" } else { "ip6" }, other.parse()?);
            let flow = pod.flow(FlowKind::UdpEach, family.destination(), PORT, 100);
            assert!(flow.source_becomes(own, SOON));
            node.ip([&*format!(
                "addr add {other} dev eth0{}",
                if family == Family::V6 { " nodad preferred_lft 0" } else { "" }
            )])?;
            node.nft(&format!(
                "table {nft} first {{\n chain post {{\n type nat hook postrouting priority 90;\n oifname eth0 snat to {other}\n }}\n}}\n"
            ))?;
            assert!(flow.source_becomes(other, SOON), "{:?}", flow.report());
            node.run(["nft", "delete", "table", nft, "first"])?;
            assert!(flow.source_becomes(own, SOON), "{:?}", flow.report());
            let report = flow.stop();
            assert_eq!(report.sources(), [own, other, own], "{report:?}");
        }
        Ok(())
    });
}

#[test]
fn every_kind_of_flow_counts_answers_losses_and_gaps() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().build()?;
        let (pod, node) = (lab.add_pod("n1", "pod")?, lab.node("n1"));
        for kind in [FlowKind::Udp, FlowKind::Tcp, FlowKind::UdpEach, FlowKind::TcpEach] {
            let flow = pod.flow(kind, Family::V6.destination(), PORT, 100);
            assert!(flow.answers(20, SOON), "{kind:?}: {:?}", flow.report());
            let before = flow.report();
            node.nft(
                "table inet cut {\n chain forward {\n type filter hook forward priority 0; policy drop;\n }\n}\n",
            )?;
            assert!(!flow.answers(5, Duration::from_millis(300)), "{kind:?}");
            node.run(["nft", "delete", "table", "inet", "cut"])?;
            assert!(flow.answers(20, SOON), "{kind:?}: {:?}", flow.report());
            let report = flow.stop();
            assert!(report.longest_gap >= Duration::from_millis(250), "{kind:?}: {report:?}");
            assert_eq!(report.sources(), [node.address(Family::V6)], "{kind:?}");
            assert!(before.longest_gap < Duration::from_millis(250), "{kind:?}: {before:?}");
            match kind {
                // TCP asks again until it is heard.
                FlowKind::Tcp => assert_eq!(report.unanswered(), 0, "{report:?}"),
                FlowKind::TcpEach => {}
                FlowKind::Udp | FlowKind::UdpEach => assert!((15..60).contains(&report.unanswered()), "{report:?}"),
            }
        }
        Ok(())
    });
}

#[test]
fn a_wire_keeps_up_with_200_pods_at_50_packets_a_second() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(3).build()?;
        let names: Vec<(String, String)> =
            (0..200).map(|it| (format!("n{}", it % 3 + 1), format!("pod{it}"))).collect();
        let pods = lab.add_pods(&names)?;
        let wire = lab.wire(Network::Red)?;
        let start = Instant::now();
        let flows: Vec<_> =
            pods.iter().map(|pod| pod.flow(FlowKind::Udp, Family::V4.destination(), PORT, 50)).collect();
        let answered = || flows.iter().all(|flow| flow.report().answered >= 250);
        assert!(until(Duration::from_secs(30), answered));
        let took = start.elapsed();
        let reports: Vec<_> = flows.into_iter().map(egret_netlab::Flow::stop).collect();
        let asked: u64 = reports.iter().map(|report| report.asked).sum();
        let unanswered: u64 = reports.iter().map(egret_netlab::Report::unanswered).sum();
        println!("{asked} questions in {took:?}, {unanswered} without an answer, {} packets seen", wire.packets());
        let seen = || -> u64 {
            let seen = wire.seen();
            let questions = seen.iter().filter(|seen| seen.packet.destination == Family::V4.destination());
            questions.map(|seen| seen.count).sum()
        };
        assert!(until(SOON, || seen() >= asked), "{} of {asked}, {} lost", seen(), wire.lost());
        assert_eq!(wire.lost(), 0);
        Ok(())
    });
}
