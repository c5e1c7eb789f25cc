//! A port that nobody listens on.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below what Linux gives to outgoing connections: a client that knocks again and again while the server is away would
/// sooner or later be given the server's own port to knock from, and reach itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Unlike one that the kernel chooses, it is not given to anybody else meanwhile, unless they ask for just this one.
pub(crate) fn free() -> Option<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that start at the same time look in different places.
    let own = u16::try_from(process::id().wrapping_mul(97) % u32::from(COUNT)).expect("less than COUNT");
    (0..COUNT).find_map(|_| {
        let port = FIRST + own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(port)
    })
}
