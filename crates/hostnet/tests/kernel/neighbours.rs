//! What neighbours hear, and say.

use std::io::Read as _;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use egret_hostmodel::{EgressAddress, State, Step};
use egret_hostnet::{Claims, Mac, StepError};
use egret_netlab::test_name;
use nix::libc;
use socket2::{Domain, Protocol, Socket, Type};

use crate::namespace::{alone, dump, inside, run, same};
use crate::node::{Node, egress};

const BOTH: [&str; 2] = ["192.168.60.50", "fd00:60::50"];

/// Hears every frame in the namespace outside.
fn ear() -> Socket {
    inside("outside", || {
        let all = i32::from(u16::try_from(libc::ETH_P_ALL).unwrap().to_be());
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(all))).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        socket
    })
}

/// What comes within this time.
fn frames(ear: &mut Socket, time: Duration) -> Vec<Vec<u8>> {
    let (mut frames, end) = (Vec::new(), Instant::now() + time);
    while Instant::now() < end {
        let mut frame = vec![0; 2048];
        if let Ok(length) = ear.read(&mut frame) {
            frame.truncate(length);
            frames.push(frame);
        }
    }
    frames
}

fn mac(link: &str) -> Vec<u8> {
    hardware(&run(&format!("ip -o link show dev {link}")))
}

fn mac_in(namespace: &str, link: &str) -> Vec<u8> {
    hardware(&run(&format!("ip -n {namespace} -o link show dev {link}")))
}

/// A datagram from the namespace, and from that address, after whoever has the other one was asked for.
fn send(namespace: &str, from: Option<&str>, to: &str) {
    inside(namespace, || {
        let any = if to.contains(':') { "::" } else { "0.0.0.0" };
        let socket = UdpSocket::bind((from.unwrap_or(any), 0)).unwrap();
        socket.send_to(b"x", (to, 9)).unwrap();
    });
}

