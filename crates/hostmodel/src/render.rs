//! What nft is told.

use std::fmt::Write as _;

use crate::nft::{PartKind, ROLES, Role, ValueKind};
use crate::{Business, Element, Elements, Key, Mark, Set, Shape, TABLE, Way};

impl Shape {
    /// The table with declarations and chains and nothing in its sets, as `nft -f -` takes it.
    ///
    /// Why the hooks are where they are: `prerouting` after destination NAT (-100) and before routing, so that it sees
    /// where packets really go; `postrouting` before every other source NAT (100), for the first that binds a connection
    /// wins; `guard` after it, to see with what source packets really leave.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = format!("table inet {TABLE} {{\n");
        for role in ROLES {
            for v6 in [false, true] {
                declare(&mut text, Set { role, v6 });
            }
        }
        for way in self.ways() {
            let mark = self.marking(way);
            let comment = match way {
                Way::Path(number) => {
                    self.paths.get(&number).map_or(String::new(), |name| format!(" comment \"{name}\""))
                }
                Way::Source | Way::Lost => String::new(),
            };
            chain(&mut text, &way.chain(), &[&format!("{mark}{comment}")]);
        }
        let service = put_on(self.settings.mark(Business::Service));
        let address = put_on(self.settings.mark(Business::Address));
        chain(
            &mut text,
            "prerouting",
            &[
                "type filter hook prerouting priority dstnat + 10; policy accept;",
                "ip daddr @cluster-v4 return",
                "ip6 daddr @cluster-v6 return",
                "ct direction reply goto reply",
                &format!("ip saddr @service-source-v4 {service}"),
                &format!("ip saddr @address-source-v4 {address}"),
                &format!("ip6 saddr @service-source-v6 {service}"),
                &format!("ip6 saddr @address-source-v6 {address}"),
            ],
        );
        chain(&mut text, "reply", &REPLY);
        chain(&mut text, "stray", &STRAY);
        chain(&mut text, "forward", &FORWARD);
        chain(&mut text, "postrouting", &POSTROUTING);
        chain(&mut text, "guard", &GUARD);
        text.push_str("}\n");
        text
    }

    fn ways(&self) -> impl Iterator<Item = Way> {
        self.paths.keys().map(|number| Way::Path(*number)).chain([Way::Source, Way::Lost])
    }

    fn marking(&self, way: Way) -> String {
        let business = match way {
            Way::Path(number) => Business::Reply(number),
            Way::Source => Business::Service,
            Way::Lost => Business::Lost,
        };
        put_on(self.settings.mark(business))
    }
}

/// The protocols come first: nft (1.0.6) knows what a port of a connection is only after it was told which protocols.
const REPLY: [&str; 2] = [
    "meta l4proto { tcp, udp, sctp } ct original ip daddr . meta l4proto . ct original proto-dst vmap @reply-v4",
    "meta l4proto { tcp, udp, sctp } ct original ip6 daddr . meta l4proto . ct original proto-dst vmap @reply-v6",
];

/// Nothing gets out of a source that is held or refused. What belongs to no connection has no direction.
const FORWARD: [&str; 6] = [
    "type filter hook forward priority filter - 5; policy accept;",
    "ct state invalid,untracked goto stray",
    "ip saddr @hold-v4 ct direction original ip daddr != @cluster-v4 counter drop comment \"its way is being changed\"",
    "ip saddr @refuse-v4 ct direction original ip daddr != @cluster-v4 counter drop comment \"no way from this node\"",
    "ip6 saddr @hold-v6 ct direction original ip6 daddr != @cluster-v6 counter drop comment \"its way is being changed\"",
    "ip6 saddr @refuse-v6 ct direction original ip6 daddr != @cluster-v6 counter drop comment \"no way from this node\"",
];

