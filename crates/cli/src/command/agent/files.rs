//! Objects from files, for a node without an API server: a try, a test, an emergency.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use egret_agent::{Kind, Told};
use egret_daemon::watch::Change;
use serde_json::Value;
use tokio::sync::mpsc;

/// Files are looked at this often.
const PAUSE: Duration = Duration::from_millis(100);

/// The clock of a file system may be coarse.
const FRESH: Duration = Duration::from_secs(2);

/// Reads the files, tells what is in them, and tells it again whenever it is something else. What cannot be read is said
/// and changes nothing.
///
/// # Errors
/// If they cannot be read at the beginning.
pub(super) fn follow(paths: Vec<PathBuf>) -> anyhow::Result<mpsc::Receiver<Told>> {
    let mut known = Stamps::of(&paths);
    let mut content = read(&paths)?;
    let mut objects = parse(&content)?;
    let (told, changes) = mpsc::channel(Kind::ALL.len());
    tokio::spawn(async move {
        loop {
            for kind in Kind::ALL {
                let listed = objects.iter().filter(|object| is(object, kind)).cloned().collect();
                if told.send((kind, Change::Listed(listed))).await.is_err() {
                    return;
                }
            }
            objects = loop {
                tokio::time::sleep(PAUSE).await;
                let stamps = Stamps::of(&paths);
                if stamps == known && !stamps.fresh() {
                    continue;
                }
                known = stamps;
                let Ok(now) = read(&paths) else { continue };
                if now == content {
                    continue;
                }
                content = now;
                match parse(&content) {
                    Ok(objects) => break objects,
                    Err(error) => tracing::warn!(error = format!("{error:#}"), "the objects stay what they were"),
                }
            };
        }
    });
    Ok(changes)
}

/// By what it is seen that files are others than before, without reading them.
#[derive(PartialEq, Eq)]
struct Stamps(Option<Vec<(PathBuf, u64, u64, SystemTime)>>);

impl Stamps {
    fn of(paths: &[PathBuf]) -> Self {
        let mut files = Vec::new();
        let stamp = |path: PathBuf| {
            let of = std::fs::metadata(&path)?;
            Ok((path, of.ino(), of.len(), of.modified()?))
        };
        let found = paths.iter().try_for_each(|path| files_below(path, &mut files)).ok();
        files.sort();
        Self(found.and_then(|()| files.into_iter().map(stamp).collect::<std::io::Result<_>>().ok()))
    }

    /// So young that what is written next may have the same.
    fn fresh(&self) -> bool {
        let young = |at: &SystemTime| at.elapsed().map_or(true, |age| age < FRESH);
        self.0.as_ref().is_none_or(|all| all.iter().any(|(.., at)| young(at)))
    }
}

/// Whether an object is of a kind.
pub(in crate::command) fn is(object: &Value, kind: Kind) -> bool {
    let resource = kind.resource();
    object["apiVersion"] == resource.api_version && object["kind"] == resource.kind
}

/// All objects in the files, once.
///
/// # Errors
/// What cannot be read.
pub(in crate::command) fn objects(paths: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    parse(&read(paths)?)
}

fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for path in paths {
        files_below(path, &mut files)?;
    }
    files.sort();
    let content = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok((path, text))
    };
    files.into_iter().map(content).collect()
}

/// The file, or the files of the folder that are named as such.
fn files_below(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).with_context(|| format!("failed to read {}", path.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known)) {
            files.push(path);
        }
    }
    Ok(())
}

fn parse(files: &[(PathBuf, String)]) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (path, text) in files {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(text).with_context(|| format!("in {}", path.display()))?;
        for document in documents {
            match document.get("items").and_then(Value::as_array) {
                Some(items) => objects.extend(items.iter().cloned()),
                None => objects.push(document),
            }
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_changes_is_told_again_and_what_cannot_be_read_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("objects.yaml");
        let node = |name: &str| format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n");
        std::fs::write(&file, node("n1")).unwrap();
        let mut changes = follow(vec![folder.path().to_owned()]).unwrap();
        let mut nodes = async || loop {
            if let (Kind::Node, Change::Listed(objects)) = changes.recv().await.unwrap() {
                return objects.iter().map(|object| object["metadata"]["name"].to_string()).collect::<Vec<_>>();
            }
        };
        assert_eq!(nodes().await, ["\"n1\""]);
        std::fs::write(&file, "kind: [").unwrap();
        tokio::time::sleep(PAUSE * 3).await;
        let list = format!(
            "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: Node, metadata: {{name: n3}}}}\n---\n{}",
            node("n2")
        );
        std::fs::write(&file, list).unwrap();
        assert_eq!(nodes().await, ["\"n3\"", "\"n2\""]);
        assert!(follow(vec![folder.path().join("absent")]).is_err());
    }
}
