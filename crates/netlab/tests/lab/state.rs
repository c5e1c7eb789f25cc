//! What the kernel holds, and what the lab leaves behind.

use std::process::Command;
use std::time::{Duration, Instant};

use egret_netlab::{Alone, Family, Lab, Need, Outcome, PORT, Profile, alone, difference, test_name, until};

#[test]
fn a_dump_is_the_same_while_nothing_changes() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).blue(&[1]).build()?;
        let pod = lab.add_pod("n1", "pod")?;
        let before = lab.node("n1").dump()?;
        for family in Family::BOTH {
            assert!(pod.tcp(family.destination(), PORT).is_answer());
        }
        // Neighbours were met and counters have counted.
        assert_eq!(difference(&before, &lab.node("n1").dump()?), "");
        Ok(())
    });
}

#[test]
fn a_dump_sees_what_is_changed_and_that_it_is_changed_back() {
    let changes: &[(&str, &str, &str)] = &[
        (
            "sysctl -w net.ipv4.conf.eth0.rp_filter=2",
            "sysctl -w net.ipv4.conf.eth0.rp_filter=0",
            "sysctl ipv4/conf/eth0",
        ),
        (
            "sysctl -w net.ipv4.conf.all.src_valid_mark=1",
            "sysctl -w net.ipv4.conf.all.src_valid_mark=0",
            "src_valid_mark 1",
        ),
        (
            "ip rule add pref 5000 from 10.0.0.1 lookup 7",
            "ip rule del pref 5000",
            "+ rule4 5000: from 10.0.0.1 lookup 7",
        ),
        ("ip -6 rule add pref 5000 from fd00::1 lookup 7", "ip -6 rule del pref 5000", "+ rule6 5000:"),
        ("ip route add default via 192.168.50.200 table 7", "ip route flush table 7", "+ route4 unicast default via"),
        ("ip -6 route add unreachable default table 7", "ip -6 route flush table 7", "+ route6 unreachable default"),
        ("ip addr add 192.0.2.1/32 dev eth0", "ip addr del 192.0.2.1/32 dev eth0", "+ address eth0"),
        ("ip link set eth0 mtu 1400", "ip link set eth0 mtu 1500", "mtu 1400"),
        ("ip link add extra type veth", "ip link del extra", "+ link extra"),
        ("nft add rule ip cni postrouting counter", "nft flush chain ip cni extra", "postrouting: counter"),
        (
            "nft add element ip cni cluster { 192.0.2.0/24 }",
            "nft delete element ip cni cluster { 192.0.2.0/24 }",
            "elements",
        ),
        ("nft add table inet egret", "nft delete table inet egret", "+ nft table inet egret"),
    ];
    alone(test_name!(), &[], || {
        let lab = Lab::builder().build()?;
        let node = lab.node("n1");
        node.nft("add chain ip cni extra")?;
        for (change, back, expected) in changes {
            let before = node.dump()?;
            node.run(change.split(' ').collect::<Vec<_>>())?;
            let told = difference(&before, &node.dump()?);
            assert!(told.contains(expected), "{change}: {told}");
            node.run(back.split(' ').collect::<Vec<_>>())?;
            if !back.contains("extra") || change.contains("link") {
                assert_eq!(difference(&before, &node.dump()?), "", "{back}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_restricted_node_forwards_only_from_where_a_cni_needs_it_and_filters_everywhere() {
    alone(test_name!(), &[], || {
        for profile in Profile::BOTH {
            let lab = Lab::builder().blue(&[1]).profile(profile).build()?;
            lab.add_pod("n1", "pod")?;
            let node = lab.node("n1");
            let [stock, restricted] = [["1", "1", "1", "1", "0", "0"], ["0", "1", "0", "1", "1", "1"]];
            let names = [
                "ipv4/ip_forward",
                "ipv4/conf/eth0/forwarding",
                "ipv4/conf/eth1/forwarding",
                "ipv4/conf/v-11/forwarding",
                "ipv4/conf/all/rp_filter",
                "ipv4/conf/eth1/rp_filter",
            ];
            let expected = if profile == Profile::Stock { stock } else { restricted };
            for (name, expected) in names.into_iter().zip(expected) {
                assert_eq!(node.sysctl(name)?, expected, "{profile:?}: {name}");
            }
            assert_eq!(node.sysctl("ipv6/conf/all/forwarding")?, "1", "{profile:?}");
        }
        Ok(())
    });
}

#[test]
fn a_removed_pod_leaves_nothing_on_its_node() {
    alone(test_name!(), &[], || {
        removed(&Lab::builder().build()?)?;
        removed(&Lab::builder().ovn().build()?)
    });
}

fn removed(lab: &Lab) -> Outcome {
    let gateway = lab.gateway("n1");
    let before = gateway.dump()?;
    lab.add_pod("n1", "pod")?;
    assert_ne!(difference(&before, &gateway.dump()?), "");
    lab.remove_pod("pod")?;
    assert_eq!(difference(&before, &gateway.dump()?), "");
    // And the name can be had again.
    let pod = lab.add_pod("n1", "pod")?;
    assert!(pod.tcp(Family::V6.destination(), PORT).is_answer());
    Ok(())
}

#[test]
fn somebody_else_can_attach_a_pod() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().bare().build()?;
        let node = lab.node("n1");
        let before = node.dump()?;
        let addresses: [std::net::IpAddr; 2] = ["10.244.1.77".parse()?, "fd00:10:244:1::77".parse()?];
        let pod = lab.attach_pod::<Box<dyn std::error::Error>>("n1", "pod", |path| {
            let path = path.to_str().unwrap();
            node.ip([&*format!("link add cni type veth peer name eth0 netns {path}"), "link set cni up"])?;
            let netns = format!("--net={path}");
            let script = "ip link set eth0 up; ip addr add 10.244.1.77/24 dev eth0;
                ip addr add fd00:10:244:1::77/64 dev eth0 nodad";
            node.run(["nsenter", &netns, "sh", "-ec", script])?;
            node.ip(["addr add 10.244.1.1/24 dev cni", "addr add fd00:10:244:1::1/64 dev cni nodad"])?;
            Ok(addresses.to_vec())
        })?;
        for family in Family::BOTH {
            let to = pod.address(family);
            assert!(until(Duration::from_secs(5), || node.tcp(to, PORT).server() == Some("pod")), "{to}");
        }
        assert_eq!(lab.node_of("pod").as_deref(), Some("n1"));
        lab.detach_pod::<egret_netlab::LabError>("pod", |_| node.ip(["link del cni"]))?;
        assert_eq!(difference(&before, &node.dump()?), "");
        Ok(())
    });
}

#[test]
fn two_hundred_pods_come_and_go_in_no_time() {
    alone(test_name!(), &[], || {
        let start = Instant::now();
        let lab = Lab::builder().nodes(3).blue(&[1, 2]).build()?;
        println!("the lab took {:?}", start.elapsed());
        let names: Vec<(String, String)> =
            (0..200).map(|it| (format!("n{}", it % 3 + 1), format!("pod{it}"))).collect();
        let start = Instant::now();
        lab.add_pods(&names)?;
        println!("200 pods at once took {:?}", start.elapsed());
        let start = Instant::now();
        for (_, name) in &names[..100] {
            lab.remove_pod(name)?;
        }
        println!("100 pods were removed one by one in {:?}", start.elapsed());
        let start = Instant::now();
        for (node, name) in &names[..100] {
            lab.add_pod(node, name)?;
        }
        println!("100 pods were added one by one in {:?}", start.elapsed());
        let start = Instant::now();
        lab.remove_pods(&names[100..].iter().map(|(_, name)| name).collect::<Vec<_>>())?;
        println!("100 pods were removed at once in {:?}", start.elapsed());
        assert!(lab.pod("pod0").tcp(lab.pod("pod99").address(Family::V4), PORT).is_answer());
        assert!(start.elapsed() < Duration::from_secs(30));
        Ok(())
    });
}

#[test]
fn a_program_runs_where_it_was_started_and_ends_when_it_is_dropped() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).build()?;
        let node = lab.node("n2");
        let mut command = Command::new("sh");
        command.args(["-c", "ip -o addr show dev eth0; echo $WORD; exec sleep 1000"]).env("WORD", "heard");
        let mut process = node.spawn(&command)?;
        assert!(until(Duration::from_secs(5), || process.said().contains("heard")), "{}", process.said());
        assert!(process.said().contains("192.168.50.12"), "{}", process.said());
        assert!(process.ended()?.is_none());
        let id = process.id();
        drop(process);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
        assert_eq!(
            node.inside(|| std::fs::read_link("/proc/thread-self/ns/net"))?.as_os_str(),
            node.run(["readlink", "/proc/self/ns/net"])?.trim_end()
        );
        Ok(())
    });
}

