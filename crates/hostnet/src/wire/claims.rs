//! Who else claims addresses that are here.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use egret_hostmodel::EgressAddress;
use futures::FutureExt as _;
use futures::future::select_all;
use tokio::net::UdpSocket;

use super::port::LONGEST;
use super::{Mac, Port, frame};
use crate::link::FoundLink;

/// More addresses than this are not told apart by the kernel's filter, whose jumps are short, but here.
const FILTERED: usize = 100;

/// Hears whoever claims one of some addresses of this node: asks whether somebody has it before taking it, says that it is
/// theirs, or sends with it.
#[derive(Debug, Default)]
pub struct Claims {
    ears: Vec<Ear>,
}

/// A link, and the addresses on it of one family.
#[derive(Debug)]
struct Ear {
    frames: UdpSocket,
    listens: Listens,
}

/// To what an ear listens.
#[derive(Debug)]
pub(crate) struct Listens {
    link: String,
    /// The node's own hardware addresses: two links of it may be on one wire.
    own: Arc<BTreeSet<[u8; 6]>>,
    ips: Vec<IpAddr>,
}

/// Ports, opened on the thread whose namespace they are of.
pub(crate) fn open<'a>(
    addresses: impl Iterator<Item = &'a EgressAddress>,
    links: &BTreeMap<u32, FoundLink>,
) -> io::Result<Vec<(Port, Listens)>> {
    let mut by_link: BTreeMap<(&str, bool), Vec<IpAddr>> = BTreeMap::new();
    for address in addresses {
        by_link.entry((&address.link, address.ip.is_ipv6())).or_default().push(address.ip);
    }
    let own: Arc<BTreeSet<[u8; 6]>> = Arc::new(links.values().filter_map(|found| found.ethernet).collect());
    let mut open = Vec::new();
    for ((link, v6), ips) in by_link {
        let found = links.values().find(|found| found.link.name == link);
        // Where there are no neighbours nobody claims anything.
        if found.is_none_or(|found| found.ethernet.is_none()) {
            continue;
        }
        let port = Port::open(link, v6)?;
        let v4: Vec<Ipv4Addr> =
            ips.iter().filter_map(|ip| if let IpAddr::V4(ip) = ip { Some(*ip) } else { None }).collect();
        if !v4.is_empty() && v4.len() <= FILTERED {
            port.only_claims_of(&v4)?;
        }
        open.push((port, Listens { link: link.to_owned(), own: Arc::clone(&own), ips }));
    }
    Ok(open)
}

impl Claims {
    /// # Errors
    ///
    /// The runtime cannot wait for a socket.
    pub(crate) fn new(open: Vec<(Port, Listens)>) -> io::Result<Self> {
        let ears = open
            .into_iter()
            .map(|(port, listens)| Ok(Ear { frames: UdpSocket::from_std(port.into_datagrams())?, listens }));
        Ok(Self { ears: ears.collect::<io::Result<_>>()? })
    }

    /// The next claim, and whose it is. Nothing is lost if this is dropped before.
    pub async fn next(&self) -> (EgressAddress, Mac) {
        if self.ears.is_empty() {
            return pending().await;
        }
        select_all(self.ears.iter().map(|ear| ear.hear().boxed())).await.0
    }
}

impl Ear {
    async fn hear(&self) -> (EgressAddress, Mac) {
        loop {
            let mut frame = [0; LONGEST];
            let Ok(()) = self.frames.readable().await else { return pending().await };
            // There may be none after all. A link that is down says so once, and goes on when it is up again.
            let Ok(length) = self.frames.try_recv(&mut frame) else { continue };
            if let Some(claim) = self.listens.claim(&frame[..length]) {
                return claim;
            }
        }
    }
}

impl Listens {
    fn claim(&self, frame: &[u8]) -> Option<(EgressAddress, Mac)> {
        let claims = self.ips.iter().filter_map(|ip| Some((*ip, frame::claimant(frame, *ip)?)));
        let (ip, by) = claims.into_iter().find(|(_, mac)| !self.own.contains(&mac.0))?;
        Some((EgressAddress { ip, link: self.link.clone() }, by))
    }
}
