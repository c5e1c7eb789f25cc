//! A socket for frames of one link.

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::sys::socket::bind;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::frame::{ICMPV6_KIND_AT, KINDS, NEXT_HEADER_AT, SENDER_AT};

/// Longer than any frame that is looked at.
pub(super) const LONGEST: usize = 256;

/// A socket for ARP, or for neighbour discovery, on one link.
#[derive(Debug)]
pub(crate) struct Port(Socket);

impl Port {
    pub(super) fn open(link: &str, v6: bool) -> io::Result<Self> {
        let kind = u16::try_from(if v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_ARP }).expect("two bytes on the wire");
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(i32::from(kind.to_be()))))?;
        if v6 {
            socket.attach_filter(&neighbour_discovery())?;
        }
        // The address of a packet socket has no safe constructor. The one that the link is listed with says everything
        // but the protocol, and the kernel keeps the one that the socket has.
        let mut listed = getifaddrs()?.filter(|listed| listed.interface_name == link);
        let address = listed.find_map(|listed| listed.address?.as_link_addr().copied()).ok_or(Errno::ENODEV)?;
        bind(socket.as_raw_fd(), &address)?;
        socket.set_nonblocking(true)?;
        let mut port = Self(socket);
        // What came by other links before the socket was bound to this one.
        while port.receive()?.is_some() {}
        Ok(port)
    }

    /// Lets through only ARP from one of these addresses, and from nobody: the question before an address is taken.
    pub(super) fn only_claims_of(&self, ips: &[Ipv4Addr]) -> io::Result<()> {
        let load = SockFilter::new(code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), 0, 0, SENDER_AT);
        let senders = ips.iter().copied().chain([Ipv4Addr::UNSPECIFIED]);
        let pass = senders.flat_map(|ip| [jump_if(ip.into(), 0, 1), answer(u32::MAX)]);
        self.0.attach_filter(&std::iter::once(load).chain(pass).chain([answer(0)]).collect::<Vec<_>>())
    }

    /// The same socket, as one that a runtime can wait for: it asks its family of none.
    pub(super) fn into_datagrams(self) -> UdpSocket {
        self.0.into()
    }

    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.0.send(frame).map(drop)
    }

    /// The next frame, cut to a length that is enough; absent if there is none yet.
    pub(super) fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; LONGEST];
        match self.0.read(&mut frame) {
            Ok(length) => {
                frame.truncate(length);
                Ok(Some(frame))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Lets through solicitations and advertisements only: a link may carry a lot of IPv6.
fn neighbour_discovery() -> [SockFilter; 7] {
    let load = |at| SockFilter::new(code(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS), 0, 0, at);
    [
        load(NEXT_HEADER_AT),
        jump_if(58, 0, 4),
        load(ICMPV6_KIND_AT),
        jump_if(KINDS[0].into(), 1, 0),
        jump_if(KINDS[1].into(), 0, 1),
        answer(u32::MAX),
        answer(0),
    ]
}

/// Skips so many instructions if what was loaded is `value`, and so many if not.
fn jump_if(value: u32, then: u8, otherwise: u8) -> SockFilter {
    SockFilter::new(code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K), then, otherwise, value)
}

/// Keeps so much of the frame.
fn answer(length: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_RET | libc::BPF_K), 0, 0, length)
}

fn code(code: u32) -> u16 {
    u16::try_from(code).expect("codes of the filter have 16 bits")
}
