//! What a node's kernel should hold so that chosen pods and services leave the cluster by their chosen way.
//!
//! Decided here: which rules, routes, egress addresses, kernel parameters and nftables elements a node has; whose a source
//! is that several objects want; in which order one state becomes another. Not known here: how the kernel is asked or
//! told, where objects come from. Everything is a value; the same values give the same steps.
//!
//! ```text
//!   Policy (Kubernetes, options) ──┐
//!                                  ├──> wanted() ──> State ──┐
//!   Surroundings (links, routes) ──┘       │                 ├──> diff() ──> Vec<Step>
//!                                       reports   State ─────┘
//!                                              (as found)
//! ```
//!
//! Invariants, after every single step: a packet of a source whose way changes goes the old way, the new way, or nowhere;
//! none leaves with a source address that its policy does not allow; sources and connections that are nobody's business
//! meet six set lookups and one rule.

mod claim;
mod diff;
mod drift;
mod host;
mod link;
mod link_choice;
mod network;
mod nft;
mod policy;
mod render;
mod report;
mod route;
mod rule;
mod settings;
mod state;
mod step;
mod wanted;

pub use claim::Owner;
pub use diff::diff;
pub use drift::{Drift, DriftKind, Thing, drift};
pub use host::Surroundings;
pub use link::{EgressAddress, Link, LinkAddress};
pub use network::NetworkFault;
pub use nft::{
    Element, Elements, Key, KeyFault, PartKind, ROLES, Role, Set, Shape, TABLE, Table, Transport, Value, ValueKind, Way,
};
pub use policy::{AddressExit, Datapath, Others, Policy, Port, ServiceExit};
pub use render::{add, delete};
pub use report::{Finding, Report};
pub use route::{Hop, MAIN, Route};
pub use rule::{Rule, RuleAction};
pub use settings::{Business, Mark, PATHS, Settings, SettingsFault};
pub use state::State;
pub use step::Step;
pub use wanted::{Wanted, wanted};
