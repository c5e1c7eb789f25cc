//! Elements changed by messages of our own.
//!
//! nft closes its socket when it ends, and the kernel then waits until what the transaction took away is freed: 10 to 20 ms.
//! A socket that stays open does not wait, and no program has to be started: one endpoint's change takes 30 ms instead of 72
//! beside a thousand others.

use std::net::IpAddr;

use egret_hostmodel::{Element, Elements, Key, PartKind, Set, TABLE, Transport, Value};
use nix::libc;

use super::elements::{
    NFT_GOTO, NFT_MSG_NEWSETELEM, NFTA_DATA, NFTA_KEY, NFTA_LIST_ELEM, NFTA_LIST_ELEMENTS, NFTA_LIST_SET,
    NFTA_LIST_TABLE, NFTA_USERDATA, NFTA_VALUE, NFTA_VERDICT, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CODE, UDATA_COMMENT,
    number,
};
use super::{NFNL_SUBSYS_NFTABLES, NFPROTO_INET};
use crate::netlink::Message;

// linux/netfilter/nf_tables.h, nfnetlink.h
const NFNL_MSG_BATCH_BEGIN: u16 = 16;
const NFNL_MSG_BATCH_END: u16 = 17;
const NFT_MSG_DELSETELEM: u16 = 14;
/// Every batch fits into the socket's buffer, and every list into an attribute.
const MOST: usize = 500;
const AT_ONCE: usize = 100;
/// The kernel's longest name of a link, with the zero at its end.
const LINK: usize = 16;

/// The messages of one transaction; none if it is too large, or about intervals, which are not stored as they are said.
pub(super) fn messages(out: &Elements, into: &Elements) -> Option<Vec<Message>> {
    let sets = || out.iter().chain(into);
    let all: usize = sets().map(|(_, elements)| elements.len()).sum();
    if all == 0 || all > MOST || sets().any(|(set, _)| set.role.key() == [PartKind::Prefix]) {
        return None;
    }
    let mut changes: Vec<(u16, i32, Set, Vec<Message>)> = Vec::new();
    for (kind, flags, elements) in [(NFT_MSG_DELSETELEM, 0, out), (NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE, into)] {
        for (set, elements) in elements {
            let elements: Vec<Message> = elements.iter().map(|(key, element)| one(key, element)).collect();
            changes.extend(elements.chunks(AT_ONCE).map(|some| (kind, flags, *set, some.to_vec())));
        }
    }
    let last = changes.len() - 1;
    let changes = changes.into_iter().enumerate().map(|(place, (kind, flags, set, elements))| {
        // The one answer tells of the whole transaction.
        let flags = if place == last { flags | libc::NLM_F_ACK } else { flags };
        Message::new(NFNL_SUBSYS_NFTABLES << 8 | kind, flags, &[NFPROTO_INET, 0, 0, 0])
            .with_text(NFTA_LIST_TABLE, TABLE)
            .with_text(NFTA_LIST_SET, &set.to_string())
            .with_nested(NFTA_LIST_ELEMENTS, |list| elements.into_iter().fold(list, within))
    });
    Some([edge(NFNL_MSG_BATCH_BEGIN)].into_iter().chain(changes).chain([edge(NFNL_MSG_BATCH_END)]).collect())
}

fn edge(kind: u16) -> Message {
    let [high, low] = NFNL_SUBSYS_NFTABLES.to_be_bytes();
    Message::new(kind, 0, &[0, 0, high, low])
}

fn within(list: Message, element: Message) -> Message {
    list.with_nested(NFTA_LIST_ELEM, |inner| inner.with_all(&element.into_bytes()))
}

fn one(key: &Key, element: &Element) -> Message {
    let message = Message::bare().with_nested(NFTA_KEY, |inner| inner.with(NFTA_VALUE, &bytes(key)));
    let message = match &element.value {
        None => message,
        Some(Value::Address(ip)) => message.with_nested(NFTA_DATA, |data| data.with_ip(NFTA_VALUE, *ip)),
        Some(Value::Way(way)) => message.with_nested(NFTA_DATA, |data| {
            data.with_nested(NFTA_VERDICT, |verdict| {
                let verdict = verdict.with(NFTA_VERDICT_CODE, &NFT_GOTO.to_be_bytes());
                verdict.with_text(NFTA_VERDICT_CHAIN, &way.chain())
            })
        }),
    };
    match element.comment.as_deref().and_then(|comment| Some((u8::try_from(comment.len() + 1).ok()?, comment))) {
        Some((length, comment)) => {
            let data = [&[UDATA_COMMENT, length], comment.as_bytes(), &[0]].concat();
            message.with(NFTA_USERDATA, &data)
        }
        None => message,
    }
}

/// The parts of a key, each filled up to a multiple of four bytes.
fn bytes(key: &Key) -> Vec<u8> {
    let ip = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    match key {
        Key::Source(source) => ip(source),
        Key::Pair(source, with) => [ip(source), ip(with)].concat(),
        Key::Exit(source, link) => {
            let mut bytes = [ip(source), link.as_bytes().to_vec()].concat();
            bytes.resize(ip(source).len() + LINK, 0);
            bytes
        }
        Key::Entry(address, transport, port) => entry(ip(address), *transport, *port),
        Key::Prefix(net) => ip(&net.addr()),
    }
}

fn entry(address: Vec<u8>, transport: Transport, port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    [address, vec![number(transport), 0, 0, 0, high, low, 0, 0]].concat()
}
