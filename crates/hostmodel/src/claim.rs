//! Whose a source is, where several want it.
//!
//! - D1 An EgressService comes before an EgressIP, as in OVN-Kubernetes.
//! - D2 Of two EgressServices, and of two EgressIPs, the older object comes first, then the first name.
//!
//! Who loses stands by, and is served as soon as the winner goes: every pass claims anew.

use std::collections::BTreeMap;
use std::net::IpAddr;

use egret_core::{EgressIpName, ServiceKey};
use serde::{Deserialize, Serialize};

/// Whose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// An EgressService.
    Service(ServiceKey),
    /// An EgressIP.
    Address(EgressIpName),
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Service(key) => write!(f, "EgressService {key}"),
            Self::Address(name) => write!(f, "EgressIP {name}"),
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let unknown = || serde::de::Error::custom(format!("{text:?} is neither an EgressService nor an EgressIP"));
        match text.split_once(' ').ok_or_else(unknown)? {
            ("EgressService", key) => {
                let (namespace, name) = key.split_once('/').ok_or_else(unknown)?;
                Ok(Self::Service(ServiceKey::new(namespace, name)))
            }
            ("EgressIP", name) => Ok(Self::Address(name.into())),
            _ => Err(unknown()),
        }
    }
}

/// Sources and whose they are; claimed in the order of the rules.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    owners: BTreeMap<IpAddr, Owner>,
    standby: BTreeMap<(Owner, Owner), u32>,
}

impl Claims {
    /// Whether `owner` gets `source`.
    pub(crate) fn claim(&mut self, source: IpAddr, owner: &Owner) -> bool {
        match self.owners.get(&source) {
            Some(winner) if winner != owner => {
                *self.standby.entry((owner.clone(), winner.clone())).or_default() += 1;
                false
            }
            _ => {
                self.owners.insert(source, owner.clone());
                true
            }
        }
    }

    /// Who stands by for whom, and with how many sources.
    pub(crate) fn standby(self) -> impl Iterator<Item = (Owner, Owner, u32)> {
        self.standby.into_iter().map(|((loser, winner), sources)| (loser, winner, sources))
    }
}
