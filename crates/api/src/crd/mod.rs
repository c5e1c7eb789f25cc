//! The custom resources as Rust types, and their definitions as the API server takes them.

// The doc comments of the resources are the descriptions in the schema, which are no Markdown.
#![allow(clippy::doc_markdown)]

mod cloud_private_ip_config;
mod definition;
mod egress_ip;
mod egress_service;

pub use cloud_private_ip_config::{
    CloudCondition, CloudPrivateIPConfig, CloudPrivateIPConfigSpec, CloudPrivateIPConfigStatus,
};
pub(crate) use definition::object_schema;
pub use definition::{
    cloud_private_ip_config as cloud_private_ip_config_definition, egress_ip as egress_ip_definition,
    egress_service as egress_service_definition,
};
pub use egress_ip::{EgressIP, EgressIPSpec, EgressIPStatus, EgressIPStatusItem};
pub use egress_service::{EgressService, EgressServiceSpec, EgressServiceStatus, SourceIPBy};

/// The definitions that an installation of Egret needs; `cloud` adds CloudPrivateIPConfig, which a cloud's own operator
/// usually brings.
#[must_use]
pub fn definitions(cloud: bool) -> Vec<serde_json::Value> {
    let mut definitions = vec![egress_ip_definition(), egress_service_definition()];
    if cloud {
        definitions.push(cloud_private_ip_config_definition());
    }
    definitions
}
