//! What pods send beyond their network for as long as a test does other things, and what of it is on the wire.

use std::net::IpAddr;
use std::thread;
use std::time::Instant;

use egret_netlab::{Family, Flow, FlowKind, Lab, Network, PORT, Packet, Protocol, Seen, Wire};

use crate::whole::SOON;

/// Questions a second and flow.
const RATE: u32 = 20;

/// So many answers show that a flow goes on.
const MORE: u64 = 3;

/// What one pod sends until it is told to stop.
pub(crate) struct Sender {
    pod: String,
    server: &'static str,
    flows: Vec<(IpAddr, Flow)>,
}

impl Sender {
    /// The pod asks beyond its network, in the families of `seen`. From now on nobody but `server` may answer, and it may
    /// see no other source than the one of that family.
    pub(crate) fn start(lab: &Lab, pod: &str, kinds: [FlowKind; 2], server: &'static str, seen: &[IpAddr]) -> Self {
        let host = lab.pod(pod);
        let flows = seen.iter().flat_map(|source| {
            let to = Family::of(*source).destination();
            kinds.map(|kind| (*source, host.flow(kind, to, PORT, RATE)))
        });
        Self { pod: pod.to_owned(), server, flows: flows.collect() }
    }

    /// Nothing that was answered had another source.
    fn end(self) -> Option<String> {
        let reports = self.flows.into_iter().map(|(seen, flow)| (seen, flow.stop()));
        let wrong = reports.filter(|(seen, report)| {
            report.changes.iter().any(|change| change.server != self.server || change.source != *seen)
        });
        let wrong: Vec<_> = wrong.collect();
        (!wrong.is_empty()).then(|| format!("{} to {}: {wrong:?}", self.pod, self.server))
    }
}

/// Waits until everything that is sent is answered, once more.
pub(crate) fn goes_on<'a>(senders: impl IntoIterator<Item = &'a Sender>, said: impl Fn() -> String) {
    let flows =
        senders.into_iter().flat_map(|sender| sender.flows.iter().map(|(seen, flow)| (&sender.pod, seen, flow)));
    // From the same moment on for all.
    let wanted: Vec<_> = flows.map(|it| (it, it.2.report().answered + MORE)).collect();
    for ((pod, seen, flow), wanted) in wanted {
        let more = || wanted.saturating_sub(flow.report().answered);
        assert!(flow.answers(more(), SOON), "{pod} as {seen}: {:?}\n{}", flow.report(), said());
    }
}

/// Nothing more is sent; all of it was answered until now, and seen as it should be.
pub(crate) fn end(senders: Vec<Sender>, said: impl Fn() -> String) {
    goes_on(&senders, &said);
    // Each waits a little for its last answers.
    let ends: Vec<_> = senders.into_iter().map(|sender| thread::spawn(|| sender.end())).collect();
    let wrong: Vec<String> = ends.into_iter().filter_map(|end| end.join().unwrap()).collect();
    assert!(wrong.is_empty(), "{wrong:?}\n{}", said());
}

/// What is on both networks of a cluster.
pub(crate) struct Wires {
    red: Wire,
    blue: Wire,
    /// The sources of the service's pods.
    pub(crate) web: Vec<IpAddr>,
    /// That of the pods with an EgressIP.
    pub(crate) team: IpAddr,
}

impl Wires {
    pub(crate) fn watch(lab: &Lab, web: &[IpAddr], team: IpAddr) -> Self {
        let [red, blue] = [Network::Red, Network::Blue].map(|network| lab.wire(network).unwrap());
        Self { red, blue, web: web.to_vec(), team }
    }

    /// What should not have been on either network so far.
    pub(crate) fn wrong(&self, lab: &Lab) -> Vec<Seen> {
        // Silence says nothing if not everything was seen.
        assert_eq!((self.red.lost(), self.blue.lost()), (0, 0));
        let mut wrong = self.red.wrong(|packet| may_be_on_red(lab, packet) || self.is_refusal(packet));
        wrong.extend(self.blue.wrong(|packet| self.may_be_on_blue(lab, packet)));
        wrong
    }

    /// What has left with these addresses from another node than that since then.
    pub(crate) fn elsewhere(&self, node: &str, addresses: &[IpAddr], since: Instant) -> Vec<Seen> {
        self.blue.wrong_since(since, |packet| packet.from == node || !addresses.contains(&packet.source))
    }

    /// How many packets were looked at.
    pub(crate) fn packets(&self) -> u64 {
        self.red.packets() + self.blue.packets()
    }

    /// The node that has the address now refuses an old connection of the node before, of which it knows nothing. It does so
    /// by its main table, for no rule is about the address itself. Nothing that a pod asks is like this.
    fn is_refusal(&self, packet: &Packet) -> bool {
        packet.client.is_none()
            && packet.protocol == Protocol::Tcp
            && packet.source == self.team
            && packet.destination == Family::of(self.team).destination()
    }

    /// Nodes send nothing of their own there, so that not even their addresses are right.
    fn may_be_on_blue(&self, lab: &Lab, packet: &Packet) -> bool {
        if packet.from == "blue" || packet.destination == self.team {
            // A node that is still thought to have the address passes on what comes for it.
            return is_own(lab, Network::Blue, packet.source);
        }
        match packet.client.as_deref() {
            Some(pod) if pod.starts_with("web-") => self.web.contains(&packet.source),
            Some(pod) if pod.starts_with("team-") => packet.source == self.team,
            // Handshakes ask nothing, and what is answered to somebody out there carries that question.
            None | Some("blue") => self.web.contains(&packet.source) || packet.source == self.team,
            Some(_) => false,
        }
    }
}

/// The outside server's addresses.
fn is_own(lab: &Lab, network: Network, source: IpAddr) -> bool {
    let family = Family::of(source);
    [lab.outside(network).address(family), family.destination()].contains(&source)
}

/// Nodes with their own address, and nothing of pods that have another way out.
fn may_be_on_red(lab: &Lab, packet: &Packet) -> bool {
    let opted_in = |pod: &str| pod.starts_with("web-") || pod.starts_with("team-");
    !packet.client.as_deref().is_some_and(opted_in)
        && match packet.from.as_str() {
            // The API server's.
            "self" => true,
            "ext" => is_own(lab, Network::Red, packet.source),
            node => packet.source == lab.node_address(node, Network::Red, Family::of(packet.source)),
        }
}
