//! Files of ours, written as a whole or not at all.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes `value` as JSON beside the file, then puts it in its place.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, serde_json::to_vec(value)?)?;
    fs::rename(beside, path)
}

/// What is in the file. A file that is not there, or not ours, says nothing.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
