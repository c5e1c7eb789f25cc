//! What is in the sets and maps of the table, read over netlink.
//!
//! nft lists the 40,000 elements of ten thousand endpoints in more than a second, of which most goes into text; this takes
//! a tenth of that.

use std::collections::BTreeMap;
use std::net::IpAddr;

use egret_hostmodel::{Element, Elements, Key, PartKind, ROLES, Set, TABLE, Transport, Value, ValueKind, Way};
use ipnet::IpNet;
use nix::errno::Errno;
use nix::libc;

use super::{FIXED, NFNL_SUBSYS_NFTABLES, NFPROTO_INET};
use crate::netlink::{Attributes, Fault, Message, Socket, Truncated, address, text};

// linux/netfilter/nf_tables.h
pub(super) const NFT_MSG_NEWSETELEM: u16 = 12;
const NFT_MSG_GETSETELEM: u16 = 13;
pub(super) const NFTA_LIST_TABLE: u16 = 1;
pub(super) const NFTA_LIST_SET: u16 = 2;
pub(super) const NFTA_LIST_ELEMENTS: u16 = 3;
pub(super) const NFTA_LIST_ELEM: u16 = 1;
pub(super) const NFTA_KEY: u16 = 1;
pub(super) const NFTA_DATA: u16 = 2;
const NFTA_FLAGS: u16 = 3;
pub(super) const NFTA_USERDATA: u16 = 6;
const NFTA_PAD: u16 = 8;
pub(super) const NFTA_VALUE: u16 = 1;
pub(super) const NFTA_VERDICT: u16 = 2;
pub(super) const NFTA_VERDICT_CODE: u16 = 1;
pub(super) const NFTA_VERDICT_CHAIN: u16 = 2;
pub(super) const NFT_GOTO: i32 = -4;
const INTERVAL_END: u32 = 1;
/// `libnftnl/udata.h`: what nft keeps in an element for itself.
pub(super) const UDATA_COMMENT: u8 = 0;

/// The elements of our sets, and whether something is in them that we put into none.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) elements: Elements,
    pub(super) strange: bool,
}

/// What is in all sets and maps that have names of ours. A set that is not there has nothing in it.
pub(super) fn read(socket: &mut Socket) -> Result<Contents, Fault> {
    let mut contents = Contents { elements: Elements::new(), strange: false };
    for set in ROLES.into_iter().flat_map(|role| [false, true].map(|v6| Set { role, v6 })) {
        let raw = match list(socket, set) {
            Err(Fault::Refused(Errno::ENOENT)) => continue,
            other => other?,
        };
        let found = if set.role.key() == [PartKind::Prefix] { prefixes(&raw) } else { single(set, &raw) };
        match found {
            Some(elements) if elements.is_empty() => {}
            Some(elements) => drop(contents.elements.insert(set, elements)),
            None => contents.strange = true,
        }
    }
    Ok(contents)
}

/// An element as it comes.
#[derive(Debug, Default)]
struct Raw {
    key: Vec<u8>,
    /// What it maps to, or the chain that it goes to.
    value: Option<Vec<u8>>,
    chain: Option<String>,
    end: bool,
    comment: Option<String>,
    /// It says what none of ours does.
    strange: bool,
}

fn list(socket: &mut Socket, set: Set) -> Result<Vec<Raw>, Fault> {
    let kind = |message| NFNL_SUBSYS_NFTABLES << 8 | message;
    let request = Message::new(kind(NFT_MSG_GETSETELEM), libc::NLM_F_DUMP, &[NFPROTO_INET, 0, 0, 0])
        .with_text(NFTA_LIST_TABLE, TABLE)
        .with_text(NFTA_LIST_SET, &set.to_string());
    let batches = socket.dump(&request, kind(NFT_MSG_NEWSETELEM), |payload| {
        let list = Attributes::after(payload, FIXED)?.get(NFTA_LIST_ELEMENTS).map(Attributes::within);
        let elements = list.into_iter().flatten().filter(|(kind, _)| *kind == NFTA_LIST_ELEM);
        Ok::<_, Truncated>(Some(elements.map(|(_, value)| raw(Attributes::within(value))).collect::<Vec<_>>()))
    })?;
    Ok(batches.into_iter().flatten().collect())
}

fn raw(attributes: Attributes<'_>) -> Raw {
    let mut raw = Raw::default();
    for (kind, value) in attributes {
        let inner = Attributes::within(value);
        match kind {
            NFTA_KEY => raw.key = inner.get(NFTA_VALUE).unwrap_or_default().to_vec(),
            NFTA_DATA => {
                let verdict = inner.get(NFTA_VERDICT).map(Attributes::within);
                raw.value = inner.get(NFTA_VALUE).map(<[u8]>::to_vec);
                raw.chain = verdict.and_then(goto);
            }
            NFTA_FLAGS => {
                let flags = value.try_into().map_or(0, u32::from_be_bytes);
                raw.end = flags & INTERVAL_END != 0;
                raw.strange |= flags & !INTERVAL_END != 0;
            }
            NFTA_USERDATA => raw.comment = comment(value),
            NFTA_PAD => {}
            // A time-out, a counter, an end of its own: no element of ours.
            _ => raw.strange = true,
        }
    }
    raw
}

