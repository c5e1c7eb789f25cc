//! From the texts of the command line and the environment to one configuration, with everything that is wrong.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use egret_controller::log::{LogFilter, LogFormat, LogOptions};
use egret_controller::probe::{ClientFiles, ProbeOptions, TlsFiles};
use egret_controller::{Config, ConfigFaults, LeaderElection, Listen};
use egret_core::{IpNet, Options, Platform};

use crate::args::{ControllerArgs, ProbeArgs};
use crate::selector_text;

/// Platforms (as `OpenShift` calls them) without a controller for private addresses; egress IPs are there as on bare metal.
const WITHOUT_CLOUD: [&str; 14] = [
    "none",
    "",
    "baremetal",
    "vsphere",
    "libvirt",
    "ovirt",
    "kubevirt",
    "nutanix",
    "equinixmetal",
    "ibmcloud",
    "powervs",
    "alibabacloud",
    "external",
    "bare-metal",
];
/// Platforms whose cloud has to be asked for every address.
const CLOUDS: [&str; 4] = ["aws", "gcp", "azure", "openstack"];

/// An option that does not say what it should.
#[derive(Debug)]
pub(super) struct OptionFault {
    option: &'static str,
    text: String,
    why: String,
}

impl fmt::Display for OptionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { option, text, why } = self;
        write!(f, "{option} {text:?}: {why}")
    }
}

/// The configuration.
///
/// # Errors
/// Everything that is wrong, each in one line.
pub(super) fn config(args: &ControllerArgs) -> Result<Config, Vec<String>> {
    let mut reading = Reading::default();
    let config = reading.config(args);
    let mut told: Vec<String> = reading.faults.iter().map(ToString::to_string).collect();
    if let Err(ConfigFaults(faults)) = config.validate() {
        // In place of what could not be read stands a default, and what that one breaks is nobody's fault.
        let unread = |text: &str| reading.faults.iter().any(|fault| text.contains(fault.option));
        told.extend(faults.iter().map(ToString::to_string).filter(|text| !unread(text)));
    }
    if told.is_empty() { Ok(config) } else { Err(told) }
}

#[derive(Default)]
struct Reading {
    faults: Vec<OptionFault>,
}

impl Reading {
    fn config(&mut self, args: &ControllerArgs) -> Config {
        let pace = &args.pace;
        let mut config = Config::new(&args.election.namespace, &identity(args.election.pod_name.as_deref()));
        self.election(args, &mut config.election);
        config.admin = self.take("--admin-address", &args.admin_address, listen).unwrap_or(config.admin);
        config.probe = self.probe(args);
        config.options = self.options(args);
        if let Some(count) = self.number("--writes-at-once", &pace.writes_at_once) {
            config.writes_at_once = count;
        }
        self.time("--coalesce", &pace.coalesce, &mut config.coalesce);
        self.time("--cool-down", &pace.cool_down, &mut config.cool_down.first);
        self.time("--longest-cool-down", &pace.longest_cool_down, &mut config.cool_down.longest);
        self.time("--retrial", &pace.retrial, &mut config.retrial);
        if let Some(percent) = self.number("--mass-silence-percent", &args.probe.mass_silence_percent) {
            config.mass_silence.percent = percent;
        }
        if let Some(least) = self.number("--mass-silence-least", &args.probe.mass_silence_least) {
            config.mass_silence.least = least;
        }
        config.log = LogOptions {
            format: self.take("--log-format", &args.log_format, log_format).unwrap_or_default(),
            filter: self.take("--log-level", &args.log_level, LogFilter::parse).unwrap_or_default(),
        };
        config
    }

    fn election(&mut self, args: &ControllerArgs, election: &mut LeaderElection) {
        let told = &args.election;
        election.name.clone_from(&told.lease_name);
        let terms = &mut election.terms;
        self.time("--lease-duration", &told.lease_duration, &mut terms.duration);
        self.time("--renew-deadline", &told.renew_deadline, &mut terms.deadline);
        self.time("--retry-period", &told.retry_period, &mut terms.retry);
    }

    fn probe(&mut self, args: &ControllerArgs) -> ProbeOptions {
        let told = &args.probe;
        let mut probe = ProbeOptions::default();
        self.time("--probe-timeout", &told.probe_timeout, &mut probe.total_timeout);
        self.time("--probe-interval", &told.probe_interval, &mut probe.interval);
        probe.port = self.number("--probe-port", &told.probe_port).filter(|&port: &u16| port != 0);
        if let Some(most) = self.number("--most-probes-per-second", &told.most_probes_per_second) {
            probe.most_per_second = most;
        }
        probe.tls = self.tls(told);
        probe
    }

