//! Rules of policy routing.

use std::fmt;

use egret_core::Family;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::Mark;

/// A rule of ours, as the kernel orders them: family, then priority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Whether it is about IPv6.
    pub v6: bool,
    /// Lower is asked first.
    pub priority: u32,
    /// The source it is about.
    pub from: Option<IpNet>,
    /// The destination it is about.
    pub to: Option<IpNet>,
    /// The mark it is about.
    pub mark: Option<Mark>,
    /// The link that the packet came in by.
    pub incoming: Option<String>,
    /// The source port, of any protocol that has ports.
    pub source_port: Option<u16>,
    /// What it says.
    pub action: RuleAction,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RuleAction {
    /// Ask this table; if it has no route, go on.
    Lookup(u32),
    /// There is no way.
    Unreachable,
    /// Go on at the rule of this priority.
    Goto(u32),
    /// Go on.
    Nop,
}

impl Rule {
    /// A rule about every packet.
    #[must_use]
    pub fn new(family: Family, priority: u32, action: RuleAction) -> Self {
        let v6 = family == Family::V6;
        Self { v6, priority, from: None, to: None, mark: None, incoming: None, source_port: None, action }
    }

    /// About packets from `source` only.
    #[must_use]
    pub fn from(self, source: IpNet) -> Self {
        Self { from: Some(source), ..self }
    }

    /// About packets to `destination` only.
    #[must_use]
    pub fn to(self, destination: IpNet) -> Self {
        Self { to: Some(destination), ..self }
    }

    /// About packets with `mark` only.
    #[must_use]
    pub fn mark(self, mark: Mark) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// About packets that came in by `link` only.
    #[must_use]
    pub fn incoming(self, link: &str) -> Self {
        Self { incoming: Some(link.to_owned()), ..self }
    }

    /// About packets from `port` only.
    #[must_use]
    pub fn source_port(self, port: u16) -> Self {
        Self { source_port: Some(port), ..self }
    }
}

impl fmt::Display for Rule {
    /// As `ip rule` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "priority {}", self.priority)?;
        match self.from {
            Some(from) => write!(f, " from {from}")?,
            None => f.write_str(" from all")?,
        }
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        if let Some(mark) = self.mark {
            write!(f, " fwmark {:#x}/{:#x}", mark.value, mark.mask)?;
        }
        if let Some(link) = &self.incoming {
            write!(f, " iif {link}")?;
        }
        if let Some(port) = self.source_port {
            write!(f, " sport {port}")?;
        }
        match self.action {
            RuleAction::Lookup(table) => write!(f, " lookup {table}"),
            RuleAction::Unreachable => f.write_str(" unreachable"),
            RuleAction::Goto(priority) => write!(f, " goto {priority}"),
            RuleAction::Nop => f.write_str(" nop"),
        }
    }
}
