//! From the texts of the command line and the environment to one configuration, with everything that is wrong.

use std::path::Path;

use egret_controller::probe::{ClientFiles, ProbeOptions, TlsFiles};
use egret_controller::{Config, ConfigFaults, LeaderElection};
use egret_core::{Options, Platform};

use crate::args::{ControllerArgs, ProbeArgs};
use crate::command::reading::{Reading, listen, subnet, truth};
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

/// The configuration.
///
/// # Errors
/// Everything that is wrong, each in one line.
pub(super) fn config(args: &ControllerArgs) -> Result<Config, Vec<String>> {
    let mut reading = Reading::default();
    let config = reading.config(args);
    let faults = config.validate().err().map_or_else(Vec::new, |ConfigFaults(faults)| faults);
    reading.end(config, &faults)
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
        config.log = self.log(&args.log_format, &args.log_level);
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
        self.is_wrong(option, &path.display().to_string(), why);
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
