//! What the controller is told from outside: one struct, judged as a whole before anything is bound or asked.

use std::sync::Arc;
use std::time::Duration;

use egret_brain::{CoolDown, MassSilence};
use egret_core::Options;

use crate::lease::Terms;
use crate::probe::{ProbeOptions, Prober, TlsError};
use egret_daemon::Listen;
use egret_daemon::log::LogOptions;

/// The TCP port of the admin endpoints unless told otherwise.
pub const ADMIN_PORT: u16 = 9410;

/// Everything that the controller is told from outside.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who of several controllers writes.
    pub election: LeaderElection,
    /// Where the admin endpoints are.
    pub admin: Listen,
    /// How nodes are probed.
    pub probe: ProbeOptions,
    /// What no object says: platform, ignored nodes, cordon, pod networks.
    pub options: Options,
    /// So many writes are under way at most.
    pub writes_at_once: usize,
    /// Changes that come this close together are decided on together.
    pub coalesce: Duration,
    /// When silence is taken to be our own fault.
    pub mass_silence: MassSilence,
    /// How long a node is left out after the cloud refused an address on it.
    pub cool_down: CoolDown,
    /// How often it is tried again whether what the API server pruned or denied is taken now.
    pub retrial: Duration,
    /// What is logged, and how.
    pub log: LogOptions,
}

/// Who of several controllers writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who we are: `<pod>_<something unique>`. The commands find the leader's pod by it.
    pub identity: String,
    /// How long the leadership lasts.
    pub terms: Terms,
}

impl LeaderElection {
    /// The Lease `egret-controller` in a namespace, as an identity.
    #[must_use]
    pub fn new(namespace: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: "egret-controller".to_owned(),
            identity: identity.to_owned(),
            terms: Terms::default(),
        }
    }
}

/// What is wrong with a [`Config`], in the words of the command line.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFault {
    /// A name that Kubernetes would refuse.
    #[error("{option} {name:?} is no name of Kubernetes: lower case letters, digits, '-' between them, at most {most}")]
    Name {
        /// The option.
        option: &'static str,
        /// What it says.
        name: String,
        /// So many characters.
        most: usize,
    },
    /// The commands find the leader by the name of its pod.
    #[error("--pod-name must not be empty")]
    NoPodName,
    /// A time that must pass.
    #[error("{option} must be longer than 0")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// A Lease counts whole seconds.
    #[error("--lease-duration {lease:?} must be whole seconds, for a Lease counts in them")]
    LeaseNotWhole {
        /// What it says.
        lease: Duration,
    },
    /// Others would take over before the leader has stopped.
    #[error("--lease-duration {lease:?} must be longer than --renew-deadline {deadline:?}")]
    DeadlineNotShorter {
        /// `--lease-duration`.
        lease: Duration,
        /// `--renew-deadline`.
        deadline: Duration,
    },
    /// One lost answer would end the leadership.
    #[error("--renew-deadline {deadline:?} must be longer than 1.2 times --retry-period {retry:?}")]
    RetryNotShorter {
        /// `--renew-deadline`.
        deadline: Duration,
        /// `--retry-period`.
        retry: Duration,
    },
    /// A probe has to end.
    #[error("--probe-timeout {timeout:?} must be at most {LONGEST_PROBE:?}")]
    ProbeTooLong {
        /// What it says.
        timeout: Duration,
    },
    /// What the probe's certificates lack.
    #[error("--probe-ca, --probe-cert, --probe-key: {}", egret_daemon::chain(source))]
    Certificates {
        /// Why.
        source: TlsError,
    },
    /// Nothing would ever be written, or probed.
    #[error("{option} must be at least 1")]
    NotOne {
        /// The option.
        option: &'static str,
    },
    /// No share of nodes.
    #[error("--mass-silence-percent {percent} must be between 1 and 100")]
    Percent {
        /// What it says.
        percent: u8,
    },
    /// The first wait is one of those that are at most the longest.
    #[error("--cool-down {first:?} must be at most --longest-cool-down {longest:?}")]
    CoolDown {
        /// `--cool-down`.
        first: Duration,
        /// `--longest-cool-down`.
        longest: Duration,
    },
    /// What is decided on must not wait for long.
    #[error("--coalesce {coalesce:?} must be at most {LONGEST_COALESCE:?}")]
    CoalesceTooLong {
        /// What it says.
        coalesce: Duration,
    },
}

