//! The API reference is written from the definitions that are installed.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Map, Value};

use crate::support::root;

/// What a definition cannot say, for each kind: its file, its guide, and what it is good to know beside the fields.
const PAGES: [(&str, &str, &str, &str); 3] = [
    (
        "EgressIP",
        "egress-ip",
        "[Egress IP](../features/cluster-egress-controls/egress-ip.md)",
        "The schema does not look into addresses and selectors. What it lets pass and Egret refuses is told by an event \
         and by the condition `Assigned` ([reasons](../placement.md#what-is-told)): an entry that is no address, an \
         address of a node, one that another object holds, a selector that does not compile.",
    ),
    (
        "EgressService",
        "egress-service",
        "[Egress Service](../features/cluster-egress-controls/egress-service.md)",
        "It belongs to the Service of the same namespace and name.",
    ),
    (
        "CloudPrivateIPConfig",
        "cloud-private-ip-config",
        "[Tuning](../operations/tuning.md#clouds)",
        "The controller writes these objects, the cloud's controller answers them. On such a cloud its operator brings \
         the definition; below is the part that Egret reads and writes. The annotation `k8s.ovn.org/egressip-owner-ref` \
         names the EgressIP; objects without it are left alone.",
    ),
];

#[test]
fn the_api_reference_is_what_the_types_say() {
    for definition in egret_api::crd::definitions(true) {
        let kind = text(&definition, "/spec/names/kind");
        let (_, file, guide, notes) =
            PAGES.into_iter().find(|page| page.0 == kind).expect("every kind has a page of reference");
        let path = root().join(format!("docs/api-reference/{file}-api-spec.md"));
        let fresh = page(&definition, guide, notes);
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            fs::write(&path, &fresh).expect("it can be written");
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == fresh, "{} is not what the types say: see crates/cli/tests/docs/main.rs", path.display());
    }
}

