//! A port to listen on.

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpListener;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// One address, or all of the machine: both families where it has both.
    pub address: Option<IpAddr>,
    /// The port; 0 takes a free one.
    pub port: u16,
}

impl Listen {
    /// What to try to bind, in this order; the first that can be bound is enough. On Linux the unspecified IPv6 address
    /// takes IPv4 too, but a kernel without IPv6 does not have it.
    #[must_use]
    pub fn candidates(&self) -> Vec<SocketAddr> {
        let addresses = match self.address {
            Some(address) => vec![address],
            None => vec![std::net::Ipv6Addr::UNSPECIFIED.into(), std::net::Ipv4Addr::UNSPECIFIED.into()],
        };
        addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }
}

/// The admin port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address} for the admin endpoints (--admin-address)")]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Opens the admin port.
///
/// # Errors
/// Why the last of the addresses that stand for what is asked for could not be bound.
pub async fn bind(listen: &Listen) -> Result<TcpListener, BindError> {
    let mut failed = None;
    for address in listen.candidates() {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(source) => failed = Some(BindError { address, source }),
        }
    }
    Err(failed.expect("there is at least one candidate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_address_all_are_listened_on_in_both_families_or_in_one() {
        let candidates: Vec<String> =
            Listen { address: None, port: 9410 }.candidates().iter().map(ToString::to_string).collect();
        assert_eq!(candidates, ["[::]:9410", "0.0.0.0:9410"]);
        let one = Listen { address: Some(std::net::Ipv4Addr::LOCALHOST.into()), port: 1 };
        assert_eq!(one.candidates().len(), 1);
    }
}
