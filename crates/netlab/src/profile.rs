//! Which kernel parameters a node starts with.

use crate::error::LabError;
use crate::namespace::Namespace;

/// Kernel parameters of nodes before an agent is started.
///
/// A new namespace takes over IPv4 parameters of the machine, so what matters is always set: the kernel's own defaults,
/// and then what a CNI plugin changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The kernel's defaults, and forwarding of both families, which the `bridge` plugin turns on for the whole node.
    #[default]
    Stock,
    /// `ip_forward` is 0, and IPv4 is forwarded only from interfaces that a CNI enables (the primary one, and those
    /// towards pods); `rp_filter` is 1 everywhere. IPv6 is forwarded, as CNI plugins leave it.
    Restricted,
}

impl Profile {
    /// For tests that start from each.
    pub const BOTH: [Profile; 2] = [Profile::Stock, Profile::Restricted];

    /// Before the node has any link: what is said of `default` holds for those.
    pub(crate) fn prepare(self, node: &Namespace) -> Result<(), LabError> {
        let (forward, filter) = match self {
            Profile::Stock => ("1", "0"),
            Profile::Restricted => ("0", "1"),
        };
        node.set_sysctls(&[
            // Sets what every link has, so it comes first.
            ("ipv4/ip_forward", forward),
            ("ipv4/conf/all/rp_filter", filter),
            ("ipv4/conf/default/rp_filter", filter),
            ("ipv4/conf/lo/rp_filter", filter),
            ("ipv6/conf/all/forwarding", "1"),
        ])
    }

    /// When the node has a new link that a CNI takes care of.
    pub(crate) fn link(self, node: &Namespace, links: &[String]) -> Result<(), LabError> {
        match self {
            Profile::Stock => Ok(()),
            Profile::Restricted => {
                let names = links.iter().map(|link| (format!("ipv4/conf/{link}/forwarding"), "1"));
                node.set_sysctls(&names.collect::<Vec<_>>())
            }
        }
    }
}