fn page(definition: &Value, guide: &str, notes: &str) -> String {
    let kind = text(definition, "/spec/names/kind");
    let version = &definition["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut page = format!("# {kind}\n\n<!-- Written by crates/cli/tests/docs/reference.rs from the types. -->\n\n");
    let _ = writeln!(page, "{}\n\nGuide: {guide}. {notes}\n", words(&schema["description"]));
    facts(&mut page, definition, version);
    let mut sections = Sections::default();
    sections.add("", schema);
    page.push_str(&sections.text);
    if sections.selectors {
        let mut selector = Sections::default();
        selector.table("LabelSelector", sections.selector.as_ref().unwrap_or(&Value::Null));
        page.push_str(&selector.text);
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// What `kubectl` has to know.
fn facts(page: &mut String, definition: &Value, version: &Value) {
    let group = format!("{}/{}", text(definition, "/spec/group"), text(version, "/name"));
    let names = &definition["spec"]["names"];
    let short: Vec<&str> = names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let short = if short.is_empty() { String::new() } else { format!(", `{}`", short.join("`, `")) };
    let subresource = if version["subresources"]["status"].is_object() {
        "a subresource, `kubectl edit --subresource=status`"
    } else {
        "part of the object: there is no status subresource, and every write of the status raises \
         `metadata.generation`"
    };
    let columns: Vec<String> = version["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| format!("{} (`{}`)", text(column, "/name"), text(column, "/jsonPath")))
        .collect();
    let columns = if columns.is_empty() { "name and age only".to_owned() } else { columns.join(", ") };
    let _ = writeln!(
        page,
        "| | |\n| --- | --- |\n| `apiVersion` | `{group}` |\n| scope | {} |\n| names | `{}`, `{}`{short} |\n| status | \
         {subresource} |\n| columns of `kubectl get` | {columns} |\n",
        text(definition, "/spec/scope"),
        text(names, "/plural"),
        text(names, "/singular"),
    );
}

/// A table for each object inside the schema, an object before what is inside it.
#[derive(Debug, Default)]
struct Sections {
    text: String,
    /// Label selectors are shown once, at the end.
    selector: Option<Value>,
    selectors: bool,
}

impl Sections {
    fn add(&mut self, path: &str, schema: &Value) {
        let Some(properties) = schema["properties"].as_object() else { return };
        if !path.is_empty() {
            self.table(&format!("`{path}`"), schema);
        }
        for (name, property) in properties {
            let (suffix, inner) = inside(property);
            if is_selector(inner) {
                self.selectors = true;
                self.selector.get_or_insert_with(|| inner.clone());
                continue;
            }
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.add(&format!("{below}{suffix}"), inner);
        }
    }

    fn table(&mut self, title: &str, schema: &Value) {
        let _ = writeln!(self.text, "## {title}\n");
        if title != "LabelSelector" && schema["description"].is_string() {
            let _ = writeln!(self.text, "{}\n", words(&schema["description"]));
        }
        self.text.push_str("| field | type | required | default | description | validation |\n");
        self.text.push_str("| --- | --- | --- | --- | --- | --- |\n");
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let empty = Map::new();
        let path = title.trim_matches('`');
        for (name, property) in schema["properties"].as_object().unwrap_or(&empty) {
            self.row(path, name, property, required.contains(&name.as_str()));
            // There is no page of its own for what a selector is made of.
            if title == "LabelSelector" && name == "matchExpressions" {
                let inner = &property["items"];
                let needed =
                    |field: &str| inner["required"].as_array().is_some_and(|all| all.iter().any(|r| r == field));
                for (field, property) in inner["properties"].as_object().unwrap_or(&empty) {
                    self.row(path, &format!("{name}[].{field}"), property, needed(field));
                }
            }
        }
        self.text.push('\n');
    }

    fn row(&mut self, path: &str, name: &str, property: &Value, required: bool) {
        let required = if required { "yes" } else { "no" };
        let default = property.get("default").map_or_else(String::new, |default| format!("`{default}`"));
        let _ = writeln!(
            self.text,
            "| `{name}` | {} | {required} | {default} | {} | {} |",
            linked(path, name, property),
            words(&property["description"]),
            validation(property)
        );
    }
}

/// What is inside a list, or the property itself.
fn inside(property: &Value) -> (&'static str, &Value) {
    if property["type"] == "array" { ("[]", &property["items"]) } else { ("", property) }
}

fn is_selector(schema: &Value) -> bool {
    schema["properties"]["matchLabels"].is_object() && schema["properties"]["matchExpressions"].is_object()
}

/// The type, with a link to the table of what is inside.
fn linked(path: &str, name: &str, property: &Value) -> String {
    let (suffix, inner) = inside(property);
    let kind = kind(property);
    if path == "LabelSelector" || is_selector(inner) || !inner["properties"].is_object() {
        return kind;
    }
    // As the site makes it of the heading.
    let anchor: String =
        format!("{path}{name}{suffix}").to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("[{kind}](#{anchor})")
}

fn kind(property: &Value) -> String {
    if is_selector(property) {
        return "[LabelSelector](#labelselector)".to_owned();
    }
    let of = property["type"].as_str().unwrap_or("any");
    match of {
        "array" => format!("list of {}", kind(&property["items"])),
        "object" if property["additionalProperties"]["type"].is_string() => {
            format!("map of {}", kind(&property["additionalProperties"]))
        }
        _ => of.to_owned(),
    }
}

/// What the API server refuses, and how it merges.
fn validation(property: &Value) -> String {
    let mut rules = Vec::new();
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        rules.push(format!("one of `{}`", values.join("`, `")));
    }
    for (key, word) in [
        ("format", "format"),
        ("pattern", "pattern"),
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("minItems", "entries at least"),
        ("maxItems", "entries at most"),
    ] {
        if let Some(value) = property.get(key) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            rules.push(format!("{word} `{}`", value.replace('|', "\\|")));
        }
    }
    match property["x-kubernetes-list-type"].as_str() {
        Some("map") => {
            let keys: Vec<&str> = property["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            rules.push(format!("one entry for each `{}`", keys.join("`, `")));
        }
        Some(list) => rules.push(format!("{list} list")),
        None => {}
    }
    rules.join("; ")
}

/// A description as one line of a table.
fn words(description: &Value) -> String {
    let text = description.as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
