//! Whether somebody has an address.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::frame;
use super::{Mac, Port};

/// One question may be lost, and two.
const QUESTIONS: u32 = 3;
/// RFC 5227 waits seconds, for hosts that are starting up on wires of its time. Who has an address today answers within a
/// few milliseconds, and while one waits nobody serves the address.
const GAP: Duration = Duration::from_millis(80);

/// Who has this address on this link?
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question {
    pub(crate) ip: IpAddr,
    pub(crate) link: String,
    /// The link's own hardware address.
    pub(crate) mac: [u8; 6],
}

/// Those of the addresses that somebody has, or is about to take, with who it is. All are asked for at the same time.
pub(crate) fn probe(questions: &[Question]) -> io::Result<BTreeMap<Question, Mac>> {
    let mut taken = BTreeMap::new();
    if questions.is_empty() {
        return Ok(taken);
    }
    let mut ports = BTreeMap::new();
    for question in questions {
        let key = (question.link.as_str(), question.ip.is_ipv6());
        if let Entry::Vacant(place) = ports.entry(key) {
            place.insert(Port::open(&question.link, question.ip.is_ipv6())?);
        }
    }
    for _ in 0..QUESTIONS {
        for question in questions {
            let port = &ports[&(question.link.as_str(), question.ip.is_ipv6())];
            port.send(&frame::question(question.mac, question.ip))?;
        }
        let end = Instant::now() + GAP;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            wait(ports.values(), left)?;
            for ((link, v6), port) in &mut ports {
                while let Some(frame) = port.receive()? {
                    let asked =
                        questions.iter().filter(|question| question.link == *link && question.ip.is_ipv6() == *v6);
                    taken.extend(asked.filter_map(|question| Some((question.clone(), other(&frame, question)?))));
                }
            }
        }
    }
    Ok(taken)
}

/// Who else than we claims it.
fn other(frame: &[u8], question: &Question) -> Option<Mac> {
    frame::claimant(frame, question.ip).filter(|mac| mac.0 != question.mac)
}

fn wait<'a>(ports: impl Iterator<Item = &'a Port>, left: Duration) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = ports.map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN)).collect();
    // Rounded up, so that the last part of a millisecond is not spent turning round.
    let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::ZERO);
    match poll(&mut fds, left) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
