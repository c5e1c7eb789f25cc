//! The probe without an agent: somebody sets up, or turns down, a connection to TCP port 9.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;

use super::attempt::Ended;

/// Discard, a service that nobody runs: what counts is that the connection is turned down. OVN-Kubernetes' choice.
pub(super) const DISCARD: u16 = 9;

/// Connects once. Nothing is sent, and the connection ends with the attempt.
pub(super) async fn attempt(address: IpAddr, port: u16) -> Ended<()> {
    match TcpStream::connect(SocketAddr::new(address, port)).await {
        Ok(_) => Ended::Answered { well: true, session: () },
        Err(error) if turned_down(&error) => Ended::Answered { well: true, session: () },
        Err(error) => {
            tracing::debug!(%address, %error, "connection attempt failed");
            Ended::Failed
        }
    }
}

/// Whether the peer, or a firewall in front of it, has answered. Only a list of what does count is safe: OVN-Kubernetes
/// counts everything but time-out and host-unreachable, so that its own exhaustion (no file descriptors, no ports, no
/// route) makes every dead node look alive.
fn turned_down(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux: the numbers of `errno.h`.
    #[test]
    fn only_what_came_from_the_peer_is_an_answer() {
        let alive = |number| turned_down(&io::Error::from_raw_os_error(number));
        assert!([111, 104].into_iter().all(alive), "refused (also ICMP port-unreachable), reset");
        assert!(![113, 112, 110].into_iter().any(alive), "host unreachable, host down, timed out");
        assert!(
            ![24, 23, 105, 12, 99].into_iter().any(alive),
            "files, files of all, buffers, memory, addresses used up"
        );
        assert!(![101, 1, 13].into_iter().any(alive), "no route, forbidden here");
    }
}
