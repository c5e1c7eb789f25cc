//! Times as Kubernetes writes them.

use egret_core::Timestamp;

/// RFC 3339 in UTC with whole seconds: `2026-11-29T18:00:00Z`. A time that no calendar has is 1970's first second.
#[must_use]
pub fn render(timestamp: Timestamp) -> String {
    jiff::Timestamp::from_second(timestamp.0).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_as_kubernetes_writes_them() {
        assert_eq!(render(Timestamp(1_795_975_200)), "2026-11-29T18:00:00Z");
        assert_eq!(render(Timestamp(i64::MAX)), "1970-01-01T00:00:00Z");
    }
}