#[test]
fn a_file_in_etc_is_seen_on_its_host_only() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).build()?;
        let [n1, n2] = ["n1", "n2"].map(|name| lab.node(name));
        n1.write_etc("iproute2/rt_tables.d/lab.conf", "1234 blue\n")?;
        let looked_up = ["ip", "rule", "add", "from", "192.0.2.1", "lookup", "blue"];
        n1.run(looked_up)?;
        assert!(n1.run(["ip", "rule", "show"])?.contains("lookup blue"));
        assert!(n1.run(["ip", "-N", "rule", "show"])?.contains("lookup 1234"));
        assert!(!n2.output(looked_up)?.status.success());
        Ok(())
    });
}

#[test]
fn the_test_itself_can_join_and_be_reached() {
    alone(test_name!(), &[], || {
        let lab = Lab::builder().nodes(2).build()?;
        let own = lab.join()?;
        let listener = std::net::TcpListener::bind((own.address(Family::V6), 0))?;
        let to = listener.local_addr()?;
        let node = lab.node("n2");
        let connected = node.inside(|| std::net::TcpStream::connect_timeout(&to, Duration::from_secs(5)));
        assert_eq!(connected?.local_addr()?.ip(), node.address(Family::V6));
        Ok(())
    });
}

#[test]
fn a_test_that_needs_what_nobody_has_is_skipped_and_counted() {
    let binary = std::env::current_exe().unwrap();
    let folder = std::env::temp_dir().join(format!("egret-lab-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let tally = folder.join("tally");
    let run = |ci: &[(&str, &str)]| {
        let mut command = Command::new(&binary);
        command.args(["state::needs_the_impossible", "--exact", "--ignored"]).env_remove("CI");
        command.env("EGRET_LAB_TALLY", &tally).envs(ci.iter().copied()).output().unwrap().status.success()
    };
    let known = [("CI", "true"), ("EGRET_LAB_WITHOUT", "devices of kind vrf, the program egret-has-no-such-program")];
    let passed = [run(&[]), run(&[("CI", "true")]), run(&known)];
    let counted = std::fs::read_to_string(&tally).unwrap_or_default();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(passed, [true, false, true]);
    let line = "skipped state::needs_the_impossible: the program egret-has-no-such-program";
    assert_eq!(counted.lines().collect::<Vec<_>>(), [line, line]);
}

#[test]
#[ignore = "only started by another test"]
fn needs_the_impossible() {
    Alone::new(test_name!()).needs(&[Need::Program("egret-has-no-such-program")]).run(|| panic!("it ran"));
}

#[test]
#[should_panic(expected = "failed in its namespace")]
fn a_test_that_fails_inside_fails() {
    alone(test_name!(), &[], || Err("this is expected".into()));
}

#[test]
fn without_namespaces_of_its_own_nothing_is_built() {
    assert!(matches!(Lab::builder().build(), Err(egret_netlab::LabError::NotAlone)));
}
