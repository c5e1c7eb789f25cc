//! Everything that the examples say is run, and what it prints is reviewed like code.
//!
//! After a change of wording, `INSTA_UPDATE=always cargo test -p egret-cli --test golden` writes the goldens, and the
//! outputs in the examples' READMEs, anew. With `INSTA_UPDATE=no`, as in CI, nothing is ever written.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use support::{Run, egret, root, run};

const EXAMPLES: [&str; 5] =
    ["1-zones", "2-tenant-pools", "3-maintenance-drain", "4-static-ip-per-vm", "5-service-with-own-network"];

/// What `make demo` shows has to fit where it is shown: two screens.
const DEMO_LINES: usize = 84;

#[test]
fn zones_are_as_reviewed() {
    play(EXAMPLES[0]);
}

#[test]
fn tenant_pools_are_as_reviewed() {
    play(EXAMPLES[1]);
}

#[test]
fn maintenance_drain_is_as_reviewed() {
    play(EXAMPLES[2]);
}

#[test]
fn static_ip_per_vm_is_as_reviewed() {
    play(EXAMPLES[3]);
}

#[test]
fn service_with_own_network_is_as_reviewed() {
    play(EXAMPLES[4]);
}

#[test]
fn no_example_is_left_out() {
    let folders = fs::read_dir(root().join("examples")).expect("there are examples");
    let folders = folders.map(|entry| entry.expect("it can be read")).filter(|entry| entry.path().is_dir());
    let found: BTreeSet<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, EXAMPLES.map(str::to_owned).into());
    let index = fs::read_to_string(root().join("examples/README.md")).expect("there is a table of them");
    for example in EXAMPLES {
        assert!(index.contains(&format!("]({example}/README.md)")), "examples/README.md does not link {example}");
    }
}

#[test]
fn a_cluster_of_an_example_is_sound_and_settled() {
    for example in EXAMPLES {
        let cluster = format!("examples/{example}/cluster");
        for command in [&["audit", &cluster][..], &["plan", &cluster, "--detailed-exitcode"]] {
            let run = run(egret(command.iter().copied()));
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "egret {}\n{run}", command.join(" "));
        }
    }
}

#[test]
fn the_demo_is_as_reviewed() {
    let mut demo = Command::new("sh");
    demo.args(["examples/demo.sh", env!("CARGO_BIN_EXE_egret")]).current_dir(root()).env("NO_COLOR", "1");
    let run = run(demo);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    let lines = run.stdout.lines().count();
    assert!(lines <= DEMO_LINES, "the demo has {lines} lines");
    golden("demo", "demo", "sh examples/demo.sh egret", &run);
}

/// Runs every command of an example.
fn play(example: &str) {
    let folder = root().join("examples").join(example);
    let list = fs::read_to_string(folder.join("commands")).expect("an example has commands");
    let commands: Vec<&str> = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut names = BTreeSet::new();
    for command in &commands {
        let name = name_of(example, command);
        golden(example, &name, command, &told(command));
        assert!(names.insert(format!("{name}.snap")), "two commands of {example} come to the name {name}");
    }
    let kept = fs::read_dir(golden_folder(example)).expect("there are goldens");
    let kept = kept.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    let stale: Vec<String> = kept.filter(|file| !names.contains(file)).collect();
    assert!(stale.is_empty(), "no command of {example} gives these goldens; remove them: {stale:?}");
    readme(example, &commands);
}

/// Runs a line of the form `egret ...`.
fn told(command: &str) -> Run {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("egret"), "a line is no command of egret: {command}");
    run(egret(words))
}

/// A name for what `command` prints: its words, without what all commands of the example have.
fn name_of(example: &str, command: &str) -> String {
    let prefix = format!("examples/{example}/");
    let words = command.split_whitespace().skip(1).map(|word| word.strip_prefix(&prefix).unwrap_or(word));
    let words = words.filter(|word| *word != "cluster").collect::<Vec<_>>().join("-");
    let plain: String = words.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
    plain.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn golden_folder(example: &str) -> PathBuf {
    root().join("crates/cli/tests/golden").join(example)
}

fn golden(example: &str, name: &str, command: &str, run: &Run) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("golden/{example}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(command);
    settings.bind(|| insta::assert_snapshot!(name, run));
}

/// Holds the README of an example to what the commands print: it names each of them, and after `$ egret ...` in a
/// `console` block comes the output, but for what was assumed, which is the same everywhere.
fn readme(example: &str, commands: &[&str]) {
    let path = root().join("examples").join(example).join("README.md");
    let text = fs::read_to_string(&path).expect("an example has a README");
    for command in commands {
        assert!(
            text.lines().any(|line| line.trim_start_matches("$ ") == *command),
            "{example} does not tell: {command}"
        );
    }
    let mut fresh = String::new();
    let mut rest = text.as_str();
    while let Some((before, block)) = rest.split_once("```console\n$ ") {
        let (command, shown) = block.split_once('\n').expect("a block has lines");
        let (_, after) = shown.split_once("```").expect("a block ends");
        assert!(commands.contains(&command), "the commands of {example} have no {command}");
        let output = told(command).stdout;
        let output = output.split_once("\nASSUMED\n").map_or(output.as_str(), |(told, _)| told);
        fresh.push_str(&[before, "```console\n$ ", command, "\n", output, "```"].concat());
        rest = after;
    }
    fresh.push_str(rest);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, &fresh).expect("it can be written");
    } else {
        assert_eq!(text, fresh, "an output in the README of {example} is not what is printed");
    }
}
