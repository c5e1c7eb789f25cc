//! The functional requirements, one test named after each.

use egret_netlab::{Family, Network, PATIENCE, PORT, Profile, Transport, alone, test_name};

use crate::objects::web;
use crate::world::{World, blue};

/// From stock kernel parameters, and again from restricted ones.
fn from_both(body: impl Fn(Profile)) -> egret_netlab::Outcome {
    for profile in Profile::BOTH {
        body(profile);
    }
    Ok(())
}

/// In every protocol and family, `pod` is answered by `server`, which sees the source that `seen` says.
fn goes(world: &World, pod: &str, server: &str, seen: impl Fn(Family) -> std::net::IpAddr) {
    for family in Family::BOTH {
        for transport in Transport::ALL {
            let reply = world.lab.pod(pod).ask(transport, family.destination(), PORT, PATIENCE);
            assert_eq!(reply, format!("{server} saw {}", seen(family)).as_str(), "{pod} by {transport:?}");
        }
    }
}

#[test]
fn an_egress_service_is_supported_in_local_gateway_mode() {
    alone(test_name!(), &[], || {
        from_both(|profile| {
            let mut world = blue(profile, 1);
            world.lab.add_pod("n1", "a").unwrap();
            let exit = web(&["a"]);
            world.expose(&exit, "n1");
            world.start("n1");
            world.serves("n1", &[]);
            let node = |family| world.lab.node_address("n1", Network::Red, family);
            goes(&world, "a", "ext", node);
            world.put(&exit);
            world.serves("n1", &["a"]);
            goes(&world, "a", "blue", |family| exit.address(family));
            world.remove("web");
            world.serves("n1", &[]);
            let node = |family| world.lab.node_address("n1", Network::Red, family);
            goes(&world, "a", "ext", node);
            world.kill("n1");
            world.is_as_before("n1");
        })
    });
}
