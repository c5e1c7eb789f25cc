//! Packets that belong to no connection: nobody gives them another source address.

use egret_netlab::{Family, Network, Packet, Wire, alone, test_name, until};

use crate::objects::{Exit, Way, namespace, other, pod, way, web};
use crate::world::{PATIENCE, from_both};

/// Nothing in the lab answers there.
const NOWHERE: u16 = 9;

/// Of sources that have an owner none gets out, whatever is done for them; of others all do, as without Egret.
#[test]
fn what_belongs_to_no_connection_stays_in_if_its_source_has_an_owner() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            let owned = ["service", "network", "missing", "elsewhere", "address", "far"];
            for name in owned.iter().chain(&["foreign"]) {
                world.lab.add_pod("n1", name).unwrap();
            }
            crate::egress_ip::router(&world.lab.node("n1"), "eth1", 200);
            let service = |name, pod: &str| Exit { name, ..web(&[pod]) };
            world.start("n1");
            world.put(&Exit { network: None, ..service("service", "service") });
            world.put(&Exit { by: "Network", host: "ALL", ..other(&["network"]) });
            world.put(&Exit { host: "n2", ..service("elsewhere", "elsewhere") });
            world.put(&Exit { by: "Network", host: "ALL", network: Some("4321"), ..service("missing", "missing") });
            let ways = [Way { app: "address", ..way() }, Way { name: "far", node: "n2", app: "far", ..way() }];
            let pods = ["address", "far"].map(|name| pod(&world.lab, name, name, "Running"));
            world.more(pods.into_iter().chain([namespace("yes")]).chain(ways.map(|way| way.object())).collect());
            world.serves("n1", &owned);
            let wires = [Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap());
            for family in Family::BOTH {
                for name in owned {
                    world.lab.pod(name).stray(family.destination(), NOWHERE).unwrap();
                }
                // What comes last is seen last.
                world.lab.pod("foreign").stray(family.destination(), NOWHERE).unwrap();
                let foreign = world.lab.pod("foreign").address(family);
                let seen = || strays(&wires).iter().any(|packet| packet.source == foreign);
                assert!(until(PATIENCE, seen), "of {foreign}");
            }
            let foreign = world.lab.pod("foreign").addresses().to_vec();
            let leaked: Vec<_> = strays(&wires).into_iter().filter(|it| !foreign.contains(&it.source)).collect();
            assert!(leaked.is_empty(), "{leaked:?}\n{}", world.said("n1"));
            world.clean_up("n1");
        })
    });
}

fn strays(wires: &[Wire; 2]) -> Vec<Packet> {
    let outside = |packet: &Packet| Family::BOTH.iter().any(|family| packet.destination == family.destination());
    let all = wires.iter().flat_map(Wire::seen).map(|seen| seen.packet);
    all.filter(|packet| outside(packet) && packet.port == NOWHERE).collect()
}
