//! Names, and the age that orders objects.

use std::fmt;
use std::sync::Arc;

/// Makes a newtype around a shared string: cheap to clone, ordered as text.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name!(
    /// `metadata.name` of a Node.
    NodeName
);
name!(
    /// `metadata.name` of an EgressIP (cluster-scoped).
    EgressIpName
);

/// Namespace and name of a Service; its EgressService has the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name of the Service and of the EgressService.
    pub name: Arc<str>,
}

impl ServiceKey {
    /// The key of `namespace/name`.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// `metadata.creationTimestamp` in seconds since 1970, the resolution Kubernetes stores.
///
/// [`Timestamp::UNKNOWN`] is what an object gets that no API server has stored yet; it is younger than every other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Not created yet: younger than everything that is.
    pub const UNKNOWN: Self = Self(i64::MAX);
}
