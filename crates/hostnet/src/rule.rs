//! Rules of policy routing.

use egret_hostmodel::{Mark, Rule, RuleAction};
use ipnet::IpNet;
use nix::libc;

use crate::link::family;
use crate::netlink::{Attributes, Fault, Message, Socket, Truncated, address, text, u32_ne};

/// `struct fib_rule_hdr`.
const FIXED: usize = 12;

// linux/fib_rules.h
const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_GOTO: u16 = 4;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_SUPPRESS_IFGROUP: u16 = 13;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_FWMASK: u16 = 16;
const FRA_PAD: u16 = 18;
const FRA_PROTOCOL: u16 = 21;
const FRA_SPORT_RANGE: u16 = 23;
const FRA_SPORT_MASK: u16 = 28;
const TO_TABLE: u8 = 1;
const GOTO: u8 = 2;
const NOP: u8 = 3;
const UNREACHABLE: u8 = 7;
/// All but what the kernel says about itself: the goal of a jump is not there, the link is not there.
const FLAGS: u32 = !(4 | 8);

/// A rule as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRule {
    pub(crate) v6: bool,
    pub(crate) priority: u32,
    pub(crate) protocol: u8,
    /// Absent if it says something that none of ours does.
    pub(crate) rule: Option<Rule>,
}

/// All rules, in the kernel's order within each family.
pub(crate) fn rules(socket: &mut Socket) -> Result<Vec<FoundRule>, Fault> {
    // One request for all families: a kernel without IPv6 refuses to be asked for its rules.
    let request = Message::new(libc::RTM_GETRULE, libc::NLM_F_DUMP, &[0; FIXED]);
    socket.dump(&request, libc::RTM_NEWRULE, found)
}

fn found(payload: &[u8]) -> Result<Option<FoundRule>, Truncated> {
    let attributes = Attributes::after(payload, FIXED)?;
    let v6 = match payload[0] {
        number if number == family(false) => false,
        number if number == family(true) => true,
        // Rules of multicast routing are dumped with the others.
        _ => return Ok(None),
    };
    let protocol = attributes.get(FRA_PROTOCOL).and_then(|value| value.first()).copied().unwrap_or(0);
    let priority = attributes.u32(FRA_PRIORITY).unwrap_or(0);
    Ok(Some(FoundRule { v6, priority, protocol, rule: understood(payload, attributes, v6, priority) }))
}

fn understood(payload: &[u8], attributes: Attributes<'_>, v6: bool, priority: u32) -> Option<Rule> {
    let fixed = &payload[..FIXED];
    if fixed[3] != 0 || u32_ne(&fixed[8..])? & FLAGS != 0 || attributes.into_iter().any(says_more) {
        return None;
    }
    let net = |kind, length| {
        let all = IpNet::new(if v6 { [0; 16].into() } else { [0; 4].into() }, length).ok();
        (length > 0).then(|| attributes.get(kind).and_then(address).map_or(all, |ip| IpNet::new(ip, length).ok()))
    };
    let mark = Mark { value: attributes.u32(FRA_FWMARK).unwrap_or(0), mask: attributes.u32(FRA_FWMASK).unwrap_or(0) };
    let action = match fixed[7] {
        TO_TABLE => RuleAction::Lookup(attributes.u32(FRA_TABLE).unwrap_or_else(|| u32::from(fixed[4]))),
        GOTO => RuleAction::Goto(attributes.u32(FRA_GOTO)?),
        NOP => RuleAction::Nop,
        UNREACHABLE => RuleAction::Unreachable,
        _ => return None,
    };
    let source_port = match attributes.get(FRA_SPORT_RANGE).map(<[u8]>::as_chunks::<2>) {
        Some(([first, last], [])) if first == last => Some(u16::from_ne_bytes(*first)),
        Some(_) => return None,
        None => None,
    };
    Some(Rule {
        v6,
        priority,
        from: net(FRA_SRC, fixed[2]).flatten(),
        to: net(FRA_DST, fixed[1]).flatten(),
        mark: (mark.mask != 0).then_some(mark),
        incoming: attributes.get(FRA_IIFNAME).map(text),
        source_port,
        action,
    })
}

