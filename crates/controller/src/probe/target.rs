//! One node: its probes follow each other, whatever other nodes do.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use egret_brain::Answer;
use egret_core::NodeName;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::attempt::{Ended, Running, first_answer};
use super::grpc::{self, Session};
use super::schedule::attempts;
use super::tcp;
use super::tls::Tls;
use super::{Probing, Way};

/// A node that is probed.
pub(super) struct Target {
    node: NodeName,
    peer: Peer,
    probing: Arc<Probing>,
}

/// How the node is reached.
struct Peer {
    /// The one that answered last comes first.
    addresses: Vec<IpAddr>,
    /// What answered last.
    session: Option<Session>,
}

impl Target {
    pub(super) fn new(node: NodeName, addresses: Vec<IpAddr>, probing: Arc<Probing>) -> Self {
        Self { node, peer: Peer { addresses, session: None }, probing }
    }

    /// Ends when nobody wants answers any more.
    pub(super) async fn probe_for_ever(mut self) {
        while !self.probing.answers.is_closed() {
            sleep_until(self.probing.pace.turn(Instant::now())).await;
            let begin = Instant::now();
            let answer = if self.probe(begin).await { Answer::Alive } else { Answer::Silent };
            (self.probing.observe)(begin.elapsed(), answer);
            self.probing.tell(&self.node, answer);
            sleep(self.probing.pace.gap()).await;
        }
    }

    /// Whether the node is well; says so when that takes long.
    async fn probe(&mut self, begin: Instant) -> bool {
        let probing = &*self.probing;
        let mut asking = pin!(self.peer.ask(probing, begin));
        if let Ok(well) = timeout_at(begin + probing.timeout / 2, &mut asking).await {
            return well;
        }
        probing.tell(&self.node, Answer::Late);
        timeout_at(begin + probing.timeout, asking).await.unwrap_or(false)
    }
}

impl Peer {
    async fn ask(&mut self, probing: &Probing, begin: Instant) -> bool {
        match &probing.way {
            Way::Off => true,
            Way::Tcp => self.ask_over_tcp(probing.timeout, begin).await,
            Way::Grpc { port, tls } => self.ask_over_grpc(*port, tls.as_deref(), probing.timeout, begin).await,
        }
    }

    async fn ask_over_tcp(&mut self, timeout: Duration, begin: Instant) -> bool {
        let plan = attempts(&self.addresses, Duration::ZERO, timeout);
        let attempt = |address| -> Running<'_, ()> {
            Box::pin(async move { (address, tcp::attempt(address, tcp::DISCARD).await) })
        };
        let Some((address, well, ())) = first_answer(begin, None, plan, attempt).await else { return false };
        self.prefer(address);
        well
    }

    /// The kept session has half of the time for itself: that is enough for what the kernel sends again, and leaves as
    /// much for new sessions. It is not given up then, only not relied upon any more. One that breaks is replaced at once.
    async fn ask_over_grpc(&mut self, port: u16, tls: Option<&Tls>, timeout: Duration, begin: Instant) -> bool {
        let mut running = None;
        if let Some(session) = self.session.take() {
            let address = session.address();
            let mut asking: Running<'_, Session> = Box::pin(async move { (address, session.ask().await) });
            match timeout_at(begin + timeout / 2, &mut asking).await {
                Ok((_, Ended::Answered { well, session })) => {
                    self.session = Some(session);
                    return well;
                }
                Ok(_) => {}
                Err(_) => running = Some(asking),
            }
        }
        let plan = attempts(&self.addresses, begin.elapsed(), timeout);
        let attempt = |address| -> Running<'_, Session> {
            Box::pin(async move { (address, grpc::attempt(address, port, tls, timeout).await) })
        };
        let Some((address, well, session)) = first_answer(begin, running, plan, attempt).await else { return false };
        self.session = Some(session);
        self.prefer(address);
        well
    }

    /// The other addresses keep their order.
    fn prefer(&mut self, address: IpAddr) {
        if let Some(at) = self.addresses.iter().position(|&other| other == address) {
            self.addresses[..=at].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_answered_is_tried_first_next_time() {
        let [a, b, c]: [IpAddr; 3] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|address| address.parse().unwrap());
        let mut peer = Peer { addresses: vec![a, b, c], session: None };
        peer.prefer(c);
        assert_eq!(peer.addresses, [c, a, b]);
        peer.prefer(a);
        assert_eq!(peer.addresses, [a, c, b]);
        peer.prefer("192.0.2.9".parse().unwrap());
        assert_eq!(peer.addresses, [a, c, b]);
    }
}
