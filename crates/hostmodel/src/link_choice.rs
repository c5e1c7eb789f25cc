//! The link that an egress address belongs on.

use std::net::IpAddr;

use crate::{Link, Surroundings};

/// The link with the longest prefix that contains `ip`, of those that are up; of two with the same, the first by name.
///
/// Left out are addresses that say nothing of a network: link-local, of second rank, of keepalived (its labels end in
/// `vip`), single ones, and egress addresses.
pub(crate) fn link_for(ip: IpAddr, surroundings: &Surroundings, egress: u8) -> Option<&Link> {
    let up = surroundings.links.iter().filter(|link| link.up && link.vrf_table.is_none());
    let networks = up.flat_map(|link| link.addresses.iter().map(move |address| (link, address)));
    let fit = networks.filter(|(_, address)| {
        let net = address.net;
        let link_local = match net.addr() {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        let keepalived = address.label.as_deref().is_some_and(|label| label.ends_with("vip"));
        let single = net.prefix_len() == net.max_prefix_len();
        let foreign = address.protocol != egress;
        net.contains(&ip) && !link_local && !address.second_rank && !keepalived && !single && foreign
    });
    let best = fit.min_by(|(a, x), (b, y)| (y.net.prefix_len(), &a.name).cmp(&(x.net.prefix_len(), &b.name)));
    best.map(|(link, _)| link)
}