fn hardware(text: &str) -> Vec<u8> {
    let (_, rest) = text.split_once("link/ether ").unwrap();
    rest.split(' ').next().unwrap().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Gratuitous requests, gratuitous replies, unsolicited advertisements, of the two addresses, from `mac`.
fn announcements(frames: &[Vec<u8>], mac: &[u8]) -> [usize; 3] {
    let arp = |operation: u8| {
        let ip = [192, 168, 60, 50];
        let all = frames.iter().filter(move |it| it[..6] == [0xff; 6] && it[12..14] == [8, 6] && it[21] == operation);
        all.filter(|it| it[22..28] == *mac && it[28..32] == ip && it[38..42] == ip).count()
    };
    let advertised = frames
        .iter()
        .filter(|it| it.len() == 86 && it[..6] == [0x33, 0x33, 0, 0, 0, 1] && it[20..22] == [58, 255] && it[54] == 136);
    let target = "fd00:60::50".parse::<std::net::Ipv6Addr>().unwrap().octets();
    [arp(1), arp(2), advertised.filter(|it| it[62..78] == target && it[80..] == *mac).count()]
}

#[test]
fn an_address_that_somebody_has_is_not_taken_and_it_is_said_who_has_it() {
    alone(test_name!(), || async {
        for ip in BOTH {
            let length = if ip.contains(':') { "128 nodad" } else { "32" };
            run(&format!("ip -n outside addr add {ip}/{length} dev peer"));
        }
        let (node, before) = (Node::open(), dump());
        let peer = run("ip -n outside -o link show dev peer");
        for ip in BOTH {
            let error = node.refused(Step::TakeAddress { address: egress(ip) }).await;
            let StepError::Contested { address, by } = error else { panic!("{error}") };
            assert_eq!(address, egress(ip));
            assert!(peer.contains(&by.to_string()), "{by} is not of {peer}");
        }
        // Others are taken all the same; those after the contested one are not.
        let steps = ["192.168.60.51", BOTH[0], "192.168.60.52"].map(|ip| Step::TakeAddress { address: egress(ip) });
        let applied = node.kernel.apply(&steps).await;
        assert_eq!(applied.done, 1);
        assert_eq!(node.found().await.addresses, [egress("192.168.60.51")].into());
        node.become_like(&State::default()).await;
        same(&before, &dump());
        for ip in BOTH {
            let length = if ip.contains(':') { "128" } else { "32" };
            run(&format!("ip -n outside addr del {ip}/{length} dev peer"));
            node.apply(&[Step::TakeAddress { address: egress(ip) }]).await;
        }
    });
}

#[test]
fn an_address_that_somebody_else_is_about_to_take_is_contested() {
    alone(test_name!(), || async {
        // Two that ask at the same time, on two links to one bridge.
        run("ip -n outside link add switch type bridge");
        run("ip -n outside link set peer master switch");
        run("ip link add eth2 type veth peer name peer2 netns outside");
        run("ip -n outside link set peer2 master switch");
        for link in ["switch", "peer2"] {
            run(&format!("ip -n outside link set {link} up"));
        }
        run("ip netns add other");
        run("ip link set eth2 netns other");
        run("ip -n other link set eth2 up");
        let (one, other) = (Node::open(), inside("other", Node::open));
        for ip in BOTH {
            let (here, mut there) = (egress(ip), egress(ip));
            there.link = "eth2".to_owned();
            let here = [Step::TakeAddress { address: here }];
            let there = [Step::TakeAddress { address: there }];
            let (here, there) = tokio::join!(one.kernel.apply(&here), other.kernel.apply(&there));
            for applied in [here, there] {
                assert!(matches!(applied.failed, Some(StepError::Contested { .. })), "{:?}", applied.failed);
            }
        }
        assert_eq!((one.found().await, other.found().await), (State::default(), State::default()));
    });
}

#[test]
fn several_addresses_are_asked_for_at_once() {
    alone(test_name!(), || async {
        let node = Node::open();
        let steps: Vec<Step> = (1..=20)
            .flat_map(|last| [format!("192.168.60.1{last:02}"), format!("fd00:60::1:{last}")])
            .map(|ip| Step::TakeAddress { address: egress(&ip) })
            .collect();
        let mut ear = ear();
        let began = Instant::now();
        node.apply(&steps).await;
        let took = began.elapsed();
        eprintln!("40 addresses asked for and taken in {took:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");
        let heard = frames(&mut ear, Duration::from_millis(100));
        let questions = heard.iter().filter(|it| it[12..14] == [8, 6] && it[28..32] == [0; 4]).count();
        assert_eq!(questions, 60, "ARP probes");
        let asked = |it: &&Vec<u8>| it[12..14] == [0x86, 0xdd] && it[54] == 135 && it[22..38] == [0; 16];
        // The peer asks for its own link-local address.
        let questions = heard.iter().filter(asked).filter(|it| it[62..66] == [0xfd, 0, 0, 0x60]);
        assert_eq!(questions.count(), 60, "solicitations from nobody");
    });
}

#[test]
fn a_link_without_neighbours_is_not_asked() {
    alone(test_name!(), || async {
        run("ip link set lo up");
        let node = Node::open();
        let mut address = egress("192.168.60.50");
        address.link = "lo".to_owned();
        let began = Instant::now();
        node.apply(&[Step::TakeAddress { address: address.clone() }, Step::Announce { address }]).await;
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    });
}

#[test]
fn neighbours_hear_three_times_where_an_address_is_and_believe_it() {
    alone(test_name!(), || async {
        let node = Node::open();
        // They think it to be somewhere else.
        for ip in BOTH {
            run(&format!("ip -n outside neigh add {ip} lladdr 02:00:00:00:00:99 dev peer nud stale"));
        }
        let take = BOTH.map(|ip| Step::TakeAddress { address: egress(ip) });
        let announce = BOTH.map(|ip| Step::Announce { address: egress(ip) });
        let mut ear = ear();
        node.apply(&[take, announce].concat()).await;
        let mine = mac("eth1");
        assert_eq!(announcements(&frames(&mut ear, Duration::from_millis(300)), &mine), [1, 1, 1]);
        let known = run("ip -n outside neigh show dev peer");
        assert!(!known.contains("02:00:00:00:00:99"), "{known}");
        assert_eq!(announcements(&frames(&mut ear, Duration::from_millis(3500)), &mine), [2, 2, 2], "again");
        assert_eq!(announcements(&frames(&mut ear, Duration::from_millis(1500)), &mine), [0, 0, 0], "no more");
    });
}

#[test]
fn an_address_is_announced_even_if_a_step_after_it_was_taken_fails() {
    alone(test_name!(), || async {
        let node = Node::open();
        run("ip -n outside addr add 192.168.60.51/32 dev peer");
        let mut ear = ear();
        let applied = node
            .kernel
            .apply(&["192.168.60.50", "192.168.60.51"].map(|ip| Step::TakeAddress { address: egress(ip) }))
            .await;
        assert_eq!(applied.done, 1);
        assert_eq!(announcements(&frames(&mut ear, Duration::from_millis(1500)), &mac("eth1")), [1, 1, 0]);
    });
}

#[test]
fn who_dropped_an_address_or_lost_it_does_not_announce_it_any_more() {
    alone(test_name!(), || async {
        let node = Node::open();
        let steps = |ip: &str| {
            let address = egress(ip);
            [Step::TakeAddress { address: address.clone() }, Step::Announce { address }]
        };
        node.apply(&BOTH.map(steps).concat()).await;
        node.apply(&[Step::DropAddress { address: egress(BOTH[0]) }]).await;
        run("ip addr del fd00:60::50/128 dev eth1");
        let mut ear = ear();
        thread::sleep(Duration::from_millis(100));
        assert_eq!(announcements(&frames(&mut ear, Duration::from_millis(3500)), &mac("eth1")), [0, 0, 0]);
    });
}

/// What is claimed within this time, and by whom.
async fn claimed(claims: &Claims, time: Duration) -> Option<(String, Mac)> {
    let claim = tokio::time::timeout(time, claims.next()).await.ok()?;
    Some((claim.0.ip.to_string(), claim.1))
}

#[test]
fn whoever_claims_an_address_is_heard_and_nobody_else() {
    alone(test_name!(), || async {
        let node = Node::open();
        let addresses = BOTH.map(egress);
        node.apply(&addresses.clone().map(|address| Step::TakeAddress { address })).await;
        let mut claims = node.kernel.listen(&addresses.into()).await.unwrap();
        // Ordinary questions and answers, and our own words.
        for ip in ["192.168.60.11", "fd00:60::11", BOTH[0], BOTH[1]] {
            send("outside", None, ip);
        }
        node.apply(&BOTH.map(|ip| Step::Announce { address: egress(ip) })).await;
        assert_eq!(claimed(&claims, Duration::from_millis(300)).await, None);
        // Who asks for them because it wants to take them is answered by the kernel, and heard here.
        let mut peer = inside("outside", Node::open);
        let link = |ip: &str| EgressAddress { link: "peer".to_owned(), ..egress(ip) };
        for ip in BOTH {
            let claims = node.kernel.listen(&BOTH.map(egress).into()).await.unwrap();
            let error = peer.refused(Step::TakeAddress { address: link(ip) }).await;
            assert!(matches!(error, StepError::Contested { .. }), "{error}");
            let (claimed, by) = claimed(&claims, Duration::from_secs(5)).await.expect("it was heard");
            assert_eq!((claimed.as_str(), by.0.to_vec()), (ip, mac_in("outside", "peer")));
        }
        // What is not listened to any more is not heard.
        claims = node.kernel.listen(&[egress(BOTH[1])].into()).await.unwrap();
        peer.refused(Step::TakeAddress { address: link(BOTH[0]) }).await;
        assert_eq!(claimed(&claims, Duration::from_millis(300)).await, None);
        // Who has it too, and says so.
        run("ip -n outside addr add 192.168.60.50/32 dev peer");
        claims = node.kernel.listen(&[egress(BOTH[0])].into()).await.unwrap();
        peer = inside("outside", Node::open);
        run("ip -n outside neigh flush dev peer");
        send("outside", Some("192.168.60.50"), "192.168.60.11");
        assert!(claimed(&claims, Duration::from_secs(5)).await.is_some());
        drop(peer);
    });
}