/// Nor does what belongs to no connection get out of any source that has an owner (a FIN of one that was forgotten, for
/// example): nobody gives that another source address, and it would leave with the pod's own.
const STRAY: [&str; 10] = [
    "ip daddr @cluster-v4 return",
    "ip6 daddr @cluster-v6 return",
    "ip saddr @bound-v4 counter drop comment \"of no connection\"",
    "ip saddr @service-source-v4 counter drop comment \"of no connection\"",
    "ip saddr @hold-v4 counter drop comment \"of no connection\"",
    "ip saddr @refuse-v4 counter drop comment \"of no connection\"",
    "ip6 saddr @bound-v6 counter drop comment \"of no connection\"",
    "ip6 saddr @service-source-v6 counter drop comment \"of no connection\"",
    "ip6 saddr @hold-v6 counter drop comment \"of no connection\"",
    "ip6 saddr @refuse-v6 counter drop comment \"of no connection\"",
];

/// A source that is in no map is left to whoever comes after.
const POSTROUTING: [&str; 5] = [
    "type nat hook postrouting priority srcnat - 10; policy accept;",
    "ip daddr != @cluster-v4 snat ip to ip saddr map @service-snat-v4",
    "ip daddr != @cluster-v4 snat ip to ip saddr . oifname map @address-snat-v4",
    "ip6 daddr != @cluster-v6 snat ip6 to ip6 saddr map @service-snat-v6",
    "ip6 daddr != @cluster-v6 snat ip6 to ip6 saddr . oifname map @address-snat-v6",
];

/// Nothing leaves with a source that it must not have.
const GUARD: [&str; 3] = [
    "type filter hook postrouting priority srcnat + 10; policy accept;",
    "ct original ip saddr @bound-v4 ct direction original ip daddr != @cluster-v4 \
     ct original ip saddr . ip saddr != @allow-v4 counter drop comment \"wrong source\"",
    "ct original ip6 saddr @bound-v6 ct direction original ip6 daddr != @cluster-v6 \
     ct original ip6 saddr . ip6 saddr != @allow-v6 counter drop comment \"wrong source\"",
];

fn put_on(mark: Mark) -> String {
    format!("meta mark set meta mark & {:#010x} | {:#010x}", !mark.mask, mark.value)
}

fn declare(text: &mut String, set: Set) {
    let address = if set.v6 { "ipv6_addr" } else { "ipv4_addr" };
    let part = |kind: &PartKind| match kind {
        PartKind::Address | PartKind::Prefix => address,
        PartKind::Link => "ifname",
        PartKind::Protocol => "inet_proto",
        PartKind::Port => "inet_service",
    };
    let key = set.role.key().iter().map(part).collect::<Vec<_>>().join(" . ");
    let (kind, value) = match set.role.value() {
        None => ("set", ""),
        Some(ValueKind::Address) => ("map", if set.v6 { " : ipv6_addr" } else { " : ipv4_addr" }),
        Some(ValueKind::Way) => ("map", " : verdict"),
    };
    let flags = if set.role == Role::Cluster { " flags interval;" } else { "" };
    writeln!(text, "\t{kind} {set} {{ type {key}{value};{flags} }}").expect("text takes everything");
}

fn chain(text: &mut String, name: &str, lines: &[&str]) {
    writeln!(text, "\tchain {name} {{").expect("text takes everything");
    for line in lines {
        writeln!(text, "\t\t{line}").expect("text takes everything");
    }
    text.push_str("\t}\n");
}

/// The commands that put `elements` into their sets.
#[must_use]
pub fn add(elements: &Elements) -> String {
    commands("add", elements, |key, element| {
        let comment = element.comment.as_ref().map_or(String::new(), |comment| format!(" comment \"{comment}\""));
        let value = element.value.as_ref().map_or(String::new(), |value| format!(" : {value}"));
        format!("{key}{comment}{value}")
    })
}

/// The commands that take `elements` out of their sets.
///
/// Each is added first: to delete what is not there fails the whole transaction, to add what is there does not. So the
/// elements must be as they were found, value and comment included.
#[must_use]
pub fn delete(elements: &Elements) -> String {
    add(elements) + &commands("delete", elements, |key, _| key.to_string())
}

fn commands(verb: &str, elements: &Elements, render: impl Fn(&Key, &Element) -> String) -> String {
    let mut text = String::new();
    for (set, elements) in elements.iter().filter(|(_, elements)| !elements.is_empty()) {
        let elements: Vec<String> = elements.iter().map(|(key, element)| render(key, element)).collect();
        writeln!(text, "{verb} element inet {TABLE} {set} {{ {} }}", elements.join(", "))
            .expect("text takes everything");
    }
    text
}
