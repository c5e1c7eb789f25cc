//! What the pages say of a node's kernel is what the code puts there, and the walk through it is the one that is tried.

use std::fs;

use clap::CommandFactory;
use egret_cli::args::Cli;
use egret_hostmodel::{Business, Finding, PATHS, Settings};

use crate::none;
use crate::page::split;
use crate::support::root;
use crate::walk::{ADDRESS_WALK, SERVICE_WALK, Stop};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("the file is there")
}

/// The rows of the table of numbers, as they must be.
fn numbers(settings: &Settings) -> Vec<String> {
    let (service, address) = (settings.service_priority, settings.address_priority);
    let mark = |business| format!("{:#x}", settings.mark(business).value);
    let replies = format!("{} to {}", mark(Business::Reply(1)), mark(Business::Reply(PATHS)));
    let row = |what: &str, number: String, option: &str| format!("| {what} | {number} |{option}");
    let rule = |what: &str, number: u32, option: &str| row(&format!("`ip rule`: {what}"), number.to_string(), option);
    vec![
        rule("inside of the cluster before a VRF", settings.vrf_priority, " `--vrf-priority` |"),
        rule("none of Egret's packets, go past", service - 4, " `--service-priority` - 4 |"),
        rule("an EgressIP's packet, go past", service - 3, " `--service-priority` - 3 |"),
        rule("a reply's mark to its table", service - 2, " `--service-priority` - 2 |"),
        rule("a reply without a way is unreachable", service - 1, " `--service-priority` - 1 |"),
        rule("an EgressService's source to its table", service, " `--service-priority` |"),
        rule("an EgressService's source without a way is unreachable", service + 1, " `--service-priority` + 1 |"),
        rule("where to go past to", service + 2, " `--service-priority` + 2 |"),
        rule("none of Egret's packets, go past", address - 1, " `--address-priority` - 1 |"),
        rule("an EgressIP's pod to its table", address, " `--address-priority` |"),
        rule("an EgressIP's pod without a way is unreachable", address + 1, " `--address-priority` + 1 |"),
        rule("where to go past to", address + 2, " `--address-priority` + 2 |"),
        row(
            "table of an EgressService's plain interface",
            format!("{} + index", settings.service_tables),
            " `--service-tables` |",
        ),
        row(
            "table of an EgressIP's interface",
            format!("{} + index", settings.address_tables),
            " `--address-tables` |",
        ),
        row("mark: Egret's business", format!("{:#x}", settings.mark_flag), " `--mark-flag` |"),
        row("mark: which bits count", format!("{:#x}", settings.mask()), " `--mark-flag`, `--mark-shift` |"),
        row("mark: an EgressService's source", mark(Business::Service), " |"),
        row("mark: replies, by network", replies, " |"),
        row("mark: an EgressIP's pod", mark(Business::Address), " |"),
        row("mark: a reply without a way", mark(Business::Lost), " |"),
        row("`proto` of rules and routes", settings.protocol.to_string(), " `--protocol` |"),
        row("`proto` of egress addresses", settings.address_protocol.to_string(), " `--address-protocol` |"),
    ]
}

#[test]
fn the_numbers_are_those_of_the_defaults() {
    let page = read("docs/node.md");
    let table = page.split("Held to Settings::default()").nth(1).expect("the table is there");
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).collect();
    let rows: Vec<&str> = rows.into_iter().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows, numbers(&Settings::default()));
}

#[test]
fn every_set_and_finding_is_named() {
    let page = read("docs/node.md") + &read("docs/operations/troubleshooting-node.md");
    let findings = Finding::NAMES.into_iter().filter(|name| !page.contains(&format!("| `{name}` |")));
    let chains = ["prerouting", "forward", "stray", "postrouting", "guard"].into_iter();
    let chains = chains.filter(|chain| !page.contains(&format!("| `{chain}` |")));
    none(&findings.chain(chains).map(|name| format!("nothing tells of {name}")).collect::<Vec<_>>());
}

#[test]
fn every_option_of_the_agent_is_told_of_with_its_default() {
    let command = Cli::command();
    let agent = command.find_subcommand("agent").expect("there is an agent");
    let page = read("docs/operations/agent.md");
    let mut wrong = Vec::new();
    for option in agent.get_arguments().filter(|option| option.get_long().is_some_and(|long| long != "help")) {
        let long = option.get_long().expect("it was looked for");
        let Some(row) = page.lines().find(|line| line.starts_with(&format!("| `--{long}` |"))) else {
            wrong.push(format!("docs/operations/agent.md does not tell of --{long}"));
            continue;
        };
        let values = option.get_default_values().iter().filter_map(|value| value.to_str());
        for value in values.filter(|value| !value.is_empty() && *value != "false") {
            if !row.contains(&format!("| `{value}` |")) {
                wrong.push(format!("--{long} is {value} by default, not as in {row}"));
            }
        }
    }
    none(&wrong);
}

/// The commands of the blocks of a section.
fn walked(page: &str, title: &str) -> Vec<String> {
    let section = page.split("\n## ").find_map(|section| section.strip_prefix(title)).expect("the section is there");
    let blocks = split(section).0.into_iter().filter(|block| block.language == "sh");
    blocks.flat_map(|block| block.text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn the_walk_is_the_one_that_the_packet_tests_take() {
    let page = read("docs/operations/troubleshooting-node.md");
    let commands = |stops: &[Stop]| stops.iter().map(|stop| stop.command.to_owned()).collect::<Vec<_>>();
    assert_eq!(walked(&page, "An EgressService\n"), commands(SERVICE_WALK));
    assert_eq!(walked(&page, "An EgressIP on a secondary network\n"), commands(ADDRESS_WALK));
}
