//! Where input is read from: files, folders, standard input.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnostic::{Diagnostic, Severity};
use super::file::File;

/// What one argument of the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, or a folder with everything below it.
    Path(PathBuf),
    /// Standard input, written `-`.
    Stdin,
}

impl From<OsString> for Source {
    fn from(argument: OsString) -> Self {
        if argument == "-" { Self::Stdin } else { Self::Path(argument.into()) }
    }
}

impl From<&str> for Source {
    fn from(argument: &str) -> Self {
        OsString::from(argument).into()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Stdin => f.write_str("<stdin>"),
        }
    }
}

/// The most that is read from one file: a hundred times the dump of a large cluster, and what keeps `/dev/zero` from
/// filling the memory.
const MAX_BYTES: u64 = 1 << 30;

/// One input to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) source: Source,
    /// Found in a folder, not named by the user: that it holds nothing, or something else than manifests, is no news.
    pub(crate) found: bool,
}

/// The files that the sources name, in order and each of them once; folders are replaced by the manifests in them, in
/// the order of their paths.
pub(crate) fn expand(sources: &[Source]) -> (Vec<Entry>, Vec<Diagnostic>) {
    let (mut entries, mut diagnostics, mut seen) = (Vec::new(), Vec::new(), Seen::default());
    for source in sources {
        match source {
            Source::Path(path) if path.is_dir() => {
                let mut files = walk(path, &mut seen, &mut diagnostics);
                files.sort();
                if files.is_empty() && diagnostics.is_empty() {
                    let message = "this folder holds no .yaml, .yml or .json file that was not read already";
                    diagnostics.push(
                        Diagnostic::of_file(Severity::Error, &source.to_string(), message)
                            .with_help("name a must-gather folder, or a file from `kubectl get ... -A -o yaml`"),
                    );
                }
                let found = |path| Entry { source: Source::Path(path), found: true };
                entries.extend(files.into_iter().map(found));
            }
            Source::Path(path) => {
                if seen.first_time(path) {
                    entries.push(Entry { source: source.clone(), found: false });
                }
            }
            Source::Stdin => {
                if !std::mem::replace(&mut seen.stdin, true) {
                    entries.push(Entry { source: Source::Stdin, found: false });
                }
            }
        }
    }
    (entries, diagnostics)
}

/// Real paths that were met already: keeps loops of symbolic links finite, and a mounted `ConfigMap`, in which every
/// file is there twice, single.
#[derive(Default)]
struct Seen {
    paths: BTreeSet<PathBuf>,
    stdin: bool,
}

impl Seen {
    fn first_time(&mut self, path: &Path) -> bool {
        // A path that cannot be resolved is read, so that the error of reading it is reported.
        fs::canonicalize(path).map_or(true, |real| self.paths.insert(real))
    }
}

fn walk(root: &Path, seen: &mut Seen, diagnostics: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        if !seen.first_time(&folder) {
            continue;
        }
        let entries: io::Result<Vec<_>> = fs::read_dir(&folder).and_then(Iterator::collect);
        let mut entries: Vec<PathBuf> = match entries {
            Ok(entries) => entries.iter().map(fs::DirEntry::path).collect(),
            Err(error) => {
                diagnostics.push(unreadable(&folder.display().to_string(), &error));
                continue;
            }
        };
        // Sorted here too: which of two links to one file is taken must not depend on the file system.
        entries.sort();
        for path in entries {
            match fs::metadata(&path) {
                Ok(found) if found.is_dir() => folders.push(path),
                Ok(found) if found.is_file() && is_manifest(&path) && seen.first_time(&path) => files.push(path),
                // A dangling link of a name that would be read.
                Err(error) if is_manifest(&path) => {
                    diagnostics.push(unreadable(&path.display().to_string(), &error));
                }
                // A pipe or a device would block, other files are not ours.
                Ok(_) | Err(_) => {}
            }
        }
    }
    files
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn unreadable(name: &str, error: &io::Error) -> Diagnostic {
    let help = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check the permissions, or read it as another user and pass it by `-`",
        _ => "check that it can be read",
    };
    Diagnostic::of_file(Severity::Error, name, format!("failed to read the input: {error}")).with_help(help)
}

/// The text of a source.
///
/// # Errors
/// That it cannot be read, is too large or is not UTF-8.
pub(crate) fn read(source: &Source, stdin: &mut dyn Read) -> Result<Arc<File>, Box<Diagnostic>> {
    let name = source.to_string();
    let mut bytes = Vec::new();
    let read = match source {
        Source::Path(path) => fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)),
        Source::Stdin => stdin.take(MAX_BYTES + 1).read_to_end(&mut bytes),
    };
    let count = read.map_err(|error| Box::new(unreadable(&name, &error)))?;
    if u64::try_from(count).unwrap_or(u64::MAX) > MAX_BYTES {
        let message = format!("the input is larger than {} MiB", MAX_BYTES >> 20);
        let diagnostic = Diagnostic::of_file(Severity::Error, &name, message);
        return Err(Box::new(diagnostic.with_help("split it, or leave out other kinds")));
    }
    let utf16 = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
    match String::from_utf8(bytes) {
        Ok(text) => Ok(File::new(&name, text.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(text))),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = good.split(|&byte| byte == b'\n').count();
            let help = if utf16 {
                "it looks like UTF-16, as `>` of PowerShell writes it; use `| Out-File -Encoding utf8`"
            } else {
                "save it as UTF-8; if it is compressed, unpack it first"
            };
            let message = format!("the input is not UTF-8 (line {line})");
            Err(Box::new(Diagnostic::of_file(Severity::Error, &name, message).with_help(help)))
        }
    }
}