/// A node that is dead for longer than this before anything moves is what nobody wants; more is a typing error.
const LONGEST_PROBE: Duration = Duration::from_mins(1);
/// Above it the wait itself would be what people notice.
const LONGEST_COALESCE: Duration = Duration::from_secs(1);

/// Everything that is wrong, one a line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigFaults(pub Vec<ConfigFault>);

impl Config {
    /// The defaults: bare metal, a probe of TCP port 9, writing as `identity` with a Lease in `namespace`.
    #[must_use]
    pub fn new(namespace: &str, identity: &str) -> Self {
        let egret_brain::Config { options, mass_silence, cool_down, retrial, .. } = egret_brain::Config::default();
        Self {
            election: LeaderElection::new(namespace, identity),
            admin: Listen { address: None, port: ADMIN_PORT },
            probe: ProbeOptions::default(),
            options,
            writes_at_once: 32,
            coalesce: Duration::from_millis(5),
            mass_silence,
            cool_down,
            retrial,
            log: LogOptions::default(),
        }
    }

    /// What of it the brain is told.
    #[must_use]
    pub fn brain(&self) -> egret_brain::Config {
        egret_brain::Config {
            options: self.options.clone(),
            probing: !self.probe.total_timeout.is_zero(),
            mass_silence: self.mass_silence,
            cool_down: self.cool_down,
            retrial: self.retrial,
        }
    }

    /// Judges the whole.
    ///
    /// # Errors
    /// Everything that is wrong at once.
    pub fn validate(&self) -> Result<(), ConfigFaults> {
        let mut faults = self.election.faults();
        faults.extend(self.probe_faults());
        faults.extend(self.pace_faults());
        if faults.is_empty() { Ok(()) } else { Err(ConfigFaults(faults)) }
    }

    fn probe_faults(&self) -> Vec<ConfigFault> {
        let mut faults = Vec::new();
        let probe = &self.probe;
        if probe.total_timeout > LONGEST_PROBE {
            faults.push(ConfigFault::ProbeTooLong { timeout: probe.total_timeout });
        }
        if probe.interval.is_zero() {
            faults.push(ConfigFault::Zero { option: "--probe-interval" });
        }
        if probe.most_per_second == 0 {
            faults.push(ConfigFault::NotOne { option: "--most-probes-per-second" });
        }
        // Made and thrown away: it looks at the certificates if it needs them.
        let (answers, _) = tokio::sync::mpsc::unbounded_channel();
        if let Err(source) = Prober::new(probe.clone(), answers, Arc::new(|_, _| {})) {
            faults.push(ConfigFault::Certificates { source });
        }
        faults
    }

    fn pace_faults(&self) -> Vec<ConfigFault> {
        let mut faults = Vec::new();
        if self.writes_at_once == 0 {
            faults.push(ConfigFault::NotOne { option: "--writes-at-once" });
        }
        if self.coalesce > LONGEST_COALESCE {
            faults.push(ConfigFault::CoalesceTooLong { coalesce: self.coalesce });
        }
        if !(1..=100).contains(&self.mass_silence.percent) {
            faults.push(ConfigFault::Percent { percent: self.mass_silence.percent });
        }
        if self.mass_silence.least == 0 {
            faults.push(ConfigFault::NotOne { option: "--mass-silence-least" });
        }
        let CoolDown { first, longest } = self.cool_down;
        if first.is_zero() {
            faults.push(ConfigFault::Zero { option: "--cool-down" });
        }
        if self.retrial.is_zero() {
            faults.push(ConfigFault::Zero { option: "--retrial" });
        }
        if first > longest {
            faults.push(ConfigFault::CoolDown { first, longest });
        }
        faults
    }
}

