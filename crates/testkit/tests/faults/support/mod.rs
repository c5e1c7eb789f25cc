//! A cluster on a real API server, the record of everything that happens in it, and controllers.

mod cluster;
mod place;
mod recorder;

pub(crate) use cluster::{CONTROLLER, Cluster, RIVAL};
pub(crate) use place::{address, egress_ip_of, host_of};
pub(crate) use recorder::{egress_ip_key, everyone_is_placed, key, placed};
