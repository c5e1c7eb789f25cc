//! One question, one answer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::reply::{Reply, Silence};
use super::respond::Responder;
use super::{LONGEST, echo, next_number, question, told};
use crate::address::Family;
use crate::namespace::Namespace;

/// How a question travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// A connection to the port.
    Tcp,
    /// A datagram to the port.
    Udp,
    /// An echo request.
    Icmp,
}

impl Transport {
    /// For tests that try each.
    pub const ALL: [Transport; 3] = [Transport::Tcp, Transport::Udp, Transport::Icmp];
}

/// A client: where it is, what it is called, and how long it waits.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) name: &'a str,
    /// Its own address, where it does not leave the choice to the kernel.
    pub(crate) from: Option<IpAddr>,
    pub(crate) limit: Duration,
}

impl Client<'_> {
    pub(crate) fn ask(&self, transport: Transport, to: SocketAddr, responder: &Responder) -> Reply {
        let answered = self.namespace.inside(|| match transport {
            Transport::Tcp => self.tcp(to),
            Transport::Udp => self.udp(to),
            Transport::Icmp => self.icmp(to.ip(), responder),
        });
        answered.unwrap_or_else(|error| Reply::Silence(Silence::from(error)))
    }

    fn socket(&self, to: IpAddr, kind: Type, protocol: Option<socket2::Protocol>) -> io::Result<Socket> {
        let socket = Socket::new(if to.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 }, kind, protocol)?;
        if let Some(from) = self.from {
            socket.bind(&SocketAddr::new(from, 0).into())?;
        }
        Ok(socket)
    }

    fn tcp(&self, to: SocketAddr) -> io::Result<Reply> {
        let deadline = Instant::now() + self.limit;
        let mut socket = self.socket(to.ip(), Type::STREAM, None)?;
        socket.connect_timeout(&to.into(), self.limit)?;
        let number = next_number();
        writeln!(socket, "{}", question(self.name, number))?;
        socket.set_read_timeout(Some(rest(deadline)?))?;
        let mut line = Vec::new();
        BufReader::new(socket).read_until(b'\n', &mut line)?;
        reply(&line, number).ok_or_else(|| io::ErrorKind::ConnectionReset.into())
    }

    fn udp(&self, to: SocketAddr) -> io::Result<Reply> {
        let deadline = Instant::now() + self.limit;
        let mut socket = self.socket(to.ip(), Type::DGRAM, None)?;
        socket.connect(&to.into())?;
        let number = next_number();
        socket.send(question(self.name, number).as_bytes())?;
        let mut buffer = [0; LONGEST];
        loop {
            socket.set_read_timeout(Some(rest(deadline)?))?;
            let length = socket.read(&mut buffer)?;
            if let Some(reply) = reply(&buffer[..length], number) {
                return Ok(reply);
            }
        }
    }

    fn icmp(&self, to: IpAddr, responder: &Responder) -> io::Result<Reply> {
        let deadline = Instant::now() + self.limit;
        let family = Family::of(to);
        let mut socket = self.socket(to, Type::RAW, Some(echo::protocol(to)))?;
        socket.connect(&SocketAddr::new(to, 0).into())?;
        let number = next_number();
        // Connections are told apart by it: each question gets its own way through NAT.
        let identifier = u16::try_from(number & 0xffff).expect("16 bits");
        let text = question(self.name, number);
        socket.send(&echo::request(family, &text, identifier))?;
        let mut buffer = [0; LONGEST];
        loop {
            socket.set_read_timeout(Some(rest(deadline)?))?;
            let length = socket.read(&mut buffer)?;
            if echo::carried(family, &buffer[..length], true) == Some(text.as_bytes()) {
                break;
            }
        }
        let seen = responder.who_saw(number, deadline).ok_or(io::ErrorKind::TimedOut)?;
        Ok(Reply::Answer { server: seen.server, source: seen.source })
    }
}

/// A time-out of zero would mean none.
fn rest(deadline: Instant) -> io::Result<Duration> {
    let rest = deadline.checked_duration_since(Instant::now()).filter(|rest| *rest > Duration::ZERO);
    rest.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

fn reply(text: &[u8], number: u64) -> Option<Reply> {
    let told = told(text).filter(|told| told.number == number)?;
    Some(Reply::Answer { server: told.server.to_owned(), source: told.source })
}