impl LeaderElection {
    fn faults(&self) -> Vec<ConfigFault> {
        let mut faults = Vec::new();
        for (option, name, most) in [("--namespace", &self.namespace, 63), ("--lease-name", &self.name, 253)] {
            if !is_name(name, most) {
                faults.push(ConfigFault::Name { option, name: name.clone(), most });
            }
        }
        if self.identity.split('_').next().is_none_or(str::is_empty) {
            faults.push(ConfigFault::NoPodName);
        }
        let Terms { duration: lease, deadline, retry } = self.terms;
        if lease.subsec_nanos() != 0 {
            faults.push(ConfigFault::LeaseNotWhole { lease });
        }
        if retry.is_zero() {
            faults.push(ConfigFault::Zero { option: "--retry-period" });
        }
        if lease <= deadline {
            faults.push(ConfigFault::DeadlineNotShorter { lease, deadline });
        }
        // client-go's JitterFactor: a try may come that much later.
        if deadline <= retry.mul_f64(1.2) {
            faults.push(ConfigFault::RetryNotShorter { deadline, retry });
        }
        faults
    }
}

fn is_name(text: &str, most: usize) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= most
        && edge(text.chars().next())
        && edge(text.chars().next_back())
        && text.chars().all(|c| c == '-' || edge(Some(c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::TlsFiles;

    fn told(config: &Config) -> Vec<String> {
        config.validate().err().map_or_else(Vec::new, |faults| faults.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(told(&Config::new("egret-system", "pod_1")), [""; 0]);
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let mut config = Config::new("Egret_System", "_1");
        config.election.terms = Terms {
            duration: Duration::from_millis(10_500),
            deadline: Duration::from_secs(11),
            retry: Duration::from_secs(10),
        };
        config.probe.total_timeout = Duration::from_secs(61);
        config.probe.interval = Duration::ZERO;
        config.probe.most_per_second = 0;
        config.probe.port = Some(9107);
        config.probe.tls = Some(TlsFiles { ca: "no/such/file".into(), common_name: "node".to_owned(), client: None });
        config.writes_at_once = 0;
        config.coalesce = Duration::from_secs(2);
        config.mass_silence = MassSilence { least: 0, percent: 101, ..MassSilence::default() };
        config.cool_down = CoolDown { first: Duration::from_secs(9), longest: Duration::from_secs(8) };
        config.retrial = Duration::ZERO;
        let expected = [
            "--namespace \"Egret_System\" is no name of Kubernetes: lower case letters, digits, '-' between them, at most 63",
            "--pod-name must not be empty",
            "--lease-duration 10.5s must be whole seconds, for a Lease counts in them",
            "--lease-duration 10.5s must be longer than --renew-deadline 11s",
            "--renew-deadline 11s must be longer than 1.2 times --retry-period 10s",
            "--probe-timeout 61s must be at most 60s",
            "--probe-interval must be longer than 0",
            "--most-probes-per-second must be at least 1",
            "--writes-at-once must be at least 1",
            "--coalesce 2s must be at most 1s",
            "--mass-silence-percent 101 must be between 1 and 100",
            "--mass-silence-least must be at least 1",
            "--retrial must be longer than 0",
            "--cool-down 9s must be at most --longest-cool-down 8s",
        ];
        let mut told = told(&config);
        let certificates = told.remove(8);
        assert_eq!(told, expected);
        assert!(certificates.starts_with("--probe-ca, --probe-cert, --probe-key: failed to read no/such/file: "));
    }

    #[test]
    fn the_brain_probes_unless_the_time_out_is_zero() {
        let mut config = Config::new("a", "b");
        assert!(config.brain().probing);
        config.probe.total_timeout = Duration::ZERO;
        assert!(!config.brain().probing);
        assert_eq!(told(&config), [""; 0]);
    }
}
