//! Echo requests, built and read.

use std::net::IpAddr;

use crate::address::Family;

/// The header of ICMP in front of what an echo carries.
const HEADER: usize = 8;

/// An echo request.
pub(crate) fn request(family: Family, text: &str, identifier: u16) -> Vec<u8> {
    let kind = match family {
        Family::V4 => 8,
        Family::V6 => 128,
    };
    let mut packet = vec![kind, 0, 0, 0];
    packet.extend(identifier.to_be_bytes());
    packet.extend(1_u16.to_be_bytes());
    packet.extend(text.as_bytes());
    // That of IPv6 covers the addresses too, and the kernel makes it.
    if family == Family::V4 {
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// What an echo request or an echo reply carries, from what a raw socket of that family returns.
pub(crate) fn carried(family: Family, packet: &[u8], reply: bool) -> Option<&[u8]> {
    let (message, kinds) = match family {
        // Only the raw socket of IPv4 returns the header of the packet.
        Family::V4 => (packet.get(usize::from(packet.first()? & 0xf) * 4..)?, [8, 0]),
        Family::V6 => (packet, [128, 129]),
    };
    let wanted = kinds[usize::from(reply)];
    if *message.first()? == wanted { message.get(HEADER..) } else { None }
}

/// Of RFC 1071.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("it has been folded")
}

/// The protocol of a raw socket for echoes to that address.
pub(crate) fn protocol(address: IpAddr) -> socket2::Protocol {
    if address.is_ipv4() { socket2::Protocol::ICMPV4 } else { socket2::Protocol::ICMPV6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_packet_with_its_checksum_is_zero() {
        for text in ["egret:a 1", "egret:ab 12"] {
            assert_eq!(checksum(&request(Family::V4, text, 77)), 0, "{text}");
        }
    }

    #[test]
    fn what_a_request_carries_is_read_from_it_and_a_reply_is_none() {
        let mut packet = vec![0x45; 20];
        packet.extend(request(Family::V4, "x", 1));
        assert_eq!(carried(Family::V4, &packet, false), Some(&b"x"[..]));
        assert_eq!(carried(Family::V4, &packet, true), None);
        assert_eq!(carried(Family::V6, &request(Family::V6, "x", 1), false), Some(&b"x"[..]));
        assert_eq!(carried(Family::V6, &[], false), None);
    }
}
