//! From the texts of the command line and the environment to one configuration, with everything that is wrong.

use std::net::IpAddr;
use std::num::ParseIntError;

use egret_agent::health::{HealthOptions, ServerFiles};
use egret_agent::{Config, ConfigFaults};
use egret_hostmodel::{Datapath, Settings};

use crate::args::{AgentArgs, HealthArgs, KernelArgs, NumbersArgs};
use crate::command::reading::{Reading, listen, subnet};

/// The configuration.
///
/// # Errors
/// Everything that is wrong, each in one line.
pub(super) fn config(args: &AgentArgs) -> Result<Config, Vec<String>> {
    let mut reading = Reading::default();
    let mut config = Config::new(&node(args.node.as_deref()));
    kernel(&args.kernel, &mut config, &mut reading);
    config.admin = reading.take("--admin-address", &args.admin_address, listen).unwrap_or(config.admin);
    config.health = health(&args.health, &mut reading);
    reading.time("--verify", &args.verify, &mut config.verify);
    reading.time("--coalesce", &args.coalesce, &mut config.coalesce);
    config.log = reading.log(&args.log_format, &args.log_level);
    let faults = config.validate().err().map_or_else(Vec::new, |ConfigFaults(faults)| faults);
    reading.end(config, &faults)
}

/// The configuration of whoever only looks at a node's kernel.
///
/// # Errors
/// Everything that is wrong, each in one line.
pub(crate) fn looking(name: &str, args: &KernelArgs) -> Result<Config, Vec<String>> {
    let mut reading = Reading::default();
    let mut config = Config::new(&node(Some(name).filter(|name| !name.is_empty())));
    kernel(args, &mut config, &mut reading);
    let faults = config.validate().err().map_or_else(Vec::new, |ConfigFaults(faults)| faults);
    reading.end(config, &faults)
}

fn kernel(args: &KernelArgs, config: &mut Config, reading: &mut Reading) {
    let options = &mut config.options;
    options.settings = settings(&args.numbers, reading);
    options.datapath = reading.take("--datapath", &args.datapath, datapath).unwrap_or_default();
    options.cluster = reading.list("--cluster-networks", &args.cluster_networks, subnet).into_iter().collect();
    config.files.state.clone_from(&args.state_folder);
    config.files.proc_sys.clone_from(&args.proc_sys);
    if !args.table_names.is_empty() {
        config.files.table_names.clone_from(&args.table_names);
    }
}

fn health(args: &HealthArgs, reading: &mut Reading) -> HealthOptions {
    let tls = match (&args.health_cert, &args.health_key) {
        (Some(cert), Some(key)) => Some(ServerFiles { cert: cert.clone(), key: key.clone() }),
        (None, None) => None,
        (Some(cert), None) => {
            reading.is_wrong("--health-cert", &cert.display().to_string(), "it needs --health-key");
            None
        }
        (None, Some(key)) => {
            reading.is_wrong("--health-key", &key.display().to_string(), "it needs --health-cert");
            None
        }
    };
    HealthOptions {
        port: reading.number("--health-port", &args.health_port).filter(|port: &u16| *port != 0),
        addresses: reading.list("--health-addresses", &args.health_addresses, str::parse::<IpAddr>),
        tls,
        drain: args.drain_file.clone(),
        ..HealthOptions::default()
    }
}

fn settings(args: &NumbersArgs, reading: &mut Reading) -> Settings {
    let mut settings = Settings::default();
    for (option, text, place) in [
        ("--service-priority", &args.service_priority, &mut settings.service_priority),
        ("--address-priority", &args.address_priority, &mut settings.address_priority),
        ("--vrf-priority", &args.vrf_priority, &mut settings.vrf_priority),
        ("--service-tables", &args.service_tables, &mut settings.service_tables),
        ("--address-tables", &args.address_tables, &mut settings.address_tables),
        ("--mark-flag", &args.mark_flag, &mut settings.mark_flag),
        ("--mark-shift", &args.mark_shift, &mut settings.mark_shift),
    ] {
        if let Some(number) = reading.take(option, text, number) {
            *place = number;
        }
    }
    for (option, text, place) in [
        ("--protocol", &args.protocol, &mut settings.protocol),
        ("--address-protocol", &args.address_protocol, &mut settings.address_protocol),
    ] {
        if let Some(number) = reading.number(option, text) {
            *place = number;
        }
    }
    settings
}

/// Decimal, or hexadecimal after `0x`, as marks are written.
fn number(text: &str) -> Result<u32, String> {
    let told = |error: ParseIntError| format!("this is no such number: {error}");
    match text.trim().strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).map_err(told),
        None => text.trim().parse().map_err(told),
    }
}

fn datapath(text: &str) -> Result<Option<Datapath>, &'static str> {
    match text {
        "auto" => Ok(None),
        "ovn" => Ok(Some(Datapath::Ovn)),
        "direct" => Ok(Some(Datapath::Direct)),
        _ => Err("write auto, ovn or direct"),
    }
}

/// What the node is called: as told, as a pod is told by its `fieldRef`, or as the host is called.
fn node(told: Option<&str>) -> String {
    let by_pod = || std::env::var("NODE_NAME").ok().filter(|name| !name.is_empty());
    let by_host = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_lowercase());
    told.map(str::to_owned).or_else(by_pod).or_else(by_host).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn told(arguments: &[&str]) -> Result<Config, Vec<String>> {
        let command = ["egret", "agent"].iter().chain(arguments);
        match Cli::try_parse_from(command).unwrap().command {
            Command::Agent(args) => config(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_defaults_of_the_command_line_are_those_of_the_configuration() {
        let config = told(&["--node", "n1"]).unwrap();
        let expected = Config::new("n1");
        assert_eq!(config.options, expected.options);
        assert_eq!(config.files, expected.files);
        assert_eq!((config.admin, config.verify), (expected.admin, expected.verify));
        assert_eq!(config.health, expected.health);
    }

    #[test]
    fn the_health_service_is_told_with_its_certificate_or_without() {
        let health = told(&["--node", "n1", "--health-port", "9107", "--health-addresses", "192.0.2.1, fd00::1"]);
        let health = health.unwrap().health;
        assert_eq!((health.port, health.addresses.len(), health.tls), (Some(9107), 2, None));
        for half in ["--health-cert", "--health-key"] {
            let told = told(&["--node", "n1", half, "x.pem"]).unwrap_err();
            assert!(told.len() == 1 && told[0].starts_with(half), "{told:?}");
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let wrong = ["--node", "", "--datapath", "x", "--mark-flag", "0xg", "--protocol", "300", "--verify", "0s"];
        let told = told(&wrong).unwrap_err();
        let options: Vec<&str> = told.iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(options, ["--mark-flag", "--protocol", "--datapath", "--node", "--verify"], "{told:?}");
    }
}
