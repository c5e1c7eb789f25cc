//! What the kernel tells without being asked.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use egret_hostmodel::TABLE;
use futures::{Stream, stream};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{MsgFlags, SockProtocol, recv, setsockopt, sockopt};
use tokio::sync::watch;

use crate::OpenError;
use crate::netlink::{Attributes, Datagram, listening, text};
use crate::nft::OVN_TABLE;

/// Long enough to hear a command of many changes to its end, short beside the second in which changes are healed.
const GATHER: Duration = Duration::from_millis(20);
/// The shortest time that can be waited for.
const ROUNDING: Duration = Duration::from_millis(1);
/// What is told while nobody reads is kept up to here; what is lost then is only that there was more.
const KEPT: usize = 1 << 20;

// linux/rtnetlink.h: RTNLGRP_*, of which bit `number - 1` is the mask. The last two are NETCONF: `forwarding` and
// `rp_filter` of links, whoever sets them, also by writing to `/proc/sys`.
const ROUTE_GROUPS: u32 = bit(1) | bit(5) | bit(7) | bit(8) | bit(9) | bit(11) | bit(19) | bit(24) | bit(25);
/// linux/netfilter/nfnetlink.h: `NFNLGRP_NFTABLES`.
const NFTABLES_GROUP: u32 = bit(7);
/// `linux/netfilter/nf_tables.h`: the name of the table, in messages about whatever is in it, and about itself.
const NFTA_TABLE: u16 = 1;
const NFPROTO_INET: u8 = 1;
const NFT_MSG_NEWCHAIN: u8 = 3;
const NFT_MSG_DELCHAIN: u8 = 5;
const NFT_MSG_NEWTABLE: u8 = 0;
const NFT_MSG_DELTABLE: u8 = 2;
/// `struct nfgenmsg`.
const NETFILTER_FIXED: usize = 4;

const fn bit(group: u32) -> u32 {
    1 << (group - 1)
}

/// A thread that listens, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    changed: watch::Receiver<u64>,
    stop: Arc<EventFd>,
}

impl Watch {
    pub(crate) fn start() -> Result<Self, OpenError> {
        let ear = |family, groups| {
            let fd = listening(family, groups).map_err(OpenError::Socket)?;
            // More than the system's limit needs a right that the agent has. Without it less is kept.
            let more = setsockopt(&fd, sockopt::RcvBufForce, &KEPT);
            more.or_else(|_| setsockopt(&fd, sockopt::RcvBuf, &KEPT)).map_err(OpenError::Socket)?;
            Ok(fd)
        };
        let route = ear(SockProtocol::NetlinkRoute, ROUTE_GROUPS)?;
        let netfilter = ear(SockProtocol::NetlinkNetFilter, NFTABLES_GROUP)?;
        let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC).map_err(OpenError::Socket)?);
        let (sender, changed) = watch::channel(0);
        let ears = Ears { route, netfilter, stop: Arc::clone(&stop), buffer: vec![0; 1 << 16] };
        let thread = thread::Builder::new().name("egret-watch".to_owned());
        thread.spawn(move || ears.listen(&sender)).map_err(OpenError::Thread)?;
        Ok(Self { changed, stop })
    }

    pub(crate) fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        let mut changed = self.changed.clone();
        changed.mark_unchanged();
        stream::unfold(changed, async |mut changed| changed.changed().await.ok().map(|()| ((), changed)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Only a counter at its end could refuse, and nobody else counts.
        let _ = self.stop.write(1);
    }
}

struct Ears {
    route: OwnedFd,
    netfilter: OwnedFd,
    stop: Arc<EventFd>,
    buffer: Vec<u8>,
}

impl Ears {
    fn listen(mut self, changed: &watch::Sender<u64>) {
        // When it will be said that something was heard.
        let mut due: Option<Instant> = None;
        loop {
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                changed.send_modify(|count| *count += 1);
                due = None;
                continue;
            }
            // Rounded up: what is left may be less than the millisecond that can be waited for.
            let patience =
                left.map_or(PollTimeout::NONE, |left| (left + ROUNDING).try_into().unwrap_or(PollTimeout::ZERO));
            let [stop, route, netfilter] = match self.wait(patience) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => continue,
                Err(_) => return,
            };
            if stop {
                return;
            }
            let heard = [(route, false), (netfilter, true)].map(|(ready, netfilter)| ready && self.take(netfilter));
            if heard.contains(&true) {
                due = due.or_else(|| Some(Instant::now() + GATHER));
            }
        }
    }

    fn wait(&self, patience: PollTimeout) -> Result<[bool; 3], Errno> {
        let ears = [self.stop.as_fd(), self.route.as_fd(), self.netfilter.as_fd()];
        let mut ears = ears.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        poll(&mut ears, patience)?;
        Ok(ears.map(|ear| ear.any().unwrap_or(true)))
    }

    /// Reads what there is; whether it is about something of ours.
    fn take(&mut self, netfilter: bool) -> bool {
        let fd = if netfilter { &self.netfilter } else { &self.route };
        match recv(fd.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) if netfilter => concerns(&self.buffer[..length]),
            // Or there was more than could be kept.
            Ok(_) | Err(Errno::ENOBUFS) => true,
            Err(_) => false,
        }
    }
}

/// Whether nftables tells about our table, or about whether ovnkube-node has its chains. kube-proxy changes its own all
/// the time.
fn concerns(mut bytes: &[u8]) -> bool {
    while let Some(datagram) = Datagram::first(bytes) {
        bytes = datagram.rest;
        let Ok(attributes) = Attributes::after(datagram.payload, NETFILTER_FIXED) else { continue };
        let table = attributes.get(NFTA_TABLE).map(text).filter(|_| datagram.payload[0] == NFPROTO_INET);
        let about = (datagram.kind & 0xff) as u8;
        let chains = [NFT_MSG_NEWTABLE, NFT_MSG_DELTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_DELCHAIN];
        match table.as_deref() {
            Some(TABLE) => return true,
            Some(OVN_TABLE) if chains.contains(&about) => return true,
            _ => {}
        }
    }
    false
}
