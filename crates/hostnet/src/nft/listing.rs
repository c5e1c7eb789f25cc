//! What `nft --json list table` says of declarations and chains.

use serde_json::Value;

/// All of it but what changes by itself, handles and counters, and but what is in sets.
pub(super) fn text(listing: &Value) -> String {
    let objects = listing["nftables"].as_array().into_iter().flatten().filter_map(Value::as_object).flatten();
    let lines = objects.filter(|(kind, _)| *kind != "metainfo").map(|(kind, object)| {
        let mut object = object.clone();
        strip(&mut object);
        format!("{kind} {object}\n")
    });
    lines.collect()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("handle");
            fields.remove("elem");
            for (name, value) in fields {
                if name == "counter" {
                    *value = Value::Null;
                }
                strip(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_by_itself_is_not_in_it_and_what_somebody_changes_is() {
        let rule = |handle: u32, counter: &str, chain: &str| {
            let rule = format!(
                r#"{{"nftables": [{{"metainfo": {{"version": "{handle}"}}}}, {{"rule": {{"handle": {handle}, "chain":
                "{chain}", "expr": [{{"counter": {counter}}}, {{"drop": null}}]}}}}]}}"#
            );
            text(&serde_json::from_str(&rule).unwrap())
        };
        assert_eq!(rule(1, "null", "guard"), rule(2, r#"{"packets": 7}"#, "guard"));
        assert_ne!(rule(1, "null", "guard"), rule(1, "null", "forward"));
    }
}