/// Whether an attribute narrows a rule by what none of ours knows.
fn says_more((kind, value): (u16, &[u8])) -> bool {
    match kind {
        FRA_DST | FRA_SRC | FRA_IIFNAME | FRA_GOTO | FRA_PRIORITY | FRA_FWMARK | FRA_FWMASK | FRA_TABLE | FRA_PAD
        | FRA_PROTOCOL | FRA_SPORT_RANGE => false,
        // The kernel says these of every rule, with all bits set if nobody asked for them.
        FRA_SUPPRESS_IFGROUP | FRA_SUPPRESS_PREFIXLEN | FRA_SPORT_MASK => value.iter().any(|byte| *byte != 0xff),
        _ => true,
    }
}

/// The request that adds a rule, unless the kernel finds it there already. It takes one that says more for it.
pub(crate) fn add_new(rule: &Rule, protocol: u8) -> Message {
    request(libc::RTM_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_EXCL, rule, protocol)
}

/// The request that adds a rule, whatever is there.
pub(crate) fn add(rule: &Rule, protocol: u8) -> Message {
    request(libc::RTM_NEWRULE, libc::NLM_F_CREATE, rule, protocol)
}

/// The request that deletes the first rule that has all that this one says; see [`blurred`].
pub(crate) fn delete(rule: &Rule, protocol: u8) -> Message {
    request(libc::RTM_DELRULE, 0, rule, protocol)
}

fn request(kind: u16, flags: i32, rule: &Rule, protocol: u8) -> Message {
    let length = |net: Option<IpNet>| net.map_or(0, |net| net.prefix_len());
    let action = match rule.action {
        RuleAction::Lookup(_) => TO_TABLE,
        RuleAction::Unreachable => UNREACHABLE,
        RuleAction::Goto(_) => GOTO,
        RuleAction::Nop => NOP,
    };
    let fixed = [family(rule.v6), length(rule.to), length(rule.from), 0, 0, 0, 0, action, 0, 0, 0, 0];
    let mut message = Message::new(kind, flags | libc::NLM_F_ACK, &fixed)
        .with_u32(FRA_PRIORITY, rule.priority)
        .with(FRA_PROTOCOL, &[protocol]);
    for (kind, net) in [(FRA_SRC, rule.from), (FRA_DST, rule.to)] {
        if let Some(net) = net {
            message = message.with_ip(kind, net.network());
        }
    }
    if let Some(mark) = rule.mark {
        message = message.with_u32(FRA_FWMARK, mark.value).with_u32(FRA_FWMASK, mark.mask);
    }
    if let Some(link) = &rule.incoming {
        message = message.with_text(FRA_IIFNAME, link);
    }
    if let Some(port) = rule.source_port {
        message = message.with(FRA_SPORT_RANGE, &[port.to_ne_bytes(), port.to_ne_bytes()].concat());
    }
    match rule.action {
        RuleAction::Lookup(table) => message.with_u32(FRA_TABLE, table),
        RuleAction::Goto(priority) => message.with_u32(FRA_GOTO, priority),
        RuleAction::Unreachable | RuleAction::Nop => message,
    }
}

/// Whether the kernel, told to delete `wanted`, would also take `other` for it: what a request does not say it does not
/// compare, nor where a jump goes to.
pub(crate) fn blurred(wanted: &Rule, other: &Rule) -> bool {
    fn same<T: PartialEq>(wanted: Option<&T>, other: Option<&T>) -> bool {
        wanted.is_none() || wanted == other
    }
    let mark = match (wanted.mark, other.mark) {
        (None, _) => true,
        (Some(wanted), Some(other)) => wanted.mask == other.mask && (wanted.value == 0 || wanted == other),
        (Some(_), None) => false,
    };
    let action = match (wanted.action, other.action) {
        (RuleAction::Goto(_), RuleAction::Goto(_)) => true,
        (wanted, other) => wanted == other,
    };
    (wanted.v6, wanted.priority) == (other.v6, other.priority)
        && action
        && mark
        && same(wanted.from.as_ref(), other.from.as_ref())
        && same(wanted.to.as_ref(), other.to.as_ref())
        && same(wanted.incoming.as_ref(), other.incoming.as_ref())
        && same(wanted.source_port.as_ref(), other.source_port.as_ref())
}
