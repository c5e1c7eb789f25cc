//! Connections that are forgotten.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use egret_hostmodel::{Element, Elements, Key, Role, Settings, Shape, Step, Table, Value};
use egret_netlab::test_name;

use crate::namespace::{alone, inside, nft, run};
use crate::node::{Node, ip};

/// A socket outside that tells who sends to it, and one for each source that sends.
struct Talk {
    server: UdpSocket,
    clients: Vec<UdpSocket>,
}

impl Talk {
    fn new(server: &str, sources: &[&str]) -> Self {
        let server = inside("outside", || UdpSocket::bind((ip(server), 7)).unwrap());
        server.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let client = |source: &&str| {
            let client = UdpSocket::bind((ip(source), 4000)).unwrap();
            client.connect(server.local_addr().unwrap()).unwrap();
            client
        };
        Self { clients: sources.iter().map(client).collect(), server }
    }

    /// The sources that the server sees.
    fn seen(&self) -> Vec<IpAddr> {
        let ask = |client: &UdpSocket| {
            client.send(b"?").unwrap();
            self.server.recv_from(&mut [0; 8]).unwrap().1.ip()
        };
        self.clients.iter().map(ask).collect()
    }
}

fn table(sources: &[&str], with: &str) -> Table {
    let mut elements = Elements::new();
    for source in sources {
        let element = Element::mapping(Value::Address(ip(with)), "default/web");
        elements.entry(Role::ServiceSnat.of(ip(source))).or_default().insert(Key::Source(ip(source)), element);
    }
    Table { shape: Some(Shape { settings: Settings::default(), paths: std::collections::BTreeMap::new() }), elements }
}

#[test]
fn a_forgotten_connection_gets_the_source_address_of_now_and_others_keep_theirs() {
    alone(test_name!(), || async {
        let node = Node::open();
        for (server, sources, with) in [
            ("192.168.60.200", ["192.168.60.11", "192.168.60.12", "192.168.60.13"], "192.168.60.50"),
            ("fd00:60::200", ["fd00:60::11", "fd00:60::12", "fd00:60::13"], "fd00:60::50"),
        ] {
            for source in &sources[1..] {
                let length = if source.contains(':') { "64 nodad" } else { "24" };
                run(&format!("ip addr add {source}/{length} dev eth1"));
            }
            // Without a chain that asks for it nothing is tracked.
            nft("add table inet track\n\
                 add chain inet track out { type nat hook postrouting priority 100; }\n\
                 add rule inet track out ct state new accept");
            let talk = Talk::new(server, &sources);
            let [one, two, three] = sources.map(ip);
            assert_eq!(talk.seen(), [one, two, three]);
            node.apply(&[Step::ReplaceTable { table: table(&sources, with) }]).await;
            assert_eq!(talk.seen(), [one, two, three], "known connections stay as they are");
            node.apply(&[Step::ForgetConnections { source: one }]).await;
            assert_eq!(talk.seen(), [ip(with), two, three]);
            node.apply(&[two, three].map(|source| Step::ForgetConnections { source })).await;
            assert_eq!(talk.seen(), [ip(with); 3]);
            node.apply(&[Step::DeleteTable]).await;
        }
    });
}

#[test]
fn connections_in_others_zones_are_not_forgotten() {
    alone(test_name!(), || async {
        let node = Node::open();
        nft("add table inet track\n\
             add chain inet track zone { type filter hook output priority raw; }\n\
             add rule inet track zone udp dport 7 ct zone set 7\n\
             add chain inet track out { type nat hook postrouting priority 100; }");
        let talk = Talk::new("192.168.60.200", &["192.168.60.11"]);
        assert_eq!(talk.seen(), [ip("192.168.60.11")]);
        node.apply(&[
            Step::ReplaceTable { table: table(&["192.168.60.11"], "192.168.60.50") },
            Step::ForgetConnections { source: ip("192.168.60.11") },
        ])
        .await;
        assert_eq!(talk.seen(), [ip("192.168.60.11")]);
    });
}
