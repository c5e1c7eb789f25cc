//! The cloud: what it answers to a request.

use egret_api::{Kind, ObjectKey};
use serde_json::{Value, json};

use super::history::{Version, Writer};
use super::object::{entry, text};
use super::state::State;

/// Writes the cloud's answer about a node into a CloudPrivateIPConfig.
pub(super) fn answer(config: &mut Value, node: &str, assigned: bool) {
    let status = entry(config, &["status"]);
    status.insert("node".to_owned(), json!(node));
    let (status_text, reason) =
        if assigned { ("True", "CloudResponseSuccess") } else { ("False", "CloudResponseError") };
    let condition = json!({
        "type": "Assigned",
        "status": status_text,
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    status.insert("conditions".to_owned(), json!([condition]));
}

/// The requests that `versions` brought and that nobody has answered: an object that the controller created or whose
/// node it changed. With the node that was asked for.
pub(super) fn requests(versions: &[Version], state: &State) -> Vec<(ObjectKey, String)> {
    let ours = versions.iter().filter(|version| {
        version.key.kind == Kind::CloudPrivateIpConfig
            && version.writer == Writer::Controller
            && version.object.is_some()
    });
    let mut keys: Vec<&ObjectKey> = ours.map(|version| &version.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let open = |key: &&ObjectKey| {
        let object = state.get(key)?;
        let node = text(&object["spec"]["node"]);
        (object["status"]["node"] != node.as_str()).then(|| ((*key).clone(), node))
    };
    keys.iter().filter_map(open).collect()
}
