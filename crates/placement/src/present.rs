//! Where an object's addresses are, before anything is decided.

use egret_core::{Address, CloudState, EgressIp, Platform, RecordedItem, Snapshot};

/// What counts as recorded for `object`: off the cloud its status; on a cloud, for an address the cloud was asked for on
/// this object's behalf, the node it was asked for (unless that was refused), and the status for the others.
///
/// What the cloud has confirmed is the truth that the status follows, never the other way round.
#[must_use]
pub fn present(snapshot: &Snapshot, object: &EgressIp) -> Vec<RecordedItem> {
    if snapshot.options.platform != Platform::Cloud {
        return object.recorded.clone();
    }
    let config = |address: &Address| {
        let config = snapshot.cloud.get(address)?;
        (config.owner.as_ref() == Some(&object.name) && object.requested.contains(address)).then_some(config)
    };
    let status = object.recorded.iter().filter(|item| config(&item.address).is_none()).cloned();
    let cloud = object.requested.iter().filter_map(config).filter(|config| config.state != CloudState::Refused);
    let cloud = cloud.map(|config| RecordedItem { address: config.address, node: config.node.clone() });
    let mut items: Vec<RecordedItem> = status.chain(cloud).collect();
    items.sort_unstable();
    items
}
