//! A segment of no connection.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

const FIN_AND_ACK: u8 = 0x11;

/// Sends the end of a TCP connection that nobody has opened, from whichever address the kernel chooses.
pub(crate) fn send(to: IpAddr, port: u16) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(SocketAddr::new(to, 0)), Type::RAW, Some(Protocol::TCP))?;
    let mut segment = [0; 20];
    segment[..2].copy_from_slice(&40_000_u16.to_be_bytes());
    segment[2..4].copy_from_slice(&port.to_be_bytes());
    segment[7] = 1;
    segment[11] = 1;
    // Its length, in fours.
    segment[12] = 5 << 4;
    segment[13] = FIN_AND_ACK;
    // Without a checksum: whoever looks for its connection finds none, whoever checks it finds it broken.
    socket.send_to(&segment, &SocketAddr::new(to, 0).into()).map(drop)
}
