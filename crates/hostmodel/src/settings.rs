//! Every number that Egret takes for itself in a node's kernel.

use serde::{Deserialize, Serialize};

/// Priorities, tables, marks and protocol numbers. One place, all of them options.
///
/// None collides with what else writes to a node: kube-proxy marks with 0x4000, kubelet with 0x8000, the port-mapping
/// plugin with 0x2000, AWS' plugin with 0x80, Calico and Cilium from bit 16 on, Cilium also with 0x0f00. OVN-Kubernetes
/// compares whole marks (1008, 1009, 0x1000 + network), which packets of ours never have at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Settings {
    /// `ip rule` priority of EgressServices' sources (OVN-Kubernetes' own number). The block reaches from four below
    /// it to two above.
    pub service_priority: u32,
    /// `ip rule` priority of EgressIPs' pods (OVN-Kubernetes' own number). The block reaches from one below to two above.
    pub address_priority: u32,
    /// `ip rule` priority of what a VRF must still find in the main table: before the kernel's own l3mdev rule, 1000.
    pub vrf_priority: u32,
    /// Table of an EgressService's plain interface: this plus the interface's index.
    pub service_tables: u32,
    /// Table of an EgressIP's interface: this plus the interface's index (OVN-Kubernetes' own number).
    pub address_tables: u32,
    /// Set on every packet that is Egret's business.
    pub mark_flag: u32,
    /// Lowest bit of the seven that tell Egret's packets apart; the seven lie together.
    pub mark_shift: u32,
    /// `proto` of our rules and routes.
    pub protocol: u8,
    /// `proto` of our addresses: 85, by which OVN-Kubernetes' egress addresses are known everywhere.
    pub address_protocol: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            service_priority: 5000,
            address_priority: 6000,
            vrf_priority: 998,
            service_tables: 680_000,
            address_tables: 1000,
            mark_flag: 0x1000,
            mark_shift: 0,
            protocol: 68,
            address_protocol: 85,
        }
    }
}

/// How many ways out replies can be told apart by.
pub const PATHS: u8 = 125;

/// A mark and the bits of it that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// The value of the bits.
    pub value: u32,
    /// The bits.
    pub mask: u32,
}

impl Mark {
    /// Whether a packet with `mark` has it.
    #[must_use]
    pub fn matches(self, mark: u32) -> bool {
        mark & self.mask == self.value
    }

    /// `mark` with these bits set so, and all others as they were.
    #[must_use]
    pub fn put_on(self, mark: u32) -> u32 {
        mark & !self.mask | self.value
    }
}

/// What the mark on a packet says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Business {
    /// Traffic of an EgressService's endpoint, or a reply that still has the ClusterIP: its source chooses the table.
    Service,
    /// A reply of a connection to a load balancer's address: the number chooses the table, 1 to [`PATHS`].
    Reply(u8),
    /// Traffic of an EgressIP's pod: its source chooses the table.
    Address,
    /// A reply whose network is not there: it goes nowhere.
    Lost,
}

impl Settings {
    /// The bits that count.
    #[must_use]
    pub fn mask(&self) -> u32 {
        self.mark_flag | 0x7f << self.mark_shift
    }

    /// The mark of `business`.
    #[must_use]
    pub fn mark(&self, business: Business) -> Mark {
        let number = match business {
            Business::Service => 0,
            Business::Reply(path) => path,
            Business::Address => 126,
            Business::Lost => 127,
        };
        Mark { value: self.mark_flag | u32::from(number) << self.mark_shift, mask: self.mask() }
    }

    /// The mark of a packet that is none of ours.
    #[must_use]
    pub fn foreign(&self) -> Mark {
        Mark { value: 0, mask: self.mark_flag }
    }

    /// Whatever is ours.
    #[must_use]
    pub fn ours(&self) -> Mark {
        Mark { value: self.mark_flag, mask: self.mark_flag }
    }

    /// Why these numbers cannot work together; all reasons at once.
    #[must_use]
    pub fn faults(&self) -> Vec<SettingsFault> {
        let mut faults = Vec::new();
        if self.service_priority < 5 || self.vrf_priority >= self.service_priority - 4 {
            faults.push(SettingsFault::Order { first: "vrf-priority", second: "service-priority", apart: 5 });
        }
        if self.address_priority < self.service_priority.saturating_add(4) {
            faults.push(SettingsFault::Order { first: "service-priority", second: "address-priority", apart: 4 });
        }
        if self.address_priority > 32_763 {
            faults.push(SettingsFault::AfterMain);
        }
        if !self.mark_flag.is_power_of_two() || self.mark_shift > 25 || self.mark_flag & (0x7f << self.mark_shift) != 0
        {
            faults.push(SettingsFault::Bits);
        }
        if self.protocol < 5 {
            faults.push(SettingsFault::Protocol);
        }
        faults
    }
}

/// Numbers that cannot work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsFault {
    /// The blocks of two priorities overlap.
    #[error("{first} must be at least {apart} less than {second}")]
    Order {
        /// The option that comes first.
        first: &'static str,
        /// The option that comes second.
        second: &'static str,
        /// How far they must be apart.
        apart: u32,
    },
    /// A rule after the main table's is never asked.
    #[error("address-priority must be at most 32763: the main table comes at 32766")]
    AfterMain,
    /// The mark bits overlap or do not fit.
    #[error("mark-flag must be one bit, and mark-shift at most 25 with its seven bits beside the flag")]
    Bits,
    /// 0 to 4 are the kernel's and an administrator's.
    #[error("protocol must be at least 5: the numbers below are the kernel's own and an administrator's")]
    Protocol,
}
