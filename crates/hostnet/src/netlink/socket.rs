//! A socket to the kernel.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::message::{HEADER, Message, Truncated, u16_ne, u32_ne};

/// The kernel answers while it takes the request; one that says nothing for so long never will.
const PATIENCE: i64 = 10;
/// How often a dump is begun anew because something changed while it went on.
const DUMPS: u32 = 20;
/// No dump of the kernel puts more into one datagram.
const DATAGRAM: usize = 1 << 16;
/// A dump that has changes in it; not in `libc`.
const INTERRUPTED: u16 = 0x10;

/// What comes of a request that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The kernel refused it.
    #[error("the kernel says: {0}")]
    Refused(#[source] Errno),
    /// The request could not be sent, or no answer be read.
    #[error("netlink does not answer")]
    Unanswered(#[source] Errno),
    /// Something changed during every try to read it.
    #[error("the kernel's state changes faster than it can be read")]
    Unsteady,
    /// An answer is not what the kernel sends.
    #[error(transparent)]
    Truncated(#[from] Truncated),
}

impl Fault {
    /// What the kernel refused it for.
    pub(crate) fn errno(self) -> Option<Errno> {
        if let Self::Refused(errno) = self { Some(errno) } else { None }
    }
}

/// A socket of one netlink family, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    pub(crate) fn open(family: SockProtocol) -> Result<Self, Errno> {
        let fd = listening(family, 0)?;
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::seconds(PATIENCE))?;
        Ok(Self { fd, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    /// Does what the message says, or nothing.
    pub(crate) fn tell(&mut self, message: Message) -> Result<(), Fault> {
        self.exchange(message, &mut |_, _| {}).map(drop)
    }

    /// What `read` makes of the messages of that kind which the request is answered with, in one piece: asked again if
    /// something changed meanwhile.
    pub(crate) fn dump<T>(
        &mut self,
        request: &Message,
        kind: u16,
        read: impl Fn(&[u8]) -> Result<Option<T>, Truncated>,
    ) -> Result<Vec<T>, Fault> {
        for _ in 0..DUMPS {
            let (mut all, mut truncated) = (Vec::new(), Ok(()));
            let steady = self.exchange(request.clone(), &mut |found, payload| {
                if found == kind {
                    match read(payload) {
                        Ok(one) => all.extend(one),
                        Err(error) => truncated = Err(error),
                    }
                }
            })?;
            truncated?;
            if steady {
                return Ok(all);
            }
        }
        Err(Fault::Unsteady)
    }

    /// Does what all the messages say, or nothing. One of them asks for an answer.
    pub(crate) fn batch(&mut self, messages: Vec<Message>) -> Result<(), Fault> {
        let sequence = self.sequence.wrapping_add(1);
        let bytes = messages.into_iter().flat_map(|message| message.finish(sequence)).collect::<Vec<_>>();
        self.answered(&bytes, &mut |_, _| {}).map(drop)
    }

    /// Hands over what the request is answered with; whether nothing changed meanwhile.
    fn exchange(&mut self, request: Message, take: &mut dyn FnMut(u16, &[u8])) -> Result<bool, Fault> {
        let bytes = request.finish(self.sequence.wrapping_add(1));
        self.answered(&bytes, take)
    }

    fn answered(&mut self, bytes: &[u8], take: &mut dyn FnMut(u16, &[u8])) -> Result<bool, Fault> {
        self.sequence = self.sequence.wrapping_add(1);
        send(self.fd.as_raw_fd(), bytes, MsgFlags::empty()).map_err(Fault::Unanswered)?;
        let mut steady = true;
        loop {
            let length = self.receive()?;
            let mut rest = &self.buffer[..length];
            while let Some(datagram) = Datagram::first(rest) {
                rest = datagram.rest;
                // What is left of a request that was given up.
                if datagram.sequence != self.sequence {
                    continue;
                }
                steady &= datagram.flags & INTERRUPTED == 0;
                match i32::from(datagram.kind) {
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        // A dump that ends without a word ends well.
                        let code = u32_ne(datagram.payload).map_or(0, u32::cast_signed);
                        return if code < 0 { Err(Fault::Refused(Errno::from_raw(-code))) } else { Ok(steady) };
                    }
                    libc::NLMSG_NOOP => {}
                    _ => take(datagram.kind, datagram.payload),
                }
            }
        }
    }

    fn receive(&mut self) -> Result<usize, Fault> {
        loop {
            match recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                other => return other.map_err(Fault::Unanswered),
            }
        }
    }
}

/// A socket that hears what the groups tell, a bit each; 0 for none.
pub(crate) fn listening(family: SockProtocol, groups: u32) -> Result<OwnedFd, Errno> {
    let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, family)?;
    bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(fd)
}

/// One message of several in a row.
pub(crate) struct Datagram<'a> {
    pub(crate) kind: u16,
    flags: u16,
    sequence: u32,
    pub(crate) payload: &'a [u8],
    pub(crate) rest: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// The first of those in `bytes`.
    pub(crate) fn first(bytes: &'a [u8]) -> Option<Self> {
        let length = usize::try_from(u32_ne(bytes)?).ok()?;
        Some(Self {
            kind: u16_ne(bytes.get(4..)?)?,
            flags: u16_ne(bytes.get(6..)?)?,
            sequence: u32_ne(bytes.get(8..)?)?,
            payload: bytes.get(HEADER..length)?,
            rest: bytes.get(length.next_multiple_of(4)..).unwrap_or_default(),
        })
    }
}
