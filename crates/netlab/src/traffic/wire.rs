//! What crosses a network.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use nix::net::if_::if_nameindex;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimeout, RxqOvfl};
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeVal;
use socket2::{Domain, Protocol as Number, Socket, Type};

use super::asked;
use crate::error::LabError;
use crate::namespace::Namespace;

/// Every protocol, as packet(7) has it.
const EVERYTHING: u16 = 0x0003;

/// What packet(7) says of frames that leave.
const OUTGOING: u8 = 4;

/// Enough of a packet for its headers and for the question in it.
const SNAP: usize = 256;

/// Room for what arrives while the thread does not run: a second of what 200 pods send at 50 packets a second.
const BUFFER: usize = 32 << 20;

/// How often the thread looks whether it is to end.
const TICK_MICROSECONDS: i64 = 20_000;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Echoes of ICMP, in both families.
    Icmp,
    /// Errors of ICMP, in both families: what a host or a router says of somebody's packet, which it quotes.
    IcmpError,
    /// ARP and neighbour discovery. Source and destination are the sender's address and the one that it is about.
    Neighbour,
    /// Group membership, router discovery, and whatever else hosts say unasked.
    Chatter,
    /// Another one, by its number.
    Other(u8),
}

/// Packets that are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packet {
    /// The host that sent them, as it is plugged in.
    pub from: String,
    /// Their source address.
    pub source: IpAddr,
    /// Their destination address.
    pub destination: IpAddr,
    /// What they are.
    pub protocol: Protocol,
    /// The lower of the two ports, which is the server's; 0 without ports.
    pub port: u16,
    /// Whose question or whose answer they carry, if any.
    pub client: Option<String>,
}

/// Packets that are alike, counted.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What they have in common.
    pub packet: Packet,
    /// How many there were.
    pub count: u64,
    /// When the first one was seen.
    pub first: Instant,
    /// When the last one was.
    pub last: Instant,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packet { from, source, destination, protocol, port, client } = &self.packet;
        write!(f, "{} x from {from}: {source} > {destination} {protocol:?} {port}", self.count)?;
        client.as_ref().map_or(Ok(()), |client| write!(f, " of {client}"))
    }
}

/// A capture of a whole network. It ends when this is dropped.
#[derive(Debug)]
pub struct Wire {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    seen: Mutex<HashMap<Packet, (u64, Instant, Instant)>>,
    packets: AtomicU64,
    lost: AtomicU64,
    end: AtomicBool,
}

impl Wire {
    pub(crate) fn start(switch: &Namespace) -> Result<Self, LabError> {
        let failed = |source| LabError::Socket { place: switch.name().to_owned(), source };
        let (socket, ports) = switch.inside(|| Ok((open()?, ports()?))).map_err(failed)?;
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            packets: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            end: AtomicBool::new(false),
        });
        let thread = thread::Builder::new().name("wire".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.capture(&socket, &ports)
        });
        Ok(Self { shared, thread: Some(thread.map_err(failed)?) })
    }

    /// Everything that was seen, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        let seen = self.shared.seen();
        let mut all: Vec<Seen> = seen
            .iter()
            .map(|(packet, (count, first, last))| Seen {
                packet: packet.clone(),
                count: *count,
                first: *first,
                last: *last,
            })
            .collect();
        all.sort_by(|one, other| one.packet.cmp(&other.packet));
        all
    }

    /// What was seen and is not allowed. What hosts say for themselves, [`Protocol::Neighbour`] and
    /// [`Protocol::Chatter`], is never among it: look for that in [`Wire::seen`].
    #[must_use]
    pub fn wrong(&self, allowed: impl Fn(&Packet) -> bool) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|seen| {
            !matches!(seen.packet.protocol, Protocol::Neighbour | Protocol::Chatter) && !allowed(&seen.packet)
        });
        seen
    }

    /// The same, but only what was seen at that time or later.
    #[must_use]
    pub fn wrong_since(&self, since: Instant, allowed: impl Fn(&Packet) -> bool) -> Vec<Seen> {
        let mut wrong = self.wrong(allowed);
        wrong.retain(|seen| seen.last >= since);
        wrong
    }

    /// Whether such a packet has been seen.
    #[must_use]
    pub fn has(&self, wanted: impl Fn(&Packet) -> bool) -> bool {
        self.shared.seen().keys().any(wanted)
    }

    /// How many packets were looked at.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.shared.packets.load(Ordering::Relaxed)
    }

    /// How many were not seen because the machine was too busy: nothing may be concluded from silence unless it is 0.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Forgets what it has seen so far.
    pub fn clear(&self) {
        self.shared.seen().clear();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, HashMap<Packet, (u64, Instant, Instant)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn capture(&self, socket: &OwnedFd, ports: &HashMap<usize, String>) {
        let mut buffer = [0; SNAP];
        let mut space = nix::cmsg_space!(u32);
        while !self.end.load(Ordering::Relaxed) {
            let mut slices = [io::IoSliceMut::new(&mut buffer)];
            let received = recvmsg::<LinkAddr>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty());
            // Nothing for a while, or a port that went down.
            let Ok(message) = received else { continue };
            for control in message.cmsgs().into_iter().flatten() {
                if let ControlMessageOwned::RxqOvfl(lost) = control {
                    self.lost.store(lost.into(), Ordering::Relaxed);
                }
            }
            let (Some(address), length) = (message.address, message.bytes) else { continue };
            // Every frame leaves by other ports as well, and those are no news. Nor is the bridge itself a port.
            let Some(from) = ports.get(&address.ifindex()).filter(|_| address.pkttype() != OUTGOING) else {
                continue;
            };
            self.packets.fetch_add(1, Ordering::Relaxed);
            if let Some(packet) = read(from, u16::from_be(address.protocol()), &buffer[..length]) {
                let now = Instant::now();
                let mut seen = self.seen();
                let entry = seen.entry(packet).or_insert((0, now, now));
                entry.0 += 1;
                entry.2 = now;
            }
        }
    }
}

