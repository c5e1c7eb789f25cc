//! Our nftables table: its sets and maps, and what is in them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use egret_core::Family;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{Settings, route};

/// The table, in family `inet`.
pub const TABLE: &str = "egret";

/// The whole table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Chains and declarations; `None` if what was found is not as we made it.
    pub shape: Option<Shape>,
    /// What is in its sets and maps.
    pub elements: Elements,
}

/// What decides how chains and declarations look; [`Shape::render`](crate::Shape::render) writes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shape {
    /// Marks and all other numbers.
    pub settings: Settings,
    /// The ways of replies that have a chain, by number, with the network's name.
    pub paths: BTreeMap<u8, String>,
}

/// Elements, by set.
pub type Elements = BTreeMap<Set, BTreeMap<Key, Element>>;

/// A set or map of the table, one for each family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set {
    /// What it is for.
    pub role: Role,
    /// Whether it is IPv6's.
    pub v6: bool,
}

/// What a set or map is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Prefixes inside the cluster: packets to them are nobody's business.
    Cluster,
    /// Sources whose way out is chosen: endpoints of EgressServices with a network.
    ServiceSource,
    /// Sources whose way out is chosen: pods of EgressIPs.
    AddressSource,
    /// Sources that must not get out while their way is being changed.
    Hold,
    /// Sources that must not get out from here at all.
    Refuse,
    /// Endpoint to load-balancer address.
    ServiceSnat,
    /// Pod and link to egress address.
    AddressSnat,
    /// Sources that may leave with certain addresses only; those are in `Allow`.
    Bound,
    /// Source and the address it may leave with.
    Allow,
    /// Load-balancer address, protocol and port, to the way of its replies.
    Reply,
}

/// All of them, in the order in which they are declared.
pub const ROLES: [Role; 10] = [
    Role::Cluster,
    Role::ServiceSource,
    Role::AddressSource,
    Role::Hold,
    Role::Refuse,
    Role::ServiceSnat,
    Role::AddressSnat,
    Role::Bound,
    Role::Allow,
    Role::Reply,
];

impl Role {
    /// Its set for the family of `ip`.
    #[must_use]
    pub fn of(self, ip: IpAddr) -> Set {
        self.family(route::family_of(ip))
    }

    /// Its set for `family`.
    #[must_use]
    pub fn family(self, family: Family) -> Set {
        Set { role: self, v6: family == Family::V6 }
    }

    /// Its name without the family.
    #[must_use]
    pub fn stem(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::ServiceSource => "service-source",
            Self::AddressSource => "address-source",
            Self::Hold => "hold",
            Self::Refuse => "refuse",
            Self::ServiceSnat => "service-snat",
            Self::AddressSnat => "address-snat",
            Self::Bound => "bound",
            Self::Allow => "allow",
            Self::Reply => "reply",
        }
    }

    /// What of a key's parts there is, in order.
    #[must_use]
    pub fn key(self) -> &'static [PartKind] {
        use PartKind::{Address, Link, Port, Prefix, Protocol};
        match self {
            Self::Cluster => &[Prefix],
            Self::AddressSnat => &[Address, Link],
            Self::Allow => &[Address, Address],
            Self::Reply => &[Address, Protocol, Port],
            _ => &[Address],
        }
    }

    /// What it maps to; sets map to nothing.
    #[must_use]
    pub fn value(self) -> Option<ValueKind> {
        match self {
            Self::ServiceSnat | Self::AddressSnat => Some(ValueKind::Address),
            Self::Reply => Some(ValueKind::Way),
            _ => None,
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.role.stem(), if self.v6 { "v6" } else { "v4" })
    }
}

impl Set {
    /// The set of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (stem, family) = name.rsplit_once('-')?;
        let role = ROLES.into_iter().find(|role| role.stem() == stem)?;
        match family {
            "v4" => Some(Self { role, v6: false }),
            "v6" => Some(Self { role, v6: true }),
            _ => None,
        }
    }
}

/// What a part of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// An address.
    Address,
    /// A prefix.
    Prefix,
    /// A link's name.
    Link,
    /// A transport protocol.
    Protocol,
    /// A port.
    Port,
}

/// What a map maps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// An address.
    Address,
    /// A chain that marks.
    Way,
}

