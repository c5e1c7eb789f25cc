//! Connections that the kernel tracks.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use nix::errno::Errno;
use nix::libc;

use crate::link::family;
use crate::netlink::{Attributes, Fault, Message, Socket, Truncated, address};

// linux/netfilter/nfnetlink_conntrack.h
const NFNL_SUBSYS_CTNETLINK: u16 = 1;
const NEW: u16 = 0;
const GET: u16 = 1;
const DELETE: u16 = 2;
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_ID: u16 = 12;
const CTA_FILTER: u16 = 25;
const CTA_TUPLE_IP: u16 = 1;
const CTA_IP_V4_SRC: u16 = 1;
const CTA_IP_V4_DST: u16 = 2;
const CTA_IP_V6_SRC: u16 = 3;
const CTA_IP_V6_DST: u16 = 4;
const CTA_FILTER_ORIG_FLAGS: u16 = 1;
const BY_SOURCE: u32 = 1;
/// `struct nfgenmsg`.
const FIXED: usize = 4;

/// Forgets the connections that these sources opened, but for those to services in the cluster: what has another
/// destination and the same source. Their next packets would be led to another endpoint, which knows nothing of them.
///
/// Listed, chosen here, and deleted one by one: to delete by a filter is for kernels from 6.11 on, and an older one takes
/// the same message for another. A single source of IPv4 is left to the kernel to look for, which it can since 5.8; one
/// that cannot lists all. Asked for a source of IPv6 it lists all others (its comparison is the wrong way round; seen on
/// 6.18), so for that it is not asked.
pub(crate) fn forget(socket: &mut Socket, sources: &BTreeSet<IpAddr>) -> Result<(), Fault> {
    for v6 in [false, true] {
        let of_family: BTreeSet<IpAddr> = sources.iter().copied().filter(|ip| ip.is_ipv6() == v6).collect();
        if of_family.is_empty() {
            continue;
        }
        let listed = message(GET, libc::NLM_F_DUMP, v6);
        let request = match of_family.first() {
            Some(IpAddr::V4(source)) if of_family.len() == 1 => by_source(listed, *source),
            _ => listed,
        };
        let kind = NFNL_SUBSYS_CTNETLINK << 8 | NEW;
        for delete in socket.dump(&request, kind, |payload| deletion(payload, v6, &of_family))? {
            match socket.tell(delete) {
                Err(Fault::Refused(Errno::ENOENT)) => {}
                other => other?,
            }
        }
    }
    Ok(())
}

fn message(kind: u16, flags: i32, v6: bool) -> Message {
    Message::new(NFNL_SUBSYS_CTNETLINK << 8 | kind, flags, &[family(v6), 0, 0, 0])
}

fn by_source(message: Message, source: Ipv4Addr) -> Message {
    message
        .with_nested(CTA_TUPLE_ORIG, |tuple| {
            tuple.with_nested(CTA_TUPLE_IP, |ip| ip.with(CTA_IP_V4_SRC, &source.octets()))
        })
        .with_nested(CTA_FILTER, |filter| filter.with_u32(CTA_FILTER_ORIG_FLAGS, BY_SOURCE))
}

/// The request that deletes a listed connection, if it is of one of these sources. One in a zone is not found by it, for
/// it names none: those are others'. Open vSwitch tracks the same packets there, for firewalls that must not forget them.
fn deletion(payload: &[u8], v6: bool, sources: &BTreeSet<IpAddr>) -> Result<Option<Message>, Truncated> {
    let attributes = Attributes::after(payload, FIXED)?;
    let (Some(tuple), Some(id)) = (attributes.get(CTA_TUPLE_ORIG), attributes.get(CTA_ID)) else { return Ok(None) };
    let reply = attributes.get(CTA_TUPLE_REPLY).and_then(|reply| ends(reply, v6));
    let Some((source, destination)) = ends(tuple, v6) else { return Ok(None) };
    let inside = reply.is_some_and(|(from, to)| from != destination && to == source);
    Ok((sources.contains(&source) && !inside).then(|| {
        let message = message(DELETE, libc::NLM_F_ACK, v6);
        message.with_nested(CTA_TUPLE_ORIG, |inside| inside.with_all(tuple)).with(CTA_ID, id)
    }))
}

/// Source and destination of one direction.
fn ends(tuple: &[u8], v6: bool) -> Option<(IpAddr, IpAddr)> {
    let addresses = Attributes::within(Attributes::within(tuple).get(CTA_TUPLE_IP)?);
    let [source, destination] = if v6 { [CTA_IP_V6_SRC, CTA_IP_V6_DST] } else { [CTA_IP_V4_SRC, CTA_IP_V4_DST] };
    Some((address(addresses.get(source)?)?, address(addresses.get(destination)?)?))
}
