//! Which version of an object something is.

use serde_json::Value;

/// The identity and version of a stored object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    /// It waits for its finalizers.
    pub(crate) terminating: bool,
}

impl Meta {
    pub(crate) fn of(object: &Value) -> Self {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        Self {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            terminating: object["metadata"]["deletionTimestamp"].is_string(),
        }
    }

    /// Whether this is what `known` was before, or an object of the same name from before it: a watch may tell late what
    /// the answer to a write has told already.
    ///
    /// Versions of one kind are compared as numbers, which Kubernetes guarantees since 1.35 and etcd always gave; one that
    /// is no number counts as new.
    pub(crate) fn is_older_than(&self, known: &Self) -> bool {
        let number = |meta: &Self| meta.resource_version.parse::<u64>().ok();
        number(self).zip(number(known)).is_some_and(|(new, known)| new < known)
    }

    /// The guard of a patch: nobody has changed the object since.
    pub(crate) fn test(&self) -> Value {
        serde_json::json!({ "op": "test", "path": "/metadata/resourceVersion", "value": self.resource_version })
    }
}

/// A key as a part of a JSON pointer (RFC 6901).
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta(uid: &str, version: &str) -> Meta {
        Meta::of(&json!({ "metadata": { "uid": uid, "resourceVersion": version } }))
    }

    #[test]
    fn only_a_smaller_version_is_older() {
        assert!(meta("a", "9").is_older_than(&meta("a", "10")));
        assert!(!meta("a", "10").is_older_than(&meta("a", "10")));
        assert!(meta("b", "9").is_older_than(&meta("a", "10")), "an object of the same name from before");
        assert!(!meta("b", "11").is_older_than(&meta("a", "10")), "and one that came later");
        assert!(!meta("a", "x").is_older_than(&meta("a", "10")));
    }

    #[test]
    fn a_key_with_a_slash_is_one_step_of_a_pointer() {
        assert_eq!(escaped("k8s.ovn.org/a~b"), "k8s.ovn.org~1a~0b");
    }
}
