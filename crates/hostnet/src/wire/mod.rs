//! Who has an address on the wire: asked before it is taken, told after.

pub(crate) mod claims;
mod frame;
mod port;
mod probe;

use std::fmt;
use std::io;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::link::FoundLink;
pub use claims::Claims;
pub(crate) use port::Port;
pub(crate) use probe::{Question, probe};

/// A hardware address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.map(|byte| format!("{byte:02x}"));
        f.write_str(&bytes.join(":"))
    }
}

/// Tells the neighbours on a link that an address is here. A link that has none to tell needs nothing.
pub(crate) fn announce(ip: IpAddr, link: &FoundLink) -> io::Result<()> {
    let Some(mac) = link.ethernet else { return Ok(()) };
    let port = Port::open(&link.link.name, ip.is_ipv6())?;
    frame::announcements(mac, ip).iter().try_for_each(|frame| port.send(frame))
}