fn goto(verdict: Attributes<'_>) -> Option<String> {
    let code = verdict.get(NFTA_VERDICT_CODE)?.try_into().map(i32::from_be_bytes).ok()?;
    verdict.get(NFTA_VERDICT_CHAIN).filter(|_| code == NFT_GOTO).map(text)
}

/// Kind, length, value, one after the other without padding.
fn comment(mut data: &[u8]) -> Option<String> {
    while let [kind, length, rest @ ..] = data {
        let value = rest.get(..usize::from(*length))?;
        if *kind == UDATA_COMMENT {
            return Some(text(value));
        }
        data = &rest[value.len()..];
    }
    None
}

fn single(set: Set, raw: &[Raw]) -> Option<BTreeMap<Key, Element>> {
    raw.iter().map(|raw| element(set, raw)).collect()
}

fn element(set: Set, raw: &Raw) -> Option<(Key, Element)> {
    let value = match set.role.value() {
        None => None,
        Some(ValueKind::Address) => Some(Value::Address(address(raw.value.as_deref()?)?)),
        Some(ValueKind::Way) => Some(Value::Way(Way::named(raw.chain.as_deref()?)?)),
    };
    let plain = !raw.strange && !raw.end;
    Some((key(set, &raw.key)?, Element { value, comment: raw.comment.clone() })).filter(|_| plain)
}

/// The parts of a key, each filled up to a multiple of four bytes.
fn key(set: Set, bytes: &[u8]) -> Option<Key> {
    let (ip, rest) = bytes.split_at_checked(if set.v6 { 16 } else { 4 })?;
    let ip = address(ip)?;
    match (set.role.key(), rest) {
        ([PartKind::Address], []) => Some(Key::Source(ip)),
        ([PartKind::Address, PartKind::Address], with) => Some(Key::Pair(ip, address(with)?)),
        ([PartKind::Address, PartKind::Link], link) => Some(Key::Exit(ip, text(link))),
        ([PartKind::Address, PartKind::Protocol, PartKind::Port], [protocol, _, _, _, high, low, ..]) => {
            Some(Key::Entry(ip, transport(*protocol)?, u16::from_be_bytes([*high, *low])))
        }
        _ => None,
    }
}

/// The transport protocol of that number.
fn transport(of: u8) -> Option<Transport> {
    [Transport::Tcp, Transport::Udp, Transport::Sctp].into_iter().find(|transport| number(*transport) == of)
}

/// The number of a transport protocol.
pub(super) fn number(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp => 6,
        Transport::Udp => 17,
        Transport::Sctp => 132,
    }
}

/// The prefixes of an interval set. It holds where each interval begins, and the first address behind it where there is
/// one; where nothing is in front of the first interval, that is said too, by an end at the first address of all.
fn prefixes(raw: &[Raw]) -> Option<BTreeMap<Key, Element>> {
    let mut bounds: Vec<(IpAddr, &Raw)> =
        raw.iter().map(|raw| Some((address(&raw.key)?, raw))).collect::<Option<_>>()?;
    // Where one ends and the next begins at the same address the end comes first.
    bounds.sort_by_key(|(ip, raw)| (*ip, !raw.end));
    let mut elements = BTreeMap::new();
    let begins = bounds.iter().enumerate().filter(|(_, (_, raw))| !raw.end);
    for (place, (first, raw)) in begins {
        let behind = bounds.get(place + 1).map(|(ip, _)| *ip);
        let element = Element { value: None, comment: raw.comment.clone() };
        let net = between(*first, behind)?;
        elements.insert(Key::Prefix(net), element);
    }
    (!raw.iter().any(|raw| raw.strange)).then_some(elements)
}

/// The prefix from `first` up to what is before `behind`, or up to the last address.
fn between(first: IpAddr, behind: Option<IpAddr>) -> Option<IpNet> {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let width: u8 = if first.is_ipv4() { 32 } else { 128 };
    let last = u128::MAX >> (128 - u32::from(width));
    let end = behind.map_or(Some(last), |behind| bits(behind).checked_sub(1))?;
    let host = (end ^ bits(first)).trailing_ones();
    let net = IpNet::new(first, width - u8::try_from(host).ok()?).ok()?;
    (bits(net.network()) == bits(first) && bits(net.broadcast()) == end).then_some(net)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_prefix_or_none() {
        let between = |first: &str, behind: Option<&str>| {
            between(first.parse().unwrap(), behind.map(|ip| ip.parse().unwrap())).map(|net| net.to_string())
        };
        let is = |net: &str| Some(net.to_owned());
        assert_eq!(between("10.0.0.0", Some("11.0.0.0")), is("10.0.0.0/8"));
        assert_eq!(between("10.3.0.1", Some("10.3.0.2")), is("10.3.0.1/32"));
        assert_eq!(between("224.0.0.0", None), is("224.0.0.0/3"));
        assert_eq!(between("0.0.0.0", None), is("0.0.0.0/0"));
        assert_eq!(between("::", None), is("::/0"));
        assert_eq!(between("fe80::", Some("fec0::")), is("fe80::/10"));
        assert_eq!(between("10.0.0.0", Some("10.0.0.3")), None);
        assert_eq!(between("10.0.0.1", Some("10.0.0.3")), None);
        assert_eq!(between("10.0.0.0", Some("10.0.0.0")), None);
        assert_eq!(between("0.0.0.0", Some("0.0.0.0")), None);
    }
}
