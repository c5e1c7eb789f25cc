//! From sources to manifests.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{self, Read};

use egret_api::{FieldPath, Inserted, Manifests, ObjectKey};
use serde_json::Value;

use super::diagnostic::{Diagnostic, Origin, Severity};
use super::object::{Object, Objects};
use super::progress::Progress;
use super::render::printable;
use super::source::{self, Source};

/// What the sources hold.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The objects that matter to Egret.
    pub manifests: Manifests,
    /// Where each of them came from.
    pub origins: BTreeMap<ObjectKey, Origin>,
    /// How many objects of each kind do not matter.
    pub ignored: BTreeMap<String, usize>,
    /// What is wrong with the input, in its order.
    pub diagnostics: Vec<Diagnostic>,
    /// How many objects there were, ignored ones and ones with faults included.
    pub objects: usize,
}

impl Loaded {
    /// Whether some of the input could not be used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }
}

/// Reads everything that the sources name.
///
/// Of two objects of one name the later one counts, with a warning if they differ.
#[must_use]
pub fn load(sources: &[Source], progress: &dyn Progress) -> Loaded {
    load_from(sources, &mut io::stdin(), progress)
}

/// As [`load`], with standard input as a value.
#[must_use]
pub fn load_from(sources: &[Source], stdin: &mut dyn Read, progress: &dyn Progress) -> Loaded {
    let (entries, diagnostics) = source::expand(sources);
    let mut loader = Loader { loaded: Loaded { diagnostics, ..Loaded::default() }, ..Loader::default() };
    for entry in entries {
        progress.file(&entry.source.to_string(), loader.loaded.objects);
        match source::read(&entry.source, stdin) {
            Ok(file) => {
                let objects = Objects::of(&file, entry.found);
                let empty = objects.found.is_empty() && objects.diagnostics.is_empty();
                if empty && !entry.found {
                    loader.loaded.diagnostics.push(
                        Diagnostic::of_file(Severity::Warning, file.name(), "the input holds no object")
                            .with_help("did the command that wrote it fail? its errors are not in the file"),
                    );
                }
                loader.take(objects);
            }
            Err(diagnostic) => loader.loaded.diagnostics.push(*diagnostic),
        }
    }
    progress.all(loader.loaded.objects);
    loader.finish()
}

/// What documents count as that are no objects of Kubernetes.
const FOREIGN: &str = "(not of Kubernetes)";

/// How many replaced objects are named one by one: two dumps of one cluster, given by mistake, differ in thousands.
const NAMED_REPLACEMENTS: usize = 20;

#[derive(Default)]
struct Loader {
    loaded: Loaded,
    /// The hash of each object's value, to tell a copy from a different object of the same name. A collision costs a
    /// warning.
    fingerprints: BTreeMap<ObjectKey, u64>,
    replaced: usize,
    /// The file of the last replacement that was not named.
    unnamed: String,
}

impl Loader {
    fn take(&mut self, objects: Objects) {
        self.loaded.diagnostics.extend(objects.diagnostics);
        if objects.foreign > 0 {
            *self.loaded.ignored.entry(FOREIGN.to_owned()).or_default() += objects.foreign;
        }
        for object in objects.found {
            self.insert(object);
        }
    }

    fn insert(&mut self, object: Object) {
        self.loaded.objects += 1;
        let (label, fingerprint) = (object.label(), fingerprint(&object.value));
        let Object { value, origin } = object;
        match self.loaded.manifests.insert(value) {
            Ok(Inserted::Known(key)) => {
                if self.fingerprints.insert(key.clone(), fingerprint).is_some_and(|earlier| earlier != fingerprint) {
                    self.replaced(&key, &origin, label);
                }
                self.loaded.origins.insert(key, origin);
            }
            Ok(Inserted::Ignored { kind }) => *self.loaded.ignored.entry(printable(&kind)).or_default() += 1,
            Err(fault) => {
                let diagnostic = Diagnostic::of_fault(&origin, &fault);
                self.loaded.diagnostics.push(match label {
                    Some(label) => diagnostic.with_object(label),
                    None => diagnostic,
                });
            }
        }
    }

    fn replaced(&mut self, key: &ObjectKey, origin: &Origin, label: Option<String>) {
        self.replaced += 1;
        if self.replaced > NAMED_REPLACEMENTS {
            origin.file().clone_into(&mut self.unnamed);
            return;
        }
        let name = FieldPath::of(&["metadata", "name"]);
        let message = format!("{} is in the input twice, and differs", label.unwrap_or_default());
        let mut diagnostic = Diagnostic::at(Severity::Warning, message, origin.place(&name))
            .with_help("the later one is used; remove the other one");
        if let Some(earlier) = self.loaded.origins.get(key) {
            diagnostic = diagnostic.with_earlier(earlier.place(&name));
        }
        self.loaded.diagnostics.push(diagnostic);
    }

    fn finish(mut self) -> Loaded {
        if let Some(more) = self.replaced.checked_sub(NAMED_REPLACEMENTS).filter(|&more| more > 0) {
            self.loaded.diagnostics.push(
                Diagnostic::of_file(
                    Severity::Warning,
                    &self.unnamed,
                    format!("{more} more objects are in the input twice"),
                )
                .with_help("the later ones are used; are two dumps of one cluster in the input?"),
            );
        }
        self.loaded
    }
}

fn fingerprint(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