fn open() -> io::Result<OwnedFd> {
    // The kernel wants the number in the order of the network.
    let everything = Number::from(i32::from(EVERYTHING.to_be()));
    let socket: OwnedFd = Socket::new(Domain::PACKET, Type::DGRAM, Some(everything))?.into();
    // Without being root outside, what the system allows must do.
    if setsockopt(&socket, RcvBufForce, &BUFFER).is_err() {
        setsockopt(&socket, RcvBuf, &BUFFER)?;
    }
    setsockopt(&socket, RxqOvfl, &1)?;
    setsockopt(&socket, ReceiveTimeout, &TimeVal::new(0, TICK_MICROSECONDS))?;
    Ok(socket)
}

/// The links of the hosts, which are named after them.
fn ports() -> io::Result<HashMap<usize, String>> {
    let links = if_nameindex()?;
    let known = links.iter().filter_map(|link| {
        let name = link.name().to_str().ok().filter(|name| !["lo", "br0"].contains(name))?;
        Some((usize::try_from(link.index()).ok()?, name.to_owned()))
    });
    Ok(known.collect())
}

/// What a packet is, from the header of the network layer on.
fn read(from: &str, kind: u16, bytes: &[u8]) -> Option<Packet> {
    let (source, destination, protocol, rest) = match kind {
        0x0800 => {
            let length = usize::from(bytes.first()? & 0xf) * 4;
            (v4(bytes, 12)?, v4(bytes, 16)?, *bytes.get(9)?, bytes.get(length..)?)
        }
        0x86dd => (v6(bytes, 8)?, v6(bytes, 24)?, *bytes.get(6)?, bytes.get(40..)?),
        0x0806 => return Some(neighbour(from, v4(bytes, 14)?, v4(bytes, 24)?)),
        _ => return None,
    };
    let protocol = match (protocol, rest.first(), source) {
        (6, ..) => Protocol::Tcp,
        (17, ..) => Protocol::Udp,
        (1, Some(0 | 8), _) | (58, Some(128 | 129), _) => Protocol::Icmp,
        (1, ..) | (58, Some(1..=4), _) => Protocol::IcmpError,
        (58, Some(135 | 136), _) => return Some(neighbour(from, source, v6(rest, 8)?)),
        // The header that only group membership reports have is that of hop-by-hop options, 0.
        (2 | 58, ..) | (0, _, IpAddr::V6(_)) => Protocol::Chatter,
        (other, ..) => Protocol::Other(other),
    };
    let port = match protocol {
        Protocol::Tcp | Protocol::Udp => number(rest, 0)?.min(number(rest, 2)?),
        _ => 0,
    };
    let client = asked(rest).map(|(client, _)| client.to_owned());
    Some(Packet { from: from.to_owned(), source, destination, protocol, port, client })
}

fn neighbour(from: &str, source: IpAddr, about: IpAddr) -> Packet {
    let from = from.to_owned();
    Packet { from, source, destination: about, protocol: Protocol::Neighbour, port: 0, client: None }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn v4(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

fn v6(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(octets)))
}
