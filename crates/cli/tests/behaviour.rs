//! The binary as its user would use it: each test is named for what it holds.
//!
//! Long, because it is the one list of what a user may rely on, in parts: exit codes, input, output, changes, refusals.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Parser;
use egret_cli::args::Cli;
use egret_cli::input::Silent;
use egret_cli::{Program, Streams, Style};
use egret_testkit::objects::{egress_ip_on, node_at};
use serde_json::{Value, json};
use support::{Run, egret, root, run, run_with};
use tempfile::TempDir;

/// Four nodes, six addresses, all settled.
const DRAIN: &str = "examples/3-maintenance-drain/cluster";
const CHANGE: &str = "examples/3-maintenance-drain/change.yaml";
const ZONES: &str = "examples/1-zones/cluster";
const SERVICES: &str = "examples/5-service-with-own-network/cluster";

fn ask(arguments: &[&str]) -> Run {
    run(egret(arguments.iter().copied()))
}

/// Runs a command that answers in JSON, whatever its exit code.
fn answer(arguments: &[&str]) -> (Value, Run) {
    let run = run(egret(arguments.iter().copied().chain(["-o", "json"])));
    let value: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
    assert!(value.is_object(), "this is no answer in JSON: {run}");
    (value, run)
}

/// The lines of `list` in an answer, each as `object address from -> to`.
fn lines(answer: &Value, list: &str) -> Vec<String> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or("-").to_owned();
    let line = |line: &Value| {
        let [object, address, from, to] = ["object", "address", "from", "to"].map(|key| text(line, key));
        format!("{object} {address} {from} -> {to}")
    };
    answer[list].as_array().expect("a list").iter().map(line).collect()
}

fn node(name: &str, host: u8) -> Value {
    node_at(name, &format!("192.168.50.{host}/24"))
}

fn list(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// A folder with one file; the path of the file, and the folder, which is removed when it is dropped.
fn file(name: &str, content: &str) -> (String, TempDir) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    write(folder.path(), name, content);
    (folder.path().join(name).display().to_string(), folder)
}

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder)).expect("a folder can be made");
    fs::write(path, content).expect("a file can be written");
}

fn cluster(objects: &[Value]) -> (String, TempDir) {
    file("cluster.json", &list(objects))
}

// Exit codes.

#[test]
fn detailed_exitcode_tells_a_plan_that_moves_something_from_one_that_does_not() {
    assert_eq!(ask(&["plan", DRAIN, "--detailed-exitcode"]).code, Some(0));
    assert_eq!(ask(&["plan", DRAIN, "--apply", CHANGE, "--detailed-exitcode"]).code, Some(2));
    assert_eq!(ask(&["plan", DRAIN, "--apply", CHANGE]).code, Some(0), "not asked for");
}

