//! What the controller watches, as the brain is told of it.

use std::sync::Arc;

use egret_api::Kind;
use egret_brain::Input;
use egret_daemon::watch::{Change, RELIST, Target, Watch};
use kube::Client;
use tokio::sync::mpsc;

use crate::metrics::Metrics;

/// Watches all objects of a kind.
#[must_use]
pub fn watch(client: Client, kind: Kind, changes: mpsc::Sender<Input>, metrics: Arc<Metrics>) -> Watch<Kind, Input> {
    let defined = matches!(kind, Kind::EgressIp | Kind::EgressService | Kind::CloudPrivateIpConfig);
    let target = Target { resource: kind.into(), defined: defined.then_some(RELIST), labels: None, fields: None };
    Watch::new(client, (kind, target), (changes, input), Arc::new(move |kind| metrics.watch_failed(kind)))
}

fn input(kind: Kind, change: Change) -> Input {
    match change {
        Change::Listed(objects) => Input::Listed { kind, objects },
        Change::Seen(object) => Input::Seen { kind, object },
        Change::Gone(object) => Input::Gone { kind, object },
    }
}
