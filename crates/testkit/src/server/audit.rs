//! Who wrote what, as the server's own audit log tells it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;

/// Writes only: reads are many, and what a watch has cost no test asks. The server itself writes all the time.
pub(crate) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: None, users: ['system:apiserver']}
- {level: None, verbs: [get, list, watch]}
- {level: Metadata}
";

/// A request to write, taken or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Who wrote; who was impersonated, if somebody was.
    pub user: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Lower case and plural, such as `egressips`.
    pub resource: String,
    /// Such as `status`, or empty.
    pub subresource: String,
    /// Empty for what has none.
    pub namespace: String,
    /// Empty if the server chose it, or for `deletecollection`.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
}

/// Why the log could not be read.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The file is not there or cannot be read.
    #[error("failed to read the audit log")]
    Read {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line of it is not what Kubernetes documents.
    #[error("failed to understand the audit log: {line}")]
    Parse {
        /// The line.
        line: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    impersonated_user: Option<User>,
    object_ref: Option<Reference>,
    response_status: Option<Status>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Status {
    code: u16,
}

/// How long the log is now. Whatever is logged later is behind that.
pub(crate) fn length(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |metadata| metadata.len())
}

/// What was written since the log was so long, in the order of the answers.
///
/// A request is in the log before its answer is complete: the server logs when its handler is done, and the answer ends
/// after that.
pub(crate) fn since(log: &Path, length: u64) -> Result<Vec<Write>, AuditError> {
    let mut text = String::new();
    File::open(log)
        .and_then(|mut file| file.seek(SeekFrom::Start(length)).and_then(|_| file.read_to_string(&mut text)))
        .map_err(|source| AuditError::Read { source })?;
    // The last line may be half written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(|line| write(line).transpose()).collect()
}

/// A rehearsal (`dryRun`) and a review of access write nothing.
fn write(line: &str) -> Result<Option<Write>, AuditError> {
    let event: Event =
        serde_json::from_str(line).map_err(|source| AuditError::Parse { line: line.to_owned(), source })?;
    let Some((object, status)) = event.object_ref.zip(event.response_status) else { return Ok(None) };
    if event.request_uri.contains("dryRun=All") || object.resource.ends_with("reviews") {
        return Ok(None);
    }
    Ok(Some(Write {
        user: event.impersonated_user.unwrap_or(event.user).username,
        verb: event.verb,
        resource: object.resource,
        subresource: object.subresource,
        namespace: object.namespace,
        name: object.name,
        code: status.code,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","verb":"patch","requestURI":"/apis/k8s.ovn.org/v1/egressips/a/status",
        "user":{"username":"admin"},"impersonatedUser":{"username":"system:serviceaccount:egret:egret"},
        "objectRef":{"resource":"egressips","name":"a","subresource":"status"},"responseStatus":{"code":200}}"#;

    #[test]
    fn the_impersonated_user_is_the_one_who_writes() {
        let write = write(LINE).unwrap().unwrap();
        assert_eq!(write.user, "system:serviceaccount:egret:egret");
        assert_eq!((write.verb.as_str(), write.resource.as_str(), write.code), ("patch", "egressips", 200));
        assert_eq!((write.name.as_str(), write.subresource.as_str(), write.namespace.as_str()), ("a", "status", ""));
    }

    #[test]
    fn a_rehearsal_is_no_write() {
        assert_eq!(write(&LINE.replace("/status\"", "/status?dryRun=All\"")).unwrap(), None);
    }

    #[test]
    fn half_a_line_is_left_for_later() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        let line = LINE.replace('\n', "");
        std::fs::write(&log, format!("{line}\n{line}\n{}", &line[..50])).unwrap();
        assert_eq!(since(&log, 0).unwrap().len(), 2);
        let first = u64::try_from(line.len()).unwrap() + 1;
        assert_eq!(since(&log, first).unwrap().len(), 1);
    }
}
