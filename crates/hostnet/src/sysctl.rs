//! Kernel parameters, and what they were before us.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file;

/// The parameters that matter, for IPv4 and for IPv6. All are there for each link and for `all`.
const NAMES: [&str; 4] = ["net/ipv4/conf/{}/rp_filter", "net/ipv4/conf/{}/forwarding", V6_FORWARDING, V6_FORCE];
const V6_FORWARDING: &str = "net/ipv6/conf/{}/forwarding";
const V6_FORCE: &str = "net/ipv6/conf/{}/force_forwarding";

/// What a parameter was before us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    /// Its value.
    value: String,
    /// What its namesake of `all` was. Who writes that one sets all links at once, ours too.
    all: Option<String>,
}

/// The parameters below a folder, and the record of those that we set.
#[derive(Clone, Debug)]
pub(crate) struct Sysctls {
    root: PathBuf,
    record: PathBuf,
}

impl Sysctls {
    pub(crate) fn new(root: &Path, folder: &Path) -> Self {
        Self { root: root.to_owned(), record: folder.join("sysctls.json") }
    }

    fn recorded(&self) -> BTreeMap<String, Before> {
        file::read(&self.record).unwrap_or_default()
    }

    fn value(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The parameters of these links and of `all`, as they were before us.
    pub(crate) fn before<'a>(&self, links: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        for link in links.chain(["all"]) {
            for path in NAMES.map(|name| name.replace("{}", link)) {
                if let Some(value) = self.value(&path) {
                    values.insert(path, value);
                }
            }
        }
        for (path, before) in self.recorded() {
            if let Some(value) = values.get_mut(&path) {
                *value = before.value;
            }
        }
        values
    }

    /// Those that we set, with what they are now. One whose link is gone is gone with it.
    pub(crate) fn found(&self) -> BTreeMap<String, String> {
        self.recorded().into_keys().filter_map(|path| self.value(&path).map(|value| (path, value))).collect()
    }

    /// Sets a parameter, and records before what it was.
    pub(crate) fn set(&self, path: &str, value: &str) -> io::Result<()> {
        let mut recorded = self.recorded();
        recorded.retain(|path, _| self.root.join(path).exists());
        if !recorded.contains_key(path) {
            let now = fs::read_to_string(self.root.join(path))?.trim().to_owned();
            recorded.insert(path.to_owned(), Before { value: now, all: self.all(path) });
        }
        file::write(&self.record, &recorded)?;
        fs::write(self.root.join(path), value)
    }

    /// Sets a parameter back to what it was. Nothing is done if its link is gone, or if somebody has set it for all links
    /// since: what they said holds for this one too.
    pub(crate) fn restore(&self, path: &str) -> io::Result<()> {
        let mut recorded = self.recorded();
        let Some(before) = recorded.remove(path) else { return Ok(()) };
        let file = self.root.join(path);
        if before.all == self.all(path) && file.exists() {
            fs::write(file, &before.value)?;
        }
        file::write(&self.record, &recorded)
    }

    /// The value for all links of what `path` is for one, where setting that sets each link's: not of `rp_filter`.
    fn all(&self, path: &str) -> Option<String> {
        let (front, name) = path.rsplit_once('/').filter(|(_, name)| *name != "rp_filter")?;
        let (folder, _) = front.rsplit_once('/')?;
        self.value(&format!("{folder}/all/{name}"))
    }
}
