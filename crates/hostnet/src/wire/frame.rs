//! Frames of ARP and of neighbour discovery.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Mac;

const BROADCAST: [u8; 6] = [0xff; 6];
const ETHERNET: usize = 14;
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// Ethernet, IPv4, addresses of 6 and of 4 bytes.
const ARP_FIXED: [u8; 6] = [0, 1, 0x08, 0, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const IPV6: usize = 40;
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// What is there is replaced by what this says (RFC 4861, 4.4).
const OVERRIDE: u8 = 0x20;
const TARGET_LINK: u8 = 2;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Where the kernel's filter finds the next header of IPv6, and the kind of `ICMPv6`.
pub(super) const NEXT_HEADER_AT: u32 = 20;
pub(super) const ICMPV6_KIND_AT: u32 = 54;
/// Where it finds whose address ARP comes from.
pub(super) const SENDER_AT: u32 = 28;
/// The kinds that [`claimant`] reads.
pub(super) const KINDS: [u8; 2] = [SOLICITATION, ADVERTISEMENT];

/// The question who has `ip`, from somebody who has no address yet (RFC 5227, 2.1.1; RFC 4862, 5.4.2).
pub(super) fn question(mac: [u8; 6], ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => arp(mac, REQUEST, Ipv4Addr::UNSPECIFIED, [0; 6], ip),
        IpAddr::V6(ip) => {
            let [.., a, b, c] = ip.octets();
            let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
            icmpv6(mac, Ipv6Addr::UNSPECIFIED, group, &neighbour(SOLICITATION, 0, ip))
        }
    }
}

/// What tells that `ip` is here: some listen to requests only, some to replies only.
pub(super) fn announcements(mac: [u8; 6], ip: IpAddr) -> Vec<Vec<u8>> {
    match ip {
        IpAddr::V4(ip) => vec![arp(mac, REQUEST, ip, [0; 6], ip), arp(mac, REPLY, ip, mac, ip)],
        IpAddr::V6(ip) => {
            let mut message = neighbour(ADVERTISEMENT, OVERRIDE, ip);
            // Lengths of options count in eights.
            message.extend([TARGET_LINK, 1]);
            message.extend(mac);
            vec![icmpv6(mac, ip, ALL_NODES, &message)]
        }
    }
}

/// Who says in this frame that `ip` is theirs, or asks like [`question`] because it is going to be.
pub(super) fn claimant(frame: &[u8], ip: IpAddr) -> Option<Mac> {
    let sender = Mac(frame.get(6..12)?.try_into().ok()?);
    let body = frame.get(ETHERNET..)?;
    match ip {
        IpAddr::V4(ip) => {
            let (source, target) = (body.get(14..18)?, body.get(24..28)?);
            let asks = body.get(7) == Some(&REQUEST) && source == [0; 4] && target == ip.octets();
            let claims =
                frame.get(12..14)? == ETHERTYPE_ARP && body.get(..6)? == ARP_FIXED && (source == ip.octets() || asks);
            claims.then(|| body.get(8..14)?.try_into().ok().map(Mac)).flatten()
        }
        IpAddr::V6(ip) => {
            let message = body.get(IPV6..)?;
            let target = message.get(8..24)? == ip.octets();
            let unspecified = body.get(8..24)? == [0; 16];
            let claims = match *message.first()? {
                ADVERTISEMENT => true,
                SOLICITATION => unspecified,
                _ => false,
            };
            let neighbour = frame.get(12..14)? == ETHERTYPE_IPV6 && body.get(6) == Some(&ICMPV6);
            (neighbour && target && claims).then_some(sender)
        }
    }
}

fn arp(mac: [u8; 6], operation: u8, source: Ipv4Addr, to: [u8; 6], target: Ipv4Addr) -> Vec<u8> {
    let ethernet = [&BROADCAST[..], &mac, &ETHERTYPE_ARP].concat();
    [&ethernet, &ARP_FIXED[..], &[0, operation], &mac, &source.octets(), &to, &target.octets()].concat()
}

/// A solicitation or an advertisement, its checksum not yet in it.
fn neighbour(kind: u8, flags: u8, target: Ipv6Addr) -> Vec<u8> {
    [&[kind, 0, 0, 0, flags, 0, 0, 0][..], &target.octets()].concat()
}

fn icmpv6(mac: [u8; 6], source: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let [.., a, b, c, d] = to.octets();
    let ethernet = [&[0x33, 0x33, a, b, c, d][..], &mac, &ETHERTYPE_IPV6].concat();
    let length = u16::try_from(message.len()).expect("messages are short");
    let addresses = [source.octets(), to.octets()].concat();
    // The hop limit proves to the receiver that no router had the packet in hand.
    let header = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[ICMPV6, 255], &addresses].concat();
    let covered = [&addresses[..], &u32::from(length).to_be_bytes(), &[0, 0, 0, ICMPV6], message].concat();
    let mut message = message.to_vec();
    message[2..4].copy_from_slice(&checksum(&covered).to_be_bytes());
    [ethernet, header, message].concat()
}

/// The internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.as_chunks::<2>().0.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

    #[test]
    fn who_announces_or_asks_for_an_address_claims_it_and_no_other() {
        for [ip, other] in [["192.168.60.50", "192.168.60.51"], ["fd00:60::50", "fd00:60::51"]] {
            let [ip, other]: [IpAddr; 2] = [ip, other].map(|ip| ip.parse().unwrap());
            for frame in announcements(MAC, ip).into_iter().chain([question(MAC, ip)]) {
                assert_eq!(claimant(&frame, ip), Some(Mac(MAC)));
                assert_eq!(claimant(&frame, other), None);
                for length in 0..frame.len() {
                    claimant(&frame[..length], ip);
                }
            }
        }
    }

    #[test]
    fn who_asks_because_it_wants_to_send_something_there_claims_nothing() {
        let ip = "192.168.60.50".parse().unwrap();
        let asked = arp(MAC, REQUEST, Ipv4Addr::new(192, 168, 60, 200), [0; 6], ip);
        assert_eq!(claimant(&asked, ip.into()), None);
        let ip: Ipv6Addr = "fd00:60::50".parse().unwrap();
        let asked = icmpv6(MAC, "fd00:60::200".parse().unwrap(), ALL_NODES, &neighbour(SOLICITATION, 0, ip));
        assert_eq!(claimant(&asked, ip.into()), None);
    }

    #[test]
    fn an_advertisement_is_as_rfc_4861_says() {
        let frame = announcements(MAC, "fd00:60::50".parse().unwrap()).remove(0);
        assert_eq!(frame.len(), 86);
        assert_eq!(frame[..6], [0x33, 0x33, 0, 0, 0, 1], "all nodes");
        assert_eq!(frame[20..22], [58, 255], "ICMPv6, hop limit");
        assert_eq!(
            frame[54..59],
            [136, 0, frame[56], frame[57], 0x20],
            "override, neither solicited nor from a router"
        );
        assert_eq!(frame[78..], [2, 1, 2, 0, 0, 0, 0, 7], "target's link-layer address");
        // With its checksum in it the sum of everything that it covers is zero.
        let covered = [&frame[22..54], &[0, 0, 0, 32, 0, 0, 0, 58], &frame[54..]].concat();
        assert_eq!(checksum(&covered), 0);
    }
}
