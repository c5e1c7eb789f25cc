//! Why a step is not done.

use std::io;

use egret_hostmodel::{EgressAddress, Route, Rule};

use crate::Class;
use crate::netlink::Fault;
use crate::nft::NftError;
use crate::wire::Mac;

/// Why a step is not done.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A kernel parameter.
    #[error("failed to set {path}")]
    Sysctl {
        /// Below `/proc/sys`.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The nftables table.
    #[error("failed to change table inet egret")]
    Nft(#[from] NftError),
    /// A rule.
    #[error("failed to change the rule \"{rule}\"")]
    Rule {
        /// The rule.
        rule: Box<Rule>,
        /// Why.
        #[source]
        source: Fault,
    },
    /// A route.
    #[error("failed to change the route \"{route}\"")]
    Route {
        /// The route.
        route: Box<Route>,
        /// Why.
        #[source]
        source: Fault,
    },
    /// Somebody else's route has the place.
    #[error("the route \"{route}\" is not ours, and in the place of one that should be")]
    OccupiedRoute {
        /// The route that is there.
        route: Box<Route>,
    },
    /// An egress address.
    #[error("failed to change the address {} on {}", address.ip, address.link)]
    Address {
        /// The address.
        address: EgressAddress,
        /// Why.
        #[source]
        source: Fault,
    },
    /// Somebody else put the address on the link.
    #[error("the address {} on {} is there already, and not ours", address.ip, address.link)]
    OccupiedAddress {
        /// The address.
        address: EgressAddress,
    },
    /// A link that is not there.
    #[error("there is no link {link}")]
    NoLink {
        /// Its name.
        link: String,
    },
    /// Somebody else answers for the address on the wire, or is about to take it.
    #[error("the address {} is contested on {}: {by} has it", address.ip, address.link)]
    Contested {
        /// The address.
        address: EgressAddress,
        /// Who.
        by: Mac,
    },
    /// An address that is not on the link would be announced.
    #[error("the address {} is not on {}", address.ip, address.link)]
    NotOurs {
        /// The address.
        address: EgressAddress,
    },
    /// Frames on the wire.
    #[error("failed to speak to the neighbours on {link}")]
    Wire {
        /// The link.
        link: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The runtime cannot wait for a socket.
    #[error("failed to listen to neighbours")]
    Listen(#[source] io::Error),
    /// Connections.
    #[error("failed to forget connections")]
    Connections(#[source] Fault),
    /// Links cannot be listed.
    #[error("failed to list links")]
    Links(#[source] Fault),
    /// The thread that speaks to the kernel has ended.
    #[error("nobody speaks to the kernel any more")]
    Stopped,
}

impl StepError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Sysctl { source, .. } | Self::Wire { source, .. } | Self::Listen(source) => Class::of_io(source),
            Self::Nft(error) => error.class(),
            Self::Rule { source, .. }
            | Self::Route { source, .. }
            | Self::Address { source, .. }
            | Self::Connections(source)
            | Self::Links(source) => Class::of_fault(*source),
            Self::OccupiedRoute { .. }
            | Self::OccupiedAddress { .. }
            | Self::Contested { .. }
            | Self::NotOurs { .. }
            | Self::NoLink { .. } => Class::Conflict,
            Self::Stopped => Class::Bug,
        }
    }
}
