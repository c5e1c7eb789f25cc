//! What the statuses of EgressIPs say, with the moment at which this process got to know.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::StreamExt as _;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cluster::ADDRESSES;

/// Nothing takes so long, whatever else the machine has to do.
const LIMIT: Duration = Duration::from_mins(3);

pub(crate) struct Sight {
    news: mpsc::UnboundedReceiver<News>,
    /// For each object, the nodes of its addresses.
    hosts: BTreeMap<String, Vec<String>>,
    watching: JoinHandle<()>,
}

struct News {
    at: Instant,
    object: String,
    hosts: Vec<String>,
}

impl Sight {
    pub(crate) fn begin(api: Api<DynamicObject>) -> Self {
        let (tell, news) = mpsc::unbounded_channel();
        let watching = tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
            while let Some(event) = events.next().await {
                let at = Instant::now();
                if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
                    let told = tell.send(News { at, object: object.name_any(), hosts: hosts(&object) });
                    if told.is_err() {
                        return;
                    }
                }
            }
        });
        Self { news, hosts: BTreeMap::new(), watching }
    }

    /// The moment of the change after which so many objects had all their addresses, and none of them on `without`.
    pub(crate) async fn assigned(&mut self, objects: usize, without: &[String]) -> anyhow::Result<Instant> {
        let without: BTreeSet<&String> = without.iter().collect();
        let good = |hosts: &Vec<String>| hosts.len() == ADDRESSES && hosts.iter().all(|host| !without.contains(host));
        let mut missing = objects - self.hosts.values().filter(|hosts| good(hosts)).count();
        let waiting = async {
            loop {
                let News { at, object, hosts } = self.news.recv().await.context("the watch has ended")?;
                let now = good(&hosts);
                let before = self.hosts.insert(object, hosts).is_some_and(|hosts| good(&hosts));
                missing = missing + usize::from(before) - usize::from(now);
                if missing == 0 {
                    return Ok(at);
                }
            }
        };
        let ended = tokio::time::timeout(LIMIT, waiting).await;
        ended.unwrap_or_else(|_| anyhow::bail!("{missing} objects do not have all their addresses"))
    }

    /// The first nodes by name, out of those that have an address.
    pub(crate) fn hosts(&self, count: usize) -> Vec<String> {
        let hosts: BTreeSet<&String> = self.hosts.values().flatten().collect();
        hosts.into_iter().take(count).cloned().collect()
    }
}

impl Drop for Sight {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

fn hosts(object: &DynamicObject) -> Vec<String> {
    let items = object.data["status"]["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["node"].as_str()).map(str::to_owned).collect()
}
