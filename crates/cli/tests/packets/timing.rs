//! What it costs, measured (`make bench-node`). Each prints what it found beside its target, and fails if it is missed by
//! more than half; machines are noisy, so nothing else runs these.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use egret_netlab::{Family, Network, PORT, alone, test_name};
use serde_json::{Value, json};

use crate::objects::{Exit, namespace, pod, way, web};
use crate::world::{PATIENCE, World, two};

fn world() -> World {
    two(egret_netlab::Lab::builder().nodes(1).blue(&[1]))
}

/// Where streams go.
const STREAM: u16 = 9090;

/// Prints a figure, and fails if it is more than half above its target.
fn measured(what: &str, found: f64, target: f64, unit: &str) {
    println!("{what}: {found:.3} {unit} (target {target} {unit})");
    assert!(found <= target * 1.5, "{what}: {found:.3} {unit} misses {target} {unit} by more than half");
}

/// The objects of a service whose endpoints are pods that only exist there.
fn crowd(name: &str, count: usize) -> Vec<Value> {
    let metadata = json!({"namespace": "crowd", "name": name, "creationTimestamp": "1970-01-01T00:00:01Z"});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"type": "LoadBalancer", "clusterIPs": ["10.96.9.9"], "ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.168.70.99"}]}},
    });
    let exit = json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "EgressService", "metadata": metadata, "spec": {"network": "1234"},
        "status": {"host": "n1"},
    });
    let address =
        |i: usize| IpAddr::from([10, 244, u8::try_from(100 + i / 200).unwrap(), u8::try_from(10 + i % 200).unwrap()]);
    let endpoints: Vec<Value> = (0..count).map(|i| json!({"addresses": [address(i)], "nodeName": "n1"})).collect();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": endpoints,
        "metadata": {"namespace": "crowd", "name": name, "labels": {"kubernetes.io/service-name": name}},
    });
    vec![service, exit, slice]
}

fn serves(world: &World, count: usize) {
    world.shows("n1", |view| view["settled"] == true && view["sources"].as_array().map(Vec::len) == Some(count));
}

/// Seconds that passes have taken so far.
fn passes(world: &World) -> f64 {
    let text = world.get("n1", "/metrics").unwrap();
    let line = text.lines().find(|line| line.starts_with("egret_agent_pass_duration_seconds_sum")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The same, once the passes are over that find nothing to do, which what the kernel notifies of leads to.
fn rested(world: &World) -> f64 {
    world.rests("n1");
    passes(world)
}

#[test]
#[ignore = "a measurement: make bench-node"]
fn a_thousand_endpoints_from_scratch_and_one_that_changes() {
    alone(test_name!(), &[], || {
        let mut world = world();
        world.start("n1");
        serves(&world, 0);
        for (count, target) in [(1_000, 0.3), (10_000, 30.0)] {
            let before = rested(&world);
            world.more(crowd("many", count));
            serves(&world, count);
            measured(&format!("{count} endpoints from scratch"), passes(&world) - before, target, "s");
            let before = rested(&world);
            world.more(crowd("many", count - 1));
            serves(&world, count - 1);
            measured(&format!("one of {count} endpoints goes"), passes(&world) - before, target / 6.0, "s");
            world.more(Vec::new());
            serves(&world, 0);
        }
        Ok(())
    });
}

/// The longest time of 20 from a deletion until what was deleted is seen again.
fn heals(world: &World, what: &str, delete: &[&str], look: &[&str], shows: &str) {
    let node = world.lab.node("n1");
    let there = || node.run(look).is_ok_and(|shown| shown.contains(shows));
    assert!(there(), "{what}");
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        node.run(delete).unwrap();
        let began = Instant::now();
        assert!(egret_netlab::until(PATIENCE, there), "{what}");
        longest = longest.max(began.elapsed());
    }
    measured(&format!("healing {what}, the longest of 20"), longest.as_secs_f64(), 1.0, "s");
}

#[test]
#[ignore = "a measurement: make bench-node"]
fn what_was_deleted_is_back_within_a_second() {
    alone(test_name!(), &[], || {
        let mut world = world();
        for pod in ["a", "b"] {
            world.lab.add_pod("n1", pod).unwrap();
        }
        crate::egress_ip::router(&world.lab.node("n1"), "eth1", 200);
        world.start("n1");
        world.put(&web(&["a"]));
        let objects = [way().object(), namespace("yes"), pod(&world.lab, "b", "web", "Running")];
        world.more(objects.into());
        world.serves("n1", &["a", "b"]);
        let a = world.lab.pod("a").address(Family::V4).to_string();
        let rule = ["ip", "rule", "del", "priority", "5000", "from", &a];
        heals(&world, "a rule", &rule, &["ip", "rule"], &format!("from {a} lookup 1234"));
        let element = ["nft", "delete", "element", "inet", "egret", "service-snat-v4", &format!("{{ {a} }}")];
        let list = ["nft", "list", "map", "inet", "egret", "service-snat-v4"];
        heals(&world, "an element", &element, &list, &a);
        let table = ["nft", "delete", "table", "inet", "egret"];
        heals(&world, "the nftables table", &table, &list, &a);
        let address = ["ip", "address", "del", "192.168.60.50/32", "dev", "eth1"];
        let show = ["ip", "address", "show", "dev", "eth1"];
        heals(&world, "an egress address, asked for on the wire first", &address, &show, "192.168.60.50/32");
        Ok(())
    });
}

/// Microseconds from a question to its answer, the middle one of many.
fn round_trip(world: &World, pod: &str, to: IpAddr) -> f64 {
    world.lab.pod(pod).inside(|| {
        let any: SocketAddr = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().unwrap();
        let socket = UdpSocket::bind(any).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.connect((to, PORT)).unwrap();
        let mut times: Vec<Duration> = (0..5_000)
            .map(|_| {
                let began = Instant::now();
                socket.send(b"x").unwrap();
                socket.recv(&mut [0; 256]).unwrap();
                began.elapsed()
            })
            .collect();
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e6
    })
}

/// Megabytes a second by one connection of a pod to the outside that it reaches.
fn throughput(world: &World, pod: &str, outside: Network) -> f64 {
    const MOST: Duration = Duration::from_secs(1);
    let listener = world.lab.outside(outside).inside(|| TcpListener::bind((Family::V4.destination(), STREAM)).unwrap());
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let (began, mut buffer, mut total) = (Instant::now(), vec![0; 1 << 20], 0_u32);
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => return f64::from(total) / 1024.0 / began.elapsed().as_secs_f64(),
                    // In kibibytes, and a little less than there was.
                    length => total += u32::try_from(length / 1024).unwrap(),
                }
            }
        });
        world.lab.pod(pod).inside(|| {
            let mut stream = TcpStream::connect((Family::V4.destination(), STREAM)).unwrap();
            let (began, buffer) = (Instant::now(), vec![0; 1 << 18]);
            while began.elapsed() < MOST {
                stream.write_all(&buffer).unwrap();
            }
        });
        reader.join().unwrap()
    })
}

