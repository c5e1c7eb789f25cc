//! Routes.

use std::collections::BTreeMap;

use egret_hostmodel::{Hop, Route};
use ipnet::IpNet;
use nix::libc;

use crate::link::family;
use crate::netlink::{Attributes, Fault, Message, Socket, Truncated, address, u16_ne, u32_ne};

/// `struct rtmsg` and `struct rtnexthop`.
const FIXED: usize = 12;
const HOP_FIXED: usize = 8;

// linux/rtnetlink.h
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const ONLINK: u8 = 4;

/// All unicast routes of both families; `names` are those of the links. Left out is what no route of ours can say:
/// tunnels in routes, type of service, sources.
pub(crate) fn routes(socket: &mut Socket, names: &BTreeMap<u32, String>) -> Result<Vec<Route>, Fault> {
    let request = Message::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &[0; FIXED]);
    socket.dump(&request, libc::RTM_NEWROUTE, |payload| found(payload, names))
}

fn found(payload: &[u8], names: &BTreeMap<u32, String>) -> Result<Option<Route>, Truncated> {
    let attributes = Attributes::after(payload, FIXED)?;
    let fixed = &payload[..FIXED];
    let v6 = match fixed[0] {
        number if number == family(false) => false,
        number if number == family(true) => true,
        _ => return Ok(None),
    };
    let flags = u32_ne(&fixed[8..]).unwrap_or(0);
    let plain = fixed[7] == libc::RTN_UNICAST && fixed[2] == 0 && fixed[3] == 0 && flags & libc::RTM_F_CLONED == 0;
    let all = if v6 { [0; 16].into() } else { [0; 4].into() };
    let destination = IpNet::new(attributes.get(RTA_DST).and_then(address).unwrap_or(all), fixed[1]);
    let hops = match attributes.get(RTA_MULTIPATH) {
        Some(several) => hops(several, names),
        None => hop(attributes, (flags & 0xff) as u8, 1, names).map(|hop| vec![hop]),
    };
    let (true, Ok(destination), Some(mut hops)) = (plain, destination, hops) else { return Ok(None) };
    hops.sort();
    Ok(Some(Route {
        table: attributes.u32(RTA_TABLE).unwrap_or_else(|| u32::from(fixed[4])),
        destination,
        metric: attributes.u32(RTA_PRIORITY).unwrap_or(if v6 { 1024 } else { 0 }),
        hops,
        protocol: fixed[5],
    }))
}

fn hops(mut several: &[u8], names: &BTreeMap<u32, String>) -> Option<Vec<Hop>> {
    let mut hops = Vec::new();
    while let Some(length) = u16_ne(several).map(usize::from).filter(|length| *length >= HOP_FIXED) {
        let one = several.get(..length)?;
        let attributes = Attributes::within(&one[HOP_FIXED..]);
        let index = u32_ne(&one[4..])?;
        hops.push(hop_by(attributes, index, one[2], u16::from(one[3]) + 1, names)?);
        several = several.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(hops)
}

fn hop(attributes: Attributes<'_>, flags: u8, weight: u16, names: &BTreeMap<u32, String>) -> Option<Hop> {
    hop_by(attributes, attributes.u32(RTA_OIF)?, flags, weight, names)
}

fn hop_by(
    attributes: Attributes<'_>,
    index: u32,
    flags: u8,
    weight: u16,
    names: &BTreeMap<u32, String>,
) -> Option<Hop> {
    // An IPv4 route by an IPv6 router has the family before the address.
    let via = || attributes.get(RTA_VIA).and_then(|value| address(value.get(2..)?));
    let gateway = attributes.get(RTA_GATEWAY).and_then(address).or_else(via);
    let tunnel = attributes.get(RTA_ENCAP_TYPE).is_some();
    let link = names.get(&index).filter(|_| !tunnel)?.clone();
    Some(Hop { link, gateway, onlink: flags & ONLINK != 0, weight })
}

/// The request that adds a route, with `flags` to say what of one with the same table, destination and metric. Absent if
/// there is no link of a hop's name.
pub(crate) fn add(route: &Route, flags: i32, index: impl Fn(&str) -> Option<u32>) -> Option<Message> {
    let direct = route.hops.iter().all(|hop| hop.gateway.is_none());
    let scope =
        if direct && route.destination.addr().is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
    let fixed = |hop: &Hop| if hop.onlink { ONLINK } else { 0 };
    let message = |flags_of_hop| {
        let fixed = fixed_part(route, scope, flags_of_hop);
        keyed(Message::new(libc::RTM_NEWROUTE, flags | libc::NLM_F_ACK | libc::NLM_F_CREATE, &fixed), route)
    };
    if let [hop] = route.hops.as_slice() {
        return Some(through(message(fixed(hop)).with_u32(RTA_OIF, index(&hop.link)?), hop, route));
    }
    let mut several = Vec::new();
    for hop in &route.hops {
        let attributes = through(Message::bare(), hop, route).into_bytes();
        let length = u16::try_from(HOP_FIXED + attributes.len()).expect("a hop is short");
        // The kernel counts from 0.
        let weight = u8::try_from(hop.weight.clamp(1, 256) - 1).expect("clamped to what fits");
        several.extend(length.to_ne_bytes());
        several.extend([fixed(hop), weight]);
        several.extend(index(&hop.link)?.to_ne_bytes());
        several.extend(attributes);
    }
    Some(message(0).with(RTA_MULTIPATH, &several))
}

fn through(message: Message, hop: &Hop, route: &Route) -> Message {
    match hop.gateway {
        None => message,
        Some(gateway) if gateway.is_ipv4() == route.destination.addr().is_ipv4() => {
            message.with_ip(RTA_GATEWAY, gateway)
        }
        Some(gateway) => {
            let family = u16::from(family(gateway.is_ipv6())).to_ne_bytes();
            let octets = match gateway {
                std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
                std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            message.with(RTA_VIA, &[family.to_vec(), octets].concat())
        }
    }
}

/// The request that deletes the route of this table, destination, metric and protocol, whatever its hops.
pub(crate) fn delete(route: &Route) -> Message {
    let fixed = fixed_part(route, libc::RT_SCOPE_NOWHERE, 0);
    keyed(Message::new(libc::RTM_DELROUTE, libc::NLM_F_ACK, &fixed), route)
}

fn fixed_part(route: &Route, scope: u8, hop_flags: u8) -> [u8; FIXED] {
    let v6 = route.destination.addr().is_ipv6();
    let length = route.destination.prefix_len();
    let [a, b, c, d] = u32::from(hop_flags).to_ne_bytes();
    [family(v6), length, 0, 0, 0, route.protocol, scope, libc::RTN_UNICAST, a, b, c, d]
}

fn keyed(message: Message, route: &Route) -> Message {
    let message = message.with_u32(RTA_TABLE, route.table).with_u32(RTA_PRIORITY, route.metric);
    if route.destination.prefix_len() == 0 { message } else { message.with_ip(RTA_DST, route.destination.network()) }
}