/// The key of an element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A source.
    Source(IpAddr),
    /// A prefix.
    Prefix(IpNet),
    /// A source and the address it may leave with.
    Pair(IpAddr, IpAddr),
    /// A source and the link it leaves by.
    Exit(IpAddr, String),
    /// Where a connection from outside came to.
    Entry(IpAddr, Transport, u16),
}

/// A transport protocol that a service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Transport {
    /// The protocol that nft writes so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Tcp, Self::Udp, Self::Sctp].into_iter().find(|transport| transport.as_str() == name)
    }

    /// As nft writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

impl fmt::Display for Key {
    /// As nft takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(ip) => write!(f, "{ip}"),
            Self::Prefix(net) => write!(f, "{net}"),
            Self::Pair(source, with) => write!(f, "{source} . {with}"),
            Self::Exit(source, link) => write!(f, "{source} . \"{link}\""),
            Self::Entry(ip, transport, port) => write!(f, "{ip} . {} . {port}", transport.as_str()),
        }
    }
}

impl FromStr for Key {
    type Err = KeyFault;

    fn from_str(text: &str) -> Result<Self, KeyFault> {
        let fault = || KeyFault { key: text.to_owned() };
        let ip = |part: &str| part.parse::<IpAddr>();
        let key = match text.split(" . ").collect::<Vec<_>>().as_slice() {
            [only] => ip(only).map(Self::Source).ok().or_else(|| only.parse().map(Self::Prefix).ok()),
            [source, with] => ip(source).ok().and_then(|source| {
                let link = || with.strip_prefix('"').and_then(|link| link.strip_suffix('"'));
                ip(with)
                    .map(|with| Self::Pair(source, with))
                    .ok()
                    .or_else(|| Some(Self::Exit(source, link()?.to_owned())))
            }),
            [address, transport, port] => {
                let entry = ip(address).ok().zip(Transport::named(transport)).zip(port.parse().ok());
                entry.map(|((address, transport), port)| Self::Entry(address, transport, port))
            }
            _ => None,
        };
        key.ok_or_else(fault)
    }
}

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key:?} is no key of our sets")]
pub struct KeyFault {
    /// The text.
    pub key: String,
}

impl FromStr for Set {
    type Err = KeyFault;

    fn from_str(text: &str) -> Result<Self, KeyFault> {
        Self::named(text).ok_or_else(|| KeyFault { key: text.to_owned() })
    }
}

/// As text, so that both can be keys of a map in JSON.
macro_rules! as_text {
    ($($name:ident),+) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

as_text!(Key, Set);

/// The rest of an element.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Element {
    /// What its key maps to.
    pub value: Option<Value>,
    /// Whose it is, for people.
    pub comment: Option<String>,
}

/// What a map's key maps to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Value {
    /// An address.
    Address(IpAddr),
    /// The way of replies.
    Way(Way),
}

/// What the replies of a connection are marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Way {
    /// The number chooses the table.
    Path(u8),
    /// The source, which still is the ClusterIP, chooses the table.
    Source,
    /// There is no way.
    Lost,
}

impl Way {
    /// The name of the chain that marks so.
    #[must_use]
    pub fn chain(self) -> String {
        match self {
            Self::Path(number) => format!("path-{number}"),
            Self::Source => "path-source".to_owned(),
            Self::Lost => "path-lost".to_owned(),
        }
    }

    /// The way whose chain has that name.
    #[must_use]
    pub fn named(chain: &str) -> Option<Self> {
        match chain.strip_prefix("path-")? {
            "source" => Some(Self::Source),
            "lost" => Some(Self::Lost),
            number => number.parse().ok().map(Self::Path),
        }
    }
}

impl fmt::Display for Value {
    /// As nft takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(ip) => write!(f, "{ip}"),
            Self::Way(way) => write!(f, "goto {}", way.chain()),
        }
    }
}

impl Element {
    /// A set's element.
    #[must_use]
    pub fn of(comment: &str) -> Self {
        Self { value: None, comment: comment_text(comment) }
    }

    /// A map's element.
    #[must_use]
    pub fn mapping(value: Value, comment: &str) -> Self {
        Self { value: Some(value), comment: comment_text(comment) }
    }
}

/// nft takes comments of at most 128 bytes, and has no escape for a quote; names of Kubernetes have none.
fn comment_text(text: &str) -> Option<String> {
    let mut text: String = text.chars().filter(|c| !c.is_control() && *c != '"').collect();
    if text.len() > 127 {
        let end = (0..=124).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    Some(text).filter(|text| !text.is_empty())
}