/// The middle one of several, so that one that was disturbed does not count.
fn middle(mut measure: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..7).map(|_| measure()).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
#[ignore = "a measurement: make bench-node"]
fn a_packet_with_a_thousand_rules_beside_it() {
    alone(test_name!(), &[], || {
        let mut world = world();
        for pod in ["own", "foreign"] {
            world.lab.add_pod("n1", pod).unwrap();
        }
        let exit: Exit = web(&["own"]);
        world.expose(&exit, "n1");
        let outside = Family::V4.destination();
        let trip = |world: &World, pod: &str| middle(|| round_trip(world, pod, outside));
        let stream = |world: &World, pod: &str, network| middle(|| throughput(world, pod, network));
        let without = |world: &World| (trip(world, "foreign"), stream(world, "foreign", Network::Red));
        let before = without(&world);
        world.start("n1");
        world.put(&exit);
        world.more(crowd("many", 1_000));
        serves(&world, 1_002);
        let (foreign, own) = (trip(&world, "foreign"), trip(&world, "own"));
        let streams = (stream(&world, "foreign", Network::Red), stream(&world, "own", Network::Blue));
        world.clean_up("n1");
        // The machine may have become faster or slower meanwhile.
        let after = without(&world);
        let none = (f64::midpoint(before.0, after.0), f64::midpoint(before.1, after.1));
        println!("round trip without Egret: {:.1} us before and {:.1} us after", before.0, after.0);
        println!("  of a foreign pod beside 1,000 rules {foreign:.1} us, of an opted-in one {own:.1} us");
        println!("throughput without Egret: {:.0} MiB/s before and {:.0} MiB/s after", before.1, after.1);
        println!(
            "  of a foreign pod beside 1,000 rules {:.0} MiB/s, of an opted-in one {:.0} MiB/s",
            streams.0, streams.1
        );
        measured("a foreign pod's round trip with 1,000 rules, to none", foreign / none.0, 1.1, "times");
        measured("an opted-in pod's round trip with 1,000 rules, to none", own / none.0, 1.2, "times");
        measured("throughput without Egret, to a foreign pod's with 1,000 rules", none.1 / streams.0, 1.1, "times");
        Ok(())
    });
}
