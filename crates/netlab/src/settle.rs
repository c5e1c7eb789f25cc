//! Waiting for what the kernel does a moment after it was told.
//!
//! Both ends of a link are up before the kernel sends by it, and an IPv6 address is there before the kernel takes what
//! comes for it. What comes in between is dropped, and the first packet of a test with it: TCP and neighbour discovery try
//! again after a second.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use crate::until::until;

/// It takes a millisecond, unless the kernel is busy with the end of another lab.
const LIMIT: Duration = Duration::from_secs(10);

/// In `/proc/net/ipv6_route`: what comes for this address is for this host.
const LOCAL: u32 = 0x8000_0000;

/// Waits for these links of the calling thread's namespace, and returns those that did not come.
pub(crate) fn settle(links: &[&str]) -> String {
    let mut missing = Vec::new();
    let _ = until(LIMIT, || {
        let running = running();
        missing = links.iter().copied().filter(|link| !running.contains(*link)).collect();
        missing.is_empty()
    });
    if !missing.is_empty() {
        return missing.join(", ");
    }
    let _ = until(LIMIT, || {
        missing = deaf(links);
        missing.is_empty()
    });
    missing.join(", ")
}

/// The links that carry packets.
fn running() -> BTreeSet<String> {
    let all = getifaddrs().into_iter().flatten();
    all.filter(|link| link.flags.contains(InterfaceFlags::IFF_RUNNING)).map(|link| link.interface_name).collect()
}

/// The links with an IPv6 address that the kernel does not listen to yet.
fn deaf<'a>(links: &[&'a str]) -> Vec<&'a str> {
    // A kernel without IPv6 has neither.
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    // The addresses last: one whose route goes meanwhile is gone itself.
    let (routes, addresses) = (read("ipv6_route"), read("if_inet6"));
    let heard: BTreeSet<(&str, &str)> = routes.lines().filter_map(local).collect();
    let deaf = |link: &str| addresses.lines().filter_map(address).any(|it| it.1 == link && !heard.contains(&it));
    links.iter().copied().filter(|link| deaf(link)).collect()
}

/// The address and the link of a line of `/proc/net/if_inet6`.
fn address(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.nth(4)?))
}

/// The same of a line of `/proc/net/ipv6_route`, if it is of an address of this host.
fn local(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let (to, flags) = (words.next()?, words.nth(7)?);
    let local = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & LOCAL != 0);
    words.next().filter(|_| local).map(|link| (to, link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_heard_by_its_own_local_route_only() {
        let there = address("fe800000000000000000000000000002 02 40 20 80     eth0").unwrap();
        let none = "00000000000000000000000000000000";
        let route = |flags: &str, link: &str| {
            format!(
                "fe800000000000000000000000000002 80 {none} 00 {none} 00000000 00000002 00000000 {flags}     {link}"
            )
        };
        assert_eq!(local(&route("80200001", "eth0")), Some(there));
        assert_ne!(local(&route("80200001", "eth1")), Some(there));
        assert_eq!(local(&route("00000001", "eth0")), None);
    }
}