    /// OVN-Kubernetes speaks plain text when half of it is given, which nobody notices.
    fn tls(&mut self, told: &ProbeArgs) -> Option<TlsFiles> {
        let client = match (&told.probe_cert, &told.probe_key) {
            (Some(cert), Some(key)) => Some(ClientFiles { cert: cert.clone(), key: key.clone() }),
            (None, None) => None,
            (Some(cert), None) => return self.half("--probe-cert", cert, "it needs --probe-key"),
            (None, Some(key)) => return self.half("--probe-key", key, "it needs --probe-cert"),
        };
        match (&told.probe_ca, told.probe_common_name.clone()) {
            (Some(ca), Some(common_name)) => Some(TlsFiles { ca: ca.clone(), common_name, client }),
            (Some(ca), None) => self.half("--probe-ca", ca, "it needs --probe-common-name"),
            (None, Some(name)) => self.half("--probe-common-name", Path::new(&name), "it needs --probe-ca"),
            (None, None) if client.is_some() => self.half("--probe-cert", Path::new(""), "it needs --probe-ca"),
            (None, None) => None,
        }
    }

    fn half(&mut self, option: &'static str, path: &Path, why: &str) -> Option<TlsFiles> {
        self.faults.push(OptionFault { option, text: path.display().to_string(), why: why.to_owned() });
        None
    }

    fn options(&mut self, args: &ControllerArgs) -> Options {
        let selector = args.no_hostsubnet_nodes.as_deref().filter(|text| !text.is_empty());
        let subnets = args.cluster_subnets.as_deref().unwrap_or_default();
        let subnets = subnets.split(',').map(str::trim).filter(|text| !text.is_empty());
        Options {
            platform: self.take("--platform", &args.platform, platform).unwrap_or_default(),
            no_host_subnet: selector.and_then(|text| self.take("--no-hostsubnet-nodes", text, selector_text::parse)),
            cordon_excludes: self.take("--cordon-excludes", &args.cordon_excludes, truth).unwrap_or_default(),
            cluster_subnets: subnets.filter_map(|text| self.take("--cluster-subnets", text, subnet)).collect(),
        }
    }

    fn take<T, E: fmt::Display>(
        &mut self,
        option: &'static str,
        text: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let fault = |why: E| OptionFault { option, text: text.to_owned(), why: why.to_string() };
        read(text).map_err(|why| self.faults.push(fault(why))).ok()
    }

    fn number<T: FromStr<Err = std::num::ParseIntError>>(&mut self, option: &'static str, text: &str) -> Option<T> {
        self.take(option, text, |text| text.trim().parse().map_err(|error| format!("this is no such number: {error}")))
    }

    /// Leaves `place` as it is if the text is no time.
    fn time(&mut self, option: &'static str, text: &str, place: &mut Duration) {
        if let Some(time) = self.take(option, text, time) {
            *place = time;
        }
    }
}

/// `15s`, `400ms`, `1m30s` as Go writes it; a bare number counts seconds, as OVN-Kubernetes' options do.
fn time(text: &str) -> Result<Duration, &'static str> {
    const WHAT: &str = "write a time as 15s, 400ms or 1m30s; a bare number counts seconds";
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| WHAT);
    }
    let (mut time, mut some) = (Duration::ZERO, false);
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(WHAT)?;
        let (digits, tail) = rest.split_at(number);
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" | "µs" => 0.000_001,
            _ => return Err(WHAT),
        };
        let count: f64 = digits.parse().map_err(|_| WHAT)?;
        let part = Duration::try_from_secs_f64(count * seconds).map_err(|_| WHAT)?;
        time = time.checked_add(part).ok_or(WHAT)?;
        (rest, some) = (tail, true);
    }
    if some { Ok(time) } else { Err(WHAT) }
}

/// `ADDRESS:PORT`, `[ADDRESS]:PORT` or `:PORT`.
fn listen(text: &str) -> Result<Listen, &'static str> {
    const WHAT: &str = "write ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or :PORT for all addresses";
    if let Some(port) = text.strip_prefix(':') {
        return Ok(Listen { address: None, port: port.parse().map_err(|_| WHAT)? });
    }
    let address: SocketAddr = text.parse().map_err(|_| WHAT)?;
    Ok(Listen { address: Some(address.ip()), port: address.port() })
}

