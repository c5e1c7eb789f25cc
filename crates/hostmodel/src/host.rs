//! What there is on the node and is not ours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Link, Route};

/// The node as it was found, our own doing left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Its links.
    pub links: Vec<Link>,
    /// The unicast routes of all its tables but ours.
    pub routes: Vec<Route>,
    /// Names of tables, from `rt_tables` and `rt_tables.d`.
    pub table_names: BTreeMap<String, u32>,
    /// Kernel parameters of its links, as they were before us: `net/ipv4/conf/eth1/rp_filter` to `1`.
    pub sysctls: BTreeMap<String, String>,
}

impl Surroundings {
    /// The link of that name.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The table in which a link's routes are: its VRF's, or the main one.
    #[must_use]
    pub fn table_of(&self, link: &Link) -> u32 {
        self.vrf_of(link).and_then(|vrf| vrf.vrf_table).unwrap_or(crate::MAIN)
    }

    /// The VRF device that a link is enslaved to.
    #[must_use]
    pub fn vrf_of(&self, link: &Link) -> Option<&Link> {
        let master = link.master?;
        self.links.iter().find(|other| other.index == master && other.vrf_table.is_some())
    }

    fn sysctl(&self, path: &str) -> Option<i64> {
        self.sysctls.get(path)?.trim().parse().ok()
    }

    /// What must be set so that `link` forwards and takes replies that the main table would send elsewhere.
    pub(crate) fn needs_of(&self, link: &str) -> BTreeMap<String, String> {
        let mut needs = BTreeMap::new();
        let of = |name: &str| format!("net/ipv4/conf/{link}/{name}");
        // Strict reverse path filtering asks the main table and drops what came by another network; loose lets in what
        // comes from anywhere that has a route. The kernel takes the stricter of `all` and the link's own, by number.
        let all = self.sysctl("net/ipv4/conf/all/rp_filter").unwrap_or(0);
        if self.sysctl(&of("rp_filter")).is_some_and(|own| own.max(all) == 1) {
            needs.insert(of("rp_filter"), "2".to_owned());
        }
        if self.sysctl(&of("forwarding")) == Some(0) {
            needs.insert(of("forwarding"), "1".to_owned());
        }
        // IPv6 forwards by `all` alone, but for `force_forwarding`, which newer kernels have for a single link.
        let force = format!("net/ipv6/conf/{link}/force_forwarding");
        if self.sysctl("net/ipv6/conf/all/forwarding") == Some(0) && self.sysctl(&force) == Some(0) {
            needs.insert(force, "1".to_owned());
        }
        needs
    }
}
