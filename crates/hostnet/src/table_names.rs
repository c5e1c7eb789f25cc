//! Names of routing tables, as `ip` knows them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The names in these files, and in the `*.conf` of those that are folders. What comes later wins; what is not there or
/// not understood is passed over, as `ip` does.
pub(crate) fn read(paths: &[PathBuf]) -> BTreeMap<String, u32> {
    let mut names = BTreeMap::new();
    for path in paths {
        let mut files = vec![path.clone()];
        if let Ok(folder) = fs::read_dir(path) {
            files = folder.flatten().map(|entry| entry.path()).collect();
            files.retain(|file| file.extension().is_some_and(|extension| extension == "conf"));
            files.sort();
        }
        for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
            names.extend(text.lines().filter_map(entry));
        }
    }
    names
}

fn entry(line: &str) -> Option<(String, u32)> {
    let mut words = line.split('#').next()?.split_whitespace();
    let (number, name) = (words.next()?, words.next()?);
    let number = match number.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some((name.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_read_and_what_comes_later_wins() {
        let folder = tempfile::tempdir().unwrap();
        let (file, inner) = (folder.path().join("rt_tables"), folder.path().join("rt_tables.d"));
        fs::write(&file, "# reserved\n254\tmain\n0x64 blue # a network\n\n7\nx y\n").unwrap();
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("a.conf"), "101 blue\n").unwrap();
        fs::write(inner.join("README"), "102 blue\n").unwrap();
        let names = read(&[file, inner, folder.path().join("absent")]);
        assert_eq!(names, BTreeMap::from([("blue".to_owned(), 101), ("main".to_owned(), 254)]));
    }
}
