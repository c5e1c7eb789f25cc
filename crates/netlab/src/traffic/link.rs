//! A socket of a flow, which never waits.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;

use nix::errno::Errno;
use socket2::{Domain, Socket, Type};

use super::LONGEST;
use super::flow::Kind;
use crate::namespace::Namespace;

/// A socket of a flow.
#[derive(Debug)]
pub(super) enum Link {
    Datagrams(UdpSocket),
    Stream { stream: TcpStream, connected: bool, unsent: Vec<u8>, unread: Vec<u8> },
}

impl Link {
    /// Opens one in the namespace, on a thread that is nobody else's and that opens all its sockets so.
    pub(super) fn open(namespace: &Namespace, kind: Kind, to: SocketAddr) -> io::Result<Self> {
        namespace.enter()?;
        let stream = matches!(kind, Kind::Tcp | Kind::TcpEach);
        let socket = Socket::new(Domain::for_address(to), if stream { Type::STREAM } else { Type::DGRAM }, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
            other => other?,
        }
        if !stream {
            return Ok(Link::Datagrams(socket.into()));
        }
        socket.set_tcp_nodelay(true)?;
        Ok(Link::Stream { stream: socket.into(), connected: false, unsent: Vec::new(), unread: Vec::new() })
    }

    pub(super) fn socket(&self) -> &dyn AsFd {
        match self {
            Link::Datagrams(socket) => socket,
            Link::Stream { stream, .. } => stream,
        }
    }

    pub(super) fn send(&mut self, question: &str) -> io::Result<()> {
        match self {
            Link::Datagrams(socket) => socket.send(question.as_bytes()).map(drop),
            Link::Stream { stream, connected, unsent, .. } => {
                unsent.extend(question.as_bytes());
                unsent.push(b'\n');
                if *connected { flush(stream, unsent) } else { Ok(()) }
            }
        }
    }

    /// Whether the connection has just been made.
    pub(super) fn receive(&mut self, mut heard: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut buffer = [0; LONGEST];
        match self {
            Link::Datagrams(socket) => loop {
                match socket.recv(&mut buffer) {
                    Ok(length) => heard(&buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(error),
                }
            },
            Link::Stream { stream, connected, unsent, unread } => {
                let new = !*connected;
                if new {
                    stream.take_error()?.map_or(Ok(()), Err)?;
                    *connected = true;
                }
                flush(stream, unsent)?;
                loop {
                    match stream.read(&mut buffer) {
                        Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                        Ok(length) => unread.extend(&buffer[..length]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(new),
                        Err(error) => return Err(error),
                    }
                    while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = unread.drain(..=end).collect();
                        heard(&line);
                    }
                }
            }
        }
    }
}

/// What does not fit now goes with the next.
fn flush(stream: &mut TcpStream, unsent: &mut Vec<u8>) -> io::Result<()> {
    while !unsent.is_empty() {
        match stream.write(unsent) {
            Ok(length) => drop(unsent.drain(..length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