fn log_format(text: &str) -> Result<LogFormat, &'static str> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("write text or json"),
    }
}

fn platform(text: &str) -> Result<Platform, String> {
    let name = text.to_lowercase();
    if CLOUDS.contains(&name.as_str()) {
        return Ok(Platform::Cloud);
    }
    if WITHOUT_CLOUD.contains(&name.as_str()) {
        return Ok(Platform::BareMetal);
    }
    Err(format!("write none or one of {}", CLOUDS.join(", ")))
}

fn truth(text: &str) -> Result<bool, &'static str> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" | "" => Ok(false),
        _ => Err("write true or false"),
    }
}

/// A network; OVN-Kubernetes' option of that name may add the length of the nodes' own subnets.
fn subnet(text: &str) -> Result<IpNet, &'static str> {
    const WHAT: &str = "write a network as 10.128.0.0/14, or 10.128.0.0/14/23 with the length of a node's own";
    let network = match text.rsplit_once('/') {
        Some((network, length)) if network.contains('/') => {
            length.parse::<u8>().map_err(|_| WHAT)?;
            network
        }
        _ => text,
    };
    network.parse::<IpNet>().map(|network| network.trunc()).map_err(|_| WHAT)
}

/// The name of the pod, and what makes this process another one than its predecessor in the same pod.
fn identity(pod_name: Option<&str>) -> String {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).map(|text| text.trim().to_owned()).ok();
    let host = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let pod = pod_name.map(str::to_owned).or(host).or_else(|| read("/proc/sys/kernel/hostname"));
    let unique = read("/proc/sys/kernel/random/uuid").unwrap_or_else(|| std::process::id().to_string());
    format!("{}_{unique}", pod.unwrap_or_else(|| "egret".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_writes_them_and_bare_numbers_count_seconds() {
        for (text, expected) in [
            ("15s", Duration::from_secs(15)),
            ("400ms", Duration::from_millis(400)),
            ("1m30s", Duration::from_secs(90)),
            ("1.5s", Duration::from_millis(1500)),
            ("1", Duration::from_secs(1)),
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            (" 2h ", Duration::from_hours(2)),
        ] {
            assert_eq!(time(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "5x", "1s5", "-1", "-1s", "1e400", "inf", "NaN", "99999999999999999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_port_alone_listens_everywhere_and_an_address_where_it_says() {
        assert_eq!(listen(":9410"), Ok(Listen { address: None, port: 9410 }));
        let all_of_ipv4 = Listen { address: Some(std::net::Ipv4Addr::UNSPECIFIED.into()), port: 9410 };
        assert_eq!(listen("0.0.0.0:9410"), Ok(all_of_ipv4));
        let local = Listen { address: Some(std::net::Ipv6Addr::LOCALHOST.into()), port: 1 };
        assert_eq!(listen("[::1]:1"), Ok(local));
        for text in ["", "9410", ":", ":x", ":65536", "localhost:1", "::1:1:"] {
            assert!(listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks_may_have_the_length_of_a_nodes_own() {
        let network = |text: &str| subnet(text).map(|network| network.to_string());
        assert_eq!(network("10.128.0.0/14/23").as_deref(), Ok("10.128.0.0/14"));
        assert_eq!(network("10.128.0.1/14").as_deref(), Ok("10.128.0.0/14"));
        assert_eq!(network("fd01::/48/64").as_deref(), Ok("fd01::/48"));
        for text in ["", "10.128.0.0", "10.128.0.0/14/x", "10.128.0.0/14/23/1", "a/14"] {
            assert!(subnet(text).is_err(), "{text}");
        }
    }

    #[test]
    fn platforms_are_those_of_openshift_in_any_case() {
        for (text, expected) in [
            ("AWS", Platform::Cloud),
            ("OpenStack", Platform::Cloud),
            ("BareMetal", Platform::BareMetal),
            ("", Platform::BareMetal),
            ("VSphere", Platform::BareMetal),
        ] {
            assert_eq!(platform(text), Ok(expected), "{text}");
        }
        assert!(platform("amazon").is_err());
    }

    #[test]
    fn an_identity_begins_with_the_pod_and_is_another_one_in_every_process() {
        let [one, other] = [(); 2].map(|()| identity(Some("egret-controller-1")));
        assert_eq!(one.split_once('_').map(|(pod, _)| pod), Some("egret-controller-1"));
        assert_ne!(one, other);
    }
}
