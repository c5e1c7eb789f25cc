//! What the kernel holds for a host, as lines that can be compared.

use std::fs;
use std::io;
use std::iter;
use std::path::Path;

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use crate::error::LabError;
use crate::namespace::Namespace;

/// What a link has that changes by itself, or differs from one link to the next that is the same otherwise.
const NO_STATE: &[&str] = &[
    "ifindex",
    "link_index",
    "link_netnsid",
    "valid_life_time",
    "preferred_life_time",
    "operstate",
    "tentative",
    "optimistic",
    "stats",
    "stats64",
];

/// Parameters that count or cannot be read.
const NO_PARAMETERS: &[&str] = &["nf_conntrack_count", "stable_secret", "flush", "nf_conntrack_buckets"];

/// The parameters that are dumped, below `/proc/sys/net`.
const PARAMETERS: &[&str] = &["ipv4", "ipv6", "netfilter", "bridge"];

/// Everything.
pub(crate) fn dump(host: &Namespace) -> Result<String, LabError> {
    let mut lines = list_links(&host.tell(&["ip", "-d", "-j", "addr", "show"], "")?);
    for (family, name) in [("-4", "4"), ("-6", "6")] {
        // In the order in which they are tried.
        let rules = host.tell(&["ip", "-o", family, "rule", "show"], "")?;
        lines.extend(rules.lines().map(|rule| format!("rule{name} {}", words(rule))));
        let routes = host.tell(&["ip", "-o", "-d", family, "route", "show", "table", "all"], "")?;
        let mut routes: Vec<String> = routes.lines().map(|route| format!("route{name} {}", words(route))).collect();
        routes.sort();
        lines.extend(routes);
    }
    lines.extend(ruleset(&host.tell(&["nft", "-s", "list", "ruleset"], "")?));
    lines.extend(host.inside(parameters));
    lines.push(String::new());
    Ok(lines.join("\n"))
}

/// What differs, a line each: `- ` is gone, `+ ` is new.
#[must_use]
pub fn difference(before: &str, after: &str) -> String {
    let difference = TextDiff::from_lines(before, after);
    let changes = difference.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    changes.flat_map(|change| [change.tag().to_string(), format!(" {}\n", change.value().trim_end())]).collect()
}

/// With one space between them.
fn words(line: &str) -> String {
    line.replace('\\', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Links and their addresses. `ip` as text shows timers of bridges, so it is told in JSON and told again by us.
fn list_links(json: &str) -> Vec<String> {
    let Ok(Value::Array(all)) = serde_json::from_str(json) else { return Vec::new() };
    let mut lines = Vec::new();
    for mut link in all.into_iter().filter_map(object) {
        let name = link.remove("ifname").map_or_else(String::new, |name| plain(&name));
        let addresses = link.remove("addr_info");
        lines.push(format!("link {name} {}", told(&link)));
        for address in addresses.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let address = address.as_object().cloned().unwrap_or_default();
            lines.push(format!("address {name} {}", told(&address)));
        }
    }
    lines.sort();
    lines
}

fn object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(map) = value { Some(map) } else { None }
}

/// Keys and values, in the order of the keys, without what changes by itself.
fn told(map: &Map<String, Value>) -> String {
    let mut words: Vec<String> = map
        .iter()
        .filter(|(key, _)| !NO_STATE.contains(&key.as_str()) && !key.ends_with("_timer"))
        .map(|(key, value)| match value {
            Value::Object(inner) => format!("{key} {{ {} }}", told(inner)),
            other => format!("{key} {}", plain(other)),
        })
        .collect();
    words.sort();
    words.join(" ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let mut all: Vec<String> = all.iter().map(plain).collect();
            all.sort();
            format!("[{}]", all.join(" "))
        }
        Value::Object(inner) => format!("{{ {} }}", told(inner)),
        other => other.to_string(),
    }
}

/// A line for each rule and each property, with the table and the chain that it is in: tables by name, the chains and
/// sets of a table by name, rules in their order, elements in theirs.
fn ruleset(text: &str) -> Vec<String> {
    let mut blocks: Vec<(String, String, Vec<String>)> = Vec::new();
    let (mut table, mut block) = (String::new(), String::new());
    let mut unfinished = String::new();
    for line in text.lines().map(words) {
        if !unfinished.is_empty() || line.contains("elements = {") && !line.ends_with('}') {
            unfinished = format!("{unfinished} {line}");
            if !line.ends_with('}') {
                continue;
            }
        }
        let line = if unfinished.is_empty() { line } else { std::mem::take(&mut unfinished).trim().to_owned() };
        match line.as_str() {
            "" => {}
            "}" if block.is_empty() => table.clear(),
            "}" => block.clear(),
            _ if table.is_empty() => {
                line.trim_end_matches(" {").clone_into(&mut table);
                blocks.push((table.clone(), String::new(), Vec::new()));
            }
            _ if block.is_empty() && line.ends_with('{') => {
                line.trim_end_matches(" {").clone_into(&mut block);
                blocks.push((table.clone(), block.clone(), Vec::new()));
            }
            _ => {
                if let Some((.., inside)) = blocks.last_mut() {
                    inside.push(elements(&line));
                }
            }
        }
    }
    blocks.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    let lines = blocks.into_iter().flat_map(|(table, block, inside)| {
        let head = format!("nft {table} {block}").trim_end().to_owned();
        let inside: Vec<String> = inside.into_iter().map(|line| format!("{head}: {line}")).collect();
        iter::once(head).chain(inside)
    });
    lines.collect()
}

/// The elements of a set in an order of their own: the kernel's is that of a hash.
fn elements(line: &str) -> String {
    let Some(all) = line.strip_prefix("elements = { ").and_then(|rest| rest.strip_suffix(" }")) else {
        return line.to_owned();
    };
    let mut all: Vec<&str> = all.split(',').map(str::trim).collect();
    all.sort_unstable();
    format!("elements = {{ {} }}", all.join(", "))
}

fn parameters() -> Vec<String> {
    let root = Path::new("/proc/sys/net");
    let mut lines = Vec::new();
    for part in PARAMETERS {
        // A kernel may lack any of them, and what went away meanwhile is not there.
        let _ = walk(root, &root.join(part), &mut lines);
    }
    lines.sort();
    lines
}

fn walk(root: &Path, folder: &Path, lines: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if NO_PARAMETERS.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, lines)?;
        } else if let Ok(value) = fs::read_to_string(&path) {
            lines.push(format!("sysctl {name} {}", words(&value)));
        }
    }
    Ok(())
}
