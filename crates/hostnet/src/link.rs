//! Links and the addresses on them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_hostmodel::{EgressAddress, Link, LinkAddress};
use ipnet::IpNet;
use nix::libc;

use crate::netlink::{Attributes, Fault, Message, Socket, Truncated, address, text, u32_ne};

/// `struct ifinfomsg` and `struct ifaddrmsg`.
const LINK_FIXED: usize = 16;
const ADDRESS_FIXED: usize = 8;

// linux/if_link.h
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VRF_TABLE: u16 = 1;

// linux/if_addr.h
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_LABEL: u16 = 3;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
const IFA_PROTO: u16 = 11;

/// A link, and how it speaks to its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundLink {
    pub(crate) link: Link,
    /// Its hardware address, where neighbours are asked for theirs by ARP and neighbour discovery.
    pub(crate) ethernet: Option<[u8; 6]>,
}

impl FoundLink {
    /// Whether the single address on it is an egress address; absent if it is not on it.
    pub(crate) fn holds(&self, ip: IpAddr, protocol: u8) -> Option<bool> {
        let found = self.link.addresses.iter().find(|found| found.net == IpNet::from(ip));
        found.map(|found| is_egress(found, protocol))
    }
}

/// All links, by index, with their addresses.
pub(crate) fn links(socket: &mut Socket) -> Result<BTreeMap<u32, FoundLink>, Fault> {
    let request = Message::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; LINK_FIXED]);
    let found = socket.dump(&request, libc::RTM_NEWLINK, link)?;
    let mut links: BTreeMap<u32, FoundLink> = found.into_iter().map(|found| (found.link.index, found)).collect();
    let request = Message::new(libc::RTM_GETADDR, libc::NLM_F_DUMP, &[0; ADDRESS_FIXED]);
    for (index, address) in socket.dump(&request, libc::RTM_NEWADDR, link_address)? {
        if let Some(found) = links.get_mut(&index) {
            found.link.addresses.push(address);
        }
    }
    Ok(links)
}

fn link(payload: &[u8]) -> Result<Option<FoundLink>, Truncated> {
    let attributes = Attributes::after(payload, LINK_FIXED)?;
    let (Some(index), Some(flags), Some(name)) =
        (u32_ne(&payload[4..]), u32_ne(&payload[8..]), attributes.get(IFLA_IFNAME))
    else {
        return Ok(None);
    };
    let kind = u16::from_ne_bytes([payload[2], payload[3]]);
    let silent = flags & (libc::IFF_NOARP | libc::IFF_LOOPBACK | libc::IFF_POINTOPOINT).cast_unsigned() != 0;
    let hardware = attributes.get(IFLA_ADDRESS).and_then(|value| value.try_into().ok());
    let link = Link {
        index,
        name: text(name),
        up: flags & libc::IFF_UP.cast_unsigned() != 0,
        master: attributes.u32(IFLA_MASTER),
        vrf_table: vrf_table(attributes),
        addresses: Vec::new(),
    };
    Ok(Some(FoundLink { link, ethernet: hardware.filter(|_| kind == libc::ARPHRD_ETHER && !silent) }))
}

fn vrf_table(attributes: Attributes<'_>) -> Option<u32> {
    let about = Attributes::within(attributes.get(IFLA_LINKINFO)?);
    let vrf = about.get(IFLA_INFO_KIND).is_some_and(|kind| text(kind) == "vrf");
    Attributes::within(about.get(IFLA_INFO_DATA).filter(|_| vrf)?).u32(IFLA_VRF_TABLE)
}

fn link_address(payload: &[u8]) -> Result<Option<(u32, LinkAddress)>, Truncated> {
    let attributes = Attributes::after(payload, ADDRESS_FIXED)?;
    // With a peer the local one is ours, and the other one the peer's.
    let ip = attributes.get(IFA_LOCAL).or_else(|| attributes.get(IFA_ADDRESS)).and_then(address);
    let Some(net) = ip.and_then(|ip| IpNet::new(ip, payload[1]).ok()) else { return Ok(None) };
    let flags = attributes.u32(IFA_FLAGS).unwrap_or_else(|| u32::from(payload[2]));
    // The bit that says "secondary" in IPv4 says "temporary" in IPv6.
    let second = if net.addr().is_ipv4() { libc::IFA_F_SECONDARY } else { libc::IFA_F_DEPRECATED };
    let address = LinkAddress {
        net,
        label: attributes.get(IFA_LABEL).map(text),
        second_rank: flags & second != 0,
        protocol: attributes.get(IFA_PROTO).and_then(|value| value.first()).copied().unwrap_or(0),
    };
    Ok(u32_ne(&payload[4..]).map(|index| (index, address)))
}

/// Whether an address is an egress address: a single one, of our protocol number.
pub(crate) fn is_egress(address: &LinkAddress, protocol: u8) -> bool {
    address.protocol == protocol && address.net.prefix_len() == address.net.max_prefix_len()
}

/// The egress addresses on all links.
pub(crate) fn egress_addresses(links: &BTreeMap<u32, FoundLink>, protocol: u8) -> BTreeSet<EgressAddress> {
    let each = links.values().flat_map(|found| found.link.addresses.iter().map(|address| (&found.link.name, address)));
    let ours = each.filter(|(_, address)| is_egress(address, protocol));
    ours.map(|(link, address)| EgressAddress { ip: address.net.addr(), link: link.clone() }).collect()
}

/// The request that puts an egress address on a link.
///
/// IPv6 would otherwise hold it back until duplicate address detection is done, which has been by then, would use it for
/// the node's own connections, and would make a route to it.
pub(crate) fn put_on(ip: IpAddr, index: u32, protocol: u8) -> Message {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let message = named(Message::new(libc::RTM_NEWADDR, flags, &fixed(ip, index)), ip).with(IFA_PROTO, &[protocol]);
    if ip.is_ipv4() {
        return message;
    }
    // Preferred for 0 seconds, valid for ever; the other two are times that only the kernel tells.
    let lifetimes = [0u32, u32::MAX, 0, 0].map(u32::to_ne_bytes).concat();
    message.with_u32(IFA_FLAGS, libc::IFA_F_NODAD | libc::IFA_F_NOPREFIXROUTE).with(IFA_CACHEINFO, &lifetimes)
}

/// The request that takes an address off a link.
pub(crate) fn take_off(ip: IpAddr, index: u32) -> Message {
    named(Message::new(libc::RTM_DELADDR, libc::NLM_F_ACK, &fixed(ip, index)), ip)
}

fn fixed(ip: IpAddr, index: u32) -> [u8; ADDRESS_FIXED] {
    let net = IpNet::from(ip);
    let [a, b, c, d] = index.to_ne_bytes();
    [family(ip.is_ipv6()), net.prefix_len(), 0, libc::RT_SCOPE_UNIVERSE, a, b, c, d]
}

fn named(message: Message, ip: IpAddr) -> Message {
    message.with_ip(IFA_LOCAL, ip).with_ip(IFA_ADDRESS, ip)
}

/// The number of an address family.
pub(crate) fn family(v6: bool) -> u8 {
    u8::try_from(if v6 { libc::AF_INET6 } else { libc::AF_INET }).expect("both are small")
}
