//! Every kind of input, and every kind of bad input.

use std::fs;
use std::path::Path;

use super::*;

mod places;
mod refused;
mod sources;

/// The input as if it came from standard input.
fn text(input: impl AsRef<[u8]>) -> Loaded {
    load_from(&[Source::Stdin], &mut input.as_ref(), &Silent)
}

/// Everything that people are told, as they see it.
fn told(loaded: &Loaded) -> String {
    loaded.diagnostics.iter().map(|diagnostic| diagnostic.render(Style::default())).collect::<Vec<_>>().join("\n\n")
}

fn keys(loaded: &Loaded) -> Vec<String> {
    loaded.origins.values().map(|origin| format!("{}:{}", short(origin.file()), origin.line())).collect()
}

/// The file's name without its folder, which differs from run to run.
fn short(file: &str) -> &str {
    Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or(file)
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata:\n  name: worker-1\n";
