//! Where a kind of object is served.

use egret_api::Kind;
use kube::core::{ApiResource, GroupVersionKind};

/// A kind of object, as an API server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// `apiVersion` of its objects.
    pub api_version: &'static str,
    /// `kind` of its objects.
    pub kind: &'static str,
    /// Under which name they are served.
    pub plural: &'static str,
}

impl Resource {
    /// As kube has it.
    #[must_use]
    pub fn api(self) -> ApiResource {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, self.kind), self.plural)
    }
}

impl From<Kind> for Resource {
    fn from(kind: Kind) -> Self {
        Self { api_version: kind.api_version(), kind: kind.name(), plural: kind.plural() }
    }
}