#[test]
fn faulty_input_wins_over_detailed_exitcode() {
    let (bad, _folder) = file("bad.yaml", "kind: EgressIP\napiVersion: k8s.ovn.org/v1\nmetadata: {name: x}\nspec: 7\n");
    let run = ask(&["plan", DRAIN, &bad, "--drain", "worker-a", "--detailed-exitcode"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("worker-a"), "what could be read is planned all the same: {run}");
}

#[test]
fn a_broken_invariant_fails_the_audit() {
    let (cluster, _folder) =
        cluster(&[node("a", 1), egress_ip_on("x", &["192.168.50.9"], &[("gone", "192.168.50.9")])]);
    let run = ask(&["audit", &cluster]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("EligibleOwner") && run.stdout.contains("192.168.50.9"), "{run}");
}

#[test]
fn usage_errors_exit_64_with_nothing_on_standard_output() {
    for arguments in [
        &[][..],
        &["plan"],
        &["plam", DRAIN],
        &["plan", DRAIN, "--no-such-option"],
        &["status", DRAIN, "-o", "markdown"],
        &["status", DRAIN, "--platform", "moon"],
        &["plan", DRAIN, "--label", "node/worker-a"],
        &["status", DRAIN, "--no-hostsubnet-nodes", "in ("],
        &["completions", "cobol"],
        &["explain", "egressip/billing", "--ip", "10.9.9", DRAIN],
        &["explain", "service/shop/web", DRAIN],
        &["explain", "egresip/billing", DRAIN],
        &["plan", DRAIN, "--delete", "billing"],
        &["plan", DRAIN, "--label", "egressip/billing", "a=b"],
        &["plan", DRAIN, "--label", "node/worker-a", "no label"],
    ] {
        let run = ask(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(64), ""), "{arguments:?}\n{run}");
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn a_refused_command_prints_nothing_on_standard_output() {
    for arguments in [
        &["explain", "egressip/nobody", DRAIN][..],
        &["explain", "egressip/billing", "--ip", "10.9.9.9", DRAIN],
        &["plan", DRAIN, "--drain", "nobody"],
        &["status", DRAIN, "--assume-unreachable", "nobody"],
    ] {
        let run = ask(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{arguments:?}\n{run}");
        assert!(run.stderr.starts_with("error: "), "{run}");
    }
}

#[test]
fn a_path_that_is_not_there_is_an_error_and_no_empty_cluster() {
    let run = ask(&["status", "no/such/file.yaml"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("no/such/file.yaml") && run.stderr.contains("check the path"), "{run}");
}

// Input.

#[test]
fn one_bad_object_does_not_hide_the_good_ones() {
    let bad = "apiVersion: k8s.ovn.org/v1\nkind: EgressIP\nmetadata:\n  name: bad\nspec:\n  egressIPs: 192.168.50.77\n  \
               namespaceSelector: {}\n";
    let good = egress_ip_on("good", &["192.168.50.78"], &[]).to_string();
    let (path, _folder) = file("change.yaml", &format!("{bad}---\n{good}\n"));
    let run = ask(&["plan", DRAIN, "--apply", &path]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("192.168.50.78"), "{run}");
    assert!(!run.stdout.contains("192.168.50.77"), "{run}");
    assert!(run.stderr.contains("change.yaml:6:14"), "file, line and column of the fault: {run}");
    assert!(run.stderr.contains('^'), "a caret under it: {run}");
}

#[test]
fn a_dash_is_standard_input() {
    let nodes = fs::read_to_string(root().join(DRAIN).join("nodes.yaml")).unwrap();
    let objects = fs::read_to_string(root().join(DRAIN).join("egressips.yaml")).unwrap();
    let piped = run_with(egret(["status", "-"]), &format!("{nodes}---\n{objects}"));
    assert_eq!(piped.stdout, ask(&["status", DRAIN]).stdout);
    assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""));
}

#[test]
fn json_and_yaml_input_say_the_same() {
    let objects = [node("a", 1), node("b", 2), egress_ip_on("x", &["192.168.50.9"], &[("a", "192.168.50.9")])];
    let (as_json, _json) = cluster(&objects);
    let documents: Vec<String> = objects.iter().map(|object| serde_saphyr::to_string(object).unwrap()).collect();
    let (as_yaml, _yaml) = file("cluster.yaml", &documents.join("---\n"));
    let (json, yaml) = (ask(&["status", &as_json]), ask(&["status", &as_yaml]));
    assert_eq!((json.code, json.stderr.as_str()), (Some(0), ""), "{json}");
    assert_eq!(json.stdout, yaml.stdout);
    assert!(json.stdout.contains("192.168.50.9"));
}

#[test]
fn a_must_gather_is_read_as_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let of = |value: &Value| serde_saphyr::to_string(value).unwrap();
    let inside = "must-gather-sha256-0123/cluster-scoped-resources";
    write(folder.path(), "timestamp", "2026-06-12 08:00:00 +0000 UTC\n");
    write(folder.path(), "must-gather.log", "[must-gather] OUT gather started\n");
    write(folder.path(), &format!("{inside}/core/nodes/a.yaml"), &of(&node("a", 1)));
    write(folder.path(), &format!("{inside}/core/nodes/b.yaml"), &of(&node("b", 2)));
    let object = egress_ip_on("x", &["192.168.50.9"], &[("a", "192.168.50.9")]);
    write(folder.path(), &format!("{inside}/k8s.ovn.org/egressips/x.yaml"), &of(&object));
    write(folder.path(), &format!("{inside}/k8s.ovn.org/egressips/notes.txt"), "x: [");
    let (status, run) = answer(&["status", folder.path().to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    assert_eq!(status["addresses"][0]["node"], "a");
    assert_eq!(status["nodes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn objects_of_other_kinds_are_counted_and_left_out() {
    let other = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let objects = [node("a", 1), other("Namespace", "x"), other("Namespace", "y"), other("ConfigMap", "z")];
    let (path, _folder) = cluster(&objects);
    let run = ask(&["status", &path]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("1 ConfigMap, 2 Namespace"), "{run}");
    assert_eq!(run.stderr.lines().count(), 1, "{run}");
}

#[test]
fn mistyped_names_offer_the_nearest() {
    for (arguments, offer) in [
        (&["plan", DRAIN, "--drain", "wroker-a"][..], "worker-a"),
        (&["plan", DRAIN, "--not-ready", "worker-e"], "worker-a, worker-b or worker-c"),
        (&["status", DRAIN, "--assume-unreachable", "worker_b"], "worker-b"),
        (&["plan", DRAIN, "--label", "node/worker-aa", "x=y"], "worker-a"),
        (&["plan", DRAIN, "--delete", "egressip/biling"], "billing"),
        (&["explain", "egressip/biling", DRAIN], "billing"),
        (&["explain", "node/workera", DRAIN], "worker-a"),
        (&["explain", "egressservice/shop/wbe", SERVICES], "shop/web"),
    ] {
        let run = ask(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}\n{run}");
        assert!(run.stderr.contains("did you mean") && run.stderr.contains(offer), "{arguments:?}\n{run}");
    }
    let run = ask(&["explain", "egresip/billing", DRAIN]);
    assert!(run.stderr.contains("did you mean egressip?"), "{run}");
}

// Output.

#[test]
fn a_pipe_gets_no_escape_codes_unless_they_are_asked_for() {
    let coloured = |arguments: &[&str], no_color: bool| {
        let mut command = egret(arguments.iter().copied());
        if !no_color {
            command.env_remove("NO_COLOR");
        }
        run(command).stdout.contains('\x1b')
    };
    assert!(!coloured(&["status", DRAIN], false));
    assert!(!coloured(&["status", DRAIN], true));
    assert!(!coloured(&["status", DRAIN, "--color", "never"], false));
    assert!(coloured(&["status", DRAIN, "--color", "always"], false));
    assert!(coloured(&["status", DRAIN, "--color", "always"], true), "what is asked for by name wins");
    assert!(!coloured(&["status", DRAIN, "--color", "always", "-o", "json"], false), "never in what machines read");
}

#[test]
fn json_and_yaml_output_parse_and_agree() {
    for arguments in [
        &["status", DRAIN][..],
        &["status", SERVICES],
        &["audit", DRAIN],
        &["plan", DRAIN, "--drain", "worker-a,worker-b,worker-c"],
        &["explain", "egressip/billing", DRAIN],
        &["explain", "egressservice/shop/web", SERVICES],
        &["explain", "node/worker-a", DRAIN],
    ] {
        let (json, _) = answer(arguments);
        let yaml = run(egret(arguments.iter().copied().chain(["-o", "yaml"])));
        let yaml: Value = serde_saphyr::from_str(&yaml.stdout).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
        assert_eq!(json, yaml, "{arguments:?}");
    }
}

#[test]
fn markdown_tables_are_well_formed() {
    let run = ask(&["plan", DRAIN, "--drain", "worker-a,worker-b,worker-c", "-o", "markdown"]);
    assert_eq!(run.code, Some(0), "{run}");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut tables = 0;
    let mut before: Option<&str> = None;
    for line in run.stdout.lines() {
        if let Some(header) = before.filter(|_| line.starts_with("| ---")) {
            tables += 1;
            assert_eq!(columns(header), columns(line), "{header}");
        }
        if line.starts_with('|') {
            assert!(line.ends_with(" |"), "{line}");
            match before.filter(|before| before.starts_with('|')) {
                Some(before) => assert_eq!(columns(before), columns(line), "{line}"),
                None => assert_eq!(before, Some(""), "a table has an empty line above it"),
            }
        }
        before = Some(line);
    }
    assert!(tables >= 3, "moves, unassigned, load: {run}");
    assert!(run.stdout.starts_with("# "), "{run}");
}

#[test]
fn completions_are_there_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let run = ask(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.stdout.contains("detailed-exitcode"), "{shell}");
    }
}

#[test]
fn the_help_of_every_command_has_an_example() {
    let commands = ask(&["--help"]).stdout;
    let (_, commands) = commands.split_once("Commands:\n").expect("a list of commands");
    let commands: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(commands.contains(&"plan") && commands.len() >= 6, "{commands:?}");
    for command in commands {
        let run = ask(&[command, "--help"]);
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("Examples:") && run.stdout.contains(&format!("egret {command} ")), "{run}");
    }
}

#[test]
fn definitions_are_printed_as_manifests() {
    let run = ask(&["crds"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains("egressips.k8s.ovn.org") && run.stdout.contains("egressservices.k8s.ovn.org"));
    assert!(!run.stdout.contains("cloudprivateipconfigs"));
    assert!(ask(&["crds", "--all"]).stdout.contains("cloudprivateipconfigs"));
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_panic() {
    let mut command = egret(["crds", "--all"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.code().is_some_and(|code| code <= 1), "{:?}", output.status);
}

/// Clears the line that the cursor is on.
const CLEAR_LINE: &str = "\x1b[2K";

/// Commands whose answers have every kind of section, wide ones among them.
const WIDE: [&[&str]; 8] = [
    &["status", DRAIN],
    &["status", SERVICES],
    &["audit", DRAIN],
    &["plan", DRAIN, "--apply", CHANGE, "--drain", "worker-c"],
    &["plan", ZONES, "--not-ready", "dmz-1,dmz-2,dmz-3"],
    &["explain", "egressip/billing", DRAIN],
    &["explain", "egressservice/shop/web", SERVICES],
    &["explain", "node/worker-a", DRAIN],
];

fn assert_narrow(arguments: &[&str], text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 40, "{} columns in egret {arguments:?}\n{line}\n{text}", line.chars().count());
    }
}

#[test]
fn a_narrow_terminal_is_never_overrun() {
    let style = Style { colour: false, width: Some(40) };
    for arguments in WIDE {
        let rooted = arguments
            .iter()
            .map(|word| if word.starts_with("examples/") { root().join(word).into_os_string() } else { word.into() });
        let cli = Cli::try_parse_from(std::iter::once("egret".into()).chain(rooted)).unwrap();
        let output = egret_cli::run(&cli, Program::Egret, Streams { stdout: style, stderr: style }, &Silent);
        assert_eq!(output.stderr, "", "{arguments:?}");
        assert_narrow(arguments, &output.stdout);
    }
}

/// Runs a command on a terminal of 40 columns; nothing where no terminal can be had.
fn on_a_terminal(arguments: &[&str], no_color: &str) -> Option<Run> {
    let mut version = Command::new("script");
    version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        skipped("script of util-linux is not installed");
        return None;
    }
    let words: Vec<&str> = std::iter::once(env!("CARGO_BIN_EXE_egret")).chain(arguments.iter().copied()).collect();
    let inner = format!("stty cols 40 rows 24; '{}'", words.join("' '"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &inner, "/dev/null"]).current_dir(root());
    command.env("NO_COLOR", no_color).env("SHELL", "/bin/sh").env("TERM", "xterm");
    let run = run(command);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("ASSUMED"), "{run}");
    Some(run)
}

#[test]
fn the_width_is_that_of_the_terminal() {
    for arguments in WIDE {
        let Some(run) = on_a_terminal(arguments, "1") else { return };
        // What the progress line was is cleared before the answer comes; until then it has to fit as well.
        for line in run.stdout.lines() {
            line.split(CLEAR_LINE).for_each(|shown| assert_narrow(arguments, shown.trim_matches('\r')));
        }
    }
}

#[test]
fn a_terminal_gets_colours_unless_no_color_is_set() {
    let coloured = |no_color| {
        let run = on_a_terminal(&["status", DRAIN], no_color)?;
        Some(run.stdout.replace(CLEAR_LINE, "").contains('\x1b'))
    };
    if let (Some(set), Some(empty)) = (coloured("1"), coloured("")) {
        assert_eq!((set, empty), (false, true), "set to nothing is not set");
    }
}

/// Says that a test could not be made; CI counts these lines.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

#[test]
fn an_explanation_of_500_nodes_fits_a_screen() {
    let mut objects: Vec<Value> = (0..500_u16)
        .map(|number| {
            let mut node = node(&format!("worker-{number:03}"), 1);
            let address = format!("10.{}.{}.1/16", 1 + number / 250, number % 250);
            node["metadata"]["annotations"] = json!({
                "k8s.ovn.org/node-primary-ifaddr": json!({"ipv4": address}).to_string(),
                "k8s.ovn.org/host-cidrs": json!([address]).to_string(),
            });
            match number % 5 {
                0 => node["metadata"]["labels"] = json!({"zone": "other"}),
                1 => node["status"]["conditions"][0]["status"] = json!("False"),
                2 => node["metadata"]["annotations"] = json!({}),
                _ => {}
            }
            node
        })
        .collect();
    objects.push(egress_ip_on("x", &["10.1.0.200", "10.2.0.200"], &[("worker-003", "10.1.0.200")]));
    let (path, _folder) = cluster(&objects);
    let run = ask(&["explain", "egressip/x", "--ip", "10.1.0.200", &path]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    assert!(run.stdout.lines().count() < 40, "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() < 200), "{run}");
    let all = ask(&["explain", "egressip/x", &path]);
    assert!(all.stdout.lines().count() < 40, "{all}");
}

// Plans.

#[test]
fn a_drain_of_two_nodes_moves_each_address_once_and_onto_neither() {
    let (plan, run) = answer(&["plan", DRAIN, "--drain", "worker-a", "--drain", "worker-b"]);
    assert_eq!(run.code, Some(0), "{run}");
    let moves = plan["moves"].as_array().unwrap();
    let addresses: BTreeSet<_> = moves.iter().map(|line| line["address"].as_str().unwrap()).collect();
    assert_eq!(addresses, ["192.168.50.101", "192.168.50.111", "192.168.50.121"].into());
    assert_eq!(addresses.len(), moves.len(), "each once");
    assert!(moves.iter().all(|line| ["worker-c", "worker-d"].contains(&line["to"].as_str().unwrap())), "{run}");
    let (applied, _) = answer(&["plan", DRAIN, "--apply", CHANGE]);
    assert_eq!(lines(&applied, "moves"), lines(&plan, "moves"), "a selector to the same end moves the same");
}

#[test]
fn a_label_can_be_set_and_removed() {
    let label = "k8s.ovn.org/egress-assignable";
    let removed = format!("{label}-");
    let (plan, _) = answer(&["plan", DRAIN, "--label", "node/worker-b", &removed]);
    let moves = lines(&plan, "moves");
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert!(moves[0].starts_with("egressip/shop 192.168.50.111 worker-b -> "), "{moves:?}");

    let mut fresh = node("b", 2);
    fresh["metadata"]["labels"] = json!({});
    let (path, _folder) = cluster(&[fresh, egress_ip_on("x", &["192.168.50.9"], &[])]);
    let (plan, _) = answer(&["plan", &path, "--label", "node/b", &format!("{label}=")]);
    assert_eq!(lines(&plan, "moves"), ["egressip/x 192.168.50.9 - -> b"]);
}

#[test]
fn a_deleted_object_frees_its_address_for_the_one_that_waits() {
    let holder = egress_ip_on("holder", &["192.168.50.9"], &[("a", "192.168.50.9")]);
    let waiter = egress_ip_on("waiter", &["192.168.50.9"], &[]);
    let (path, _folder) = cluster(&[node("a", 1), holder, waiter]);
    let (before, _) = answer(&["plan", &path]);
    assert_eq!(before["unassigned"][0]["name"], "HeldByAnother");
    let (plan, _) = answer(&["plan", &path, "--delete", "egressip/holder"]);
    let freed = ["egressip/holder 192.168.50.9 a -> -", "egressip/waiter 192.168.50.9 - -> a"];
    assert_eq!(lines(&plan, "moves"), freed);
    assert_eq!(plan["unassigned"], json!([]));
}

#[test]
fn an_invalid_address_is_refused_and_its_siblings_are_planned() {
    let (path, _folder) =
        file("new.json", &egress_ip_on("new", &["192.168.50.300", "192.168.50.201"], &[]).to_string());
    let (plan, run) = answer(&["plan", DRAIN, "--apply", &path]);
    assert_eq!(run.code, Some(1), "{run}");
    let moves = lines(&plan, "moves");
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert!(moves[0].starts_with("egressip/new 192.168.50.201 - -> worker-"), "{moves:?}");
    assert_eq!(plan["unassigned"][0]["address"], "192.168.50.300");
    assert_eq!(plan["unassigned"][0]["rule"], "A1");
    assert!(run.stderr.contains("192.168.50.300"), "{run}");
}

#[test]
fn what_the_api_server_would_refuse_leaves_the_stored_object_alone() {
    let mut refused = egress_ip_on("billing", &[], &[]);
    refused["spec"]["egressIPs"] = json!("192.168.50.250");
    let (path, _folder) = file("refused.json", &refused.to_string());
    let (plan, run) = answer(&["plan", DRAIN, "--apply", &path, "--drain", "worker-b"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("refused.json:1:") && run.stderr.contains("egressIPs"), "{run}");
    assert_eq!(plan["changes"], json!(["node/worker-b drained"]));
    assert_eq!(lines(&plan, "moves").len(), 1, "billing keeps both of its addresses: {run}");
}

#[test]
fn a_node_that_is_not_ready_or_does_not_answer_loses_what_it_holds() {
    for (option, rule) in [("--not-ready", "N4"), ("--unreachable", "N5")] {
        let (plan, _) = answer(&["plan", DRAIN, option, "worker-a"]);
        let moves = plan["moves"].as_array().unwrap();
        assert_eq!(moves.len(), 2, "{option}");
        assert!(moves.iter().all(|line| line["from"] == "worker-a" && line["cause"]["rule"] == rule), "{moves:?}");
        assert!(moves.iter().all(|line| line["to"] != "worker-a" && !line["to"].is_null()), "{moves:?}");
    }
}

#[test]
fn a_node_assumed_unreachable_is_so_before_the_change_and_after_it() {
    let (plan, run) = answer(&["plan", DRAIN, "--assume-unreachable", "worker-a", "--drain", "worker-b"]);
    let pending = plan["pending"].as_array().unwrap();
    assert_eq!(pending.len(), 2, "it loses what is recorded there, whatever is planned: {run}");
    assert!(pending.iter().all(|line| line["from"] == "worker-a"), "{run}");
    let moves = plan["moves"].as_array().unwrap();
    assert!(!moves.is_empty() && moves.iter().all(|line| line["from"] == "worker-b"), "no move is told twice: {run}");
    assert!(moves.iter().all(|line| line["to"] != "worker-a"), "it takes nothing: {run}");
    assert!(run.stdout.contains("worker-a answers") || run.stdout.contains("but worker-a"), "it is said: {run}");
}

#[test]
fn what_is_pending_anyway_is_told_apart_from_what_the_change_moves() {
    let objects = [
        node("a", 1),
        node("b", 2),
        egress_ip_on("late", &["192.168.50.8"], &[]),
        egress_ip_on("x", &["192.168.50.9"], &[("a", "192.168.50.9")]),
    ];
    let (path, _folder) = cluster(&objects);
    let (plan, _) = answer(&["plan", &path, "--drain", "a"]);
    assert_eq!(lines(&plan, "pending"), ["egressip/late 192.168.50.8 - -> b"]);
    assert_eq!(lines(&plan, "moves"), ["egressip/x 192.168.50.9 a -> b"]);
    let run = ask(&["plan", &path, "--drain", "a"]);
    let (moves, pending) = run.stdout.split_once("\nPENDING (1)").expect("a section of its own");
    assert!(moves.contains("192.168.50.9") && !moves.contains("192.168.50.8"), "{run}");
    assert!(pending.contains("192.168.50.8") && !pending.contains("192.168.50.9"), "{run}");
    assert_eq!(ask(&["plan", &path, "--detailed-exitcode"]).code, Some(2), "without a change it is the answer");
}

#[test]
fn nodes_without_a_host_subnet_are_ignored() {
    let (plan, _) = answer(&["plan", DRAIN, "--no-hostsubnet-nodes", "kubernetes.io/hostname in (worker-a)"]);
    let pending = plan["pending"].as_array().unwrap();
    assert_eq!(pending.len(), 2);
    assert!(pending.iter().all(|line| line["from"] == "worker-a" && line["cause"]["rule"] == "N1"), "{pending:?}");
}

#[test]
fn a_cordon_moves_nothing_unless_the_option_says_so() {
    let mut cordoned = node("a", 1);
    cordoned["spec"] = json!({"unschedulable": true});
    let object = egress_ip_on("x", &["192.168.50.9"], &[("a", "192.168.50.9")]);
    let (path, _folder) = cluster(&[cordoned, node("b", 2), object]);
    assert_eq!(lines(&answer(&["plan", &path]).0, "pending"), [""; 0]);
    let (plan, _) = answer(&["plan", &path, "--cordon-excludes"]);
    assert_eq!(lines(&plan, "pending"), ["egressip/x 192.168.50.9 a -> b"]);
    assert_eq!(plan["pending"][0]["cause"]["name"], "Cordoned");
}

#[test]
fn the_platform_is_read_from_the_nodes_unless_it_is_given() {
    let mut cloud = node("a", 1);
    cloud["metadata"]["annotations"]["cloud.network.openshift.io/egress-ipconfig"] =
        json!(r#"[{"interface":"nic0","ifaddr":{"ipv4":"192.168.50.0/24"},"capacity":{"ip":1}}]"#);
    let objects = [cloud, egress_ip_on("x", &["192.168.50.8"], &[]), egress_ip_on("y", &["192.168.50.9"], &[])];
    let (path, _folder) = cluster(&objects);
    let placed = |arguments: &[&str]| {
        let (plan, _) = answer(&[&["plan", &path][..], arguments].concat());
        (lines(&plan, "pending").len(), plan["unassigned"][0]["nodes"][0]["rule"].as_str().map(str::to_owned))
    };
    assert_eq!(placed(&[]), (1, Some("N7".to_owned())), "the cloud allows one");
    assert_eq!(placed(&["--platform", "gcp"]), (1, Some("N7".to_owned())));
    assert_eq!(placed(&["--platform", "none"]), (2, None), "nothing limits bare metal");
    let (plan, _) = answer(&["plan", DRAIN, "--platform", "aws"]);
    let pending = plan["pending"].as_array().unwrap();
    assert!(pending.iter().all(|line| line["cause"]["rule"] == "N3" && line["to"].is_null()), "{pending:?}");
    assert_eq!(pending.len(), 6, "without the cloud's annotation no node is fit");
}

// Refusals.

#[test]
fn an_input_without_an_object_of_ours_is_refused() {
    let (path, _folder) = file("pod.json", r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}"#);
    for command in ["audit", "status", "plan"] {
        let run = ask(&[command, &path]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run}");
    }
}

#[test]
fn a_change_that_cannot_be_read_is_no_plan_without_it() {
    let run = ask(&["plan", DRAIN, "--apply", "no/such/file.yaml", "--drain", "worker-a"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run}");
    let (path, _folder) = file("pod.json", r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}"#);
    let unreachable = ["plan", DRAIN, "--assume-unreachable", "worker-a", "--apply", &path, "--detailed-exitcode"];
    let run = ask(&unreachable);
    assert_eq!(run.code, Some(0), "what is pending is not what the change moves: {run}");
    assert!(run.stdout.contains("nothing moves"), "{run}");
}

#[test]
fn changes_that_contradict_each_other_are_refused() {
    for change in [&["--drain", "worker-a"][..], &["--label", "node/worker-a", "a=b"], &["--not-ready", "worker-a"]] {
        let arguments = [&["plan", DRAIN, "--delete", "node/worker-a"][..], change].concat();
        let run = ask(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(64), ""), "{run}");
        assert!(run.stderr.contains("deletes it"), "{run}");
    }
}

#[test]
fn thousands_of_faults_are_counted() {
    let broken = |i: u8| {
        let mut node = node(&format!("n{i}"), i);
        node["metadata"]["annotations"]["k8s.ovn.org/host-cidrs"] = json!("broken");
        node
    };
    let (path, _folder) = cluster(&(1..=80).map(broken).collect::<Vec<_>>());
    let run = ask(&["status", &path]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("note: 30 more faults are not shown"), "{run}");
}

// The name that it is called by.

#[test]
fn installed_as_a_plugin_it_calls_itself_kubectl_egret_and_completes_its_own_file() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let plugin = folder.path().join("kubectl-egret");
    fs::hard_link(env!("CARGO_BIN_EXE_egret"), &plugin)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_egret"), &plugin).map(drop))
        .expect("the binary can be copied");
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(&plugin);
        command.args(arguments).current_dir(root()).env("NO_COLOR", "1");
        run(command)
    };
    let help = ask(&["status", "--help"]);
    assert!(
        help.stdout.contains("Usage: kubectl egret status ") && help.stdout.contains("kubectl egret status --watch")
    );
    let wrong = ask(&["status", "--no-such-option"]);
    assert_eq!(wrong.code, Some(64), "{wrong}");
    assert!(wrong.stderr.contains("Usage: kubectl egret status"), "{wrong}");
    assert!(ask(&["completions", "bash"]).stdout.contains("-o default kubectl-egret\n"), "for the file that is run");
    assert_eq!(ask(&["audit", DRAIN]).code, Some(0));
}
