//! What the agent is told from outside: one struct, judged as a whole before anything is bound or asked.

use std::time::Duration;

use egret_daemon::Listen;
use egret_daemon::log::LogOptions;
use egret_hostmodel::{Settings, SettingsFault};
use egret_hostnet::Files;

use crate::Options;
use crate::health::HealthOptions;

/// The TCP port of the admin endpoints unless told otherwise.
pub const ADMIN_PORT: u16 = 9411;

/// Everything that the agent is told from outside.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node, and what no object says of it.
    pub options: Options,
    /// Files and folders of the node.
    pub files: Files,
    /// Where the admin endpoints are.
    pub admin: Listen,
    /// Whether the node has a health service.
    pub health: HealthOptions,
    /// Changes that come this close together are acted on together.
    pub coalesce: Duration,
    /// How often the kernel is looked at though nothing was told.
    pub verify: Duration,
    /// What is logged, and how.
    pub log: LogOptions,
}

/// What is wrong with a [`Config`], in the words of the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// Whose rules would they be?
    #[error("--node must not be empty")]
    NoNode,
    /// Numbers that cannot work together.
    #[error("--{0}")]
    Settings(SettingsFault),
    /// One port for two.
    #[error("--health-port {0} is that of --admin-address")]
    SamePort(u16),
    /// What is acted on must not wait for long.
    #[error("--coalesce {coalesce:?} must be at most {LONGEST_COALESCE:?}")]
    CoalesceTooLong {
        /// What it says.
        coalesce: Duration,
    },
    /// Looking without a pause.
    #[error("--verify {verify:?} must be at least {SHORTEST_VERIFY:?}")]
    VerifyTooShort {
        /// What it says.
        verify: Duration,
    },
}

const LONGEST_COALESCE: Duration = Duration::from_secs(1);
const SHORTEST_VERIFY: Duration = Duration::from_secs(1);

/// Everything that is wrong, one a line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigFaults(pub Vec<ConfigFault>);

impl Config {
    /// The defaults for a node.
    #[must_use]
    pub fn new(node: &str) -> Self {
        Self {
            options: Options::new(node),
            files: Files::default(),
            admin: Listen { address: None, port: ADMIN_PORT },
            health: HealthOptions::default(),
            coalesce: Duration::from_millis(5),
            verify: Duration::from_mins(1),
            log: LogOptions::default(),
        }
    }

    /// The numbers in use.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.options.settings
    }

    /// Judges the whole.
    ///
    /// # Errors
    /// Everything that is wrong at once.
    pub fn validate(&self) -> Result<(), ConfigFaults> {
        let mut faults = Vec::new();
        if self.options.node.as_str().is_empty() {
            faults.push(ConfigFault::NoNode);
        }
        faults.extend(self.settings().faults().into_iter().map(ConfigFault::Settings));
        if let Some(port) = self.health.port.filter(|port| *port == self.admin.port) {
            faults.push(ConfigFault::SamePort(port));
        }
        if self.coalesce > LONGEST_COALESCE {
            faults.push(ConfigFault::CoalesceTooLong { coalesce: self.coalesce });
        }
        if self.verify < SHORTEST_VERIFY {
            faults.push(ConfigFault::VerifyTooShort { verify: self.verify });
        }
        if faults.is_empty() { Ok(()) } else { Err(ConfigFaults(faults)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_everything_that_is_wrong_is_told_at_once() {
        assert!(Config::new("n1").validate().is_ok());
        let mut config = Config::new("");
        config.coalesce = Duration::from_secs(2);
        config.verify = Duration::ZERO;
        config.health.port = Some(ADMIN_PORT);
        config.options.settings.mark_shift = 12;
        config.options.settings.address_priority = 5001;
        let faults = config.validate().unwrap_err();
        assert_eq!(
            faults.to_string().lines().collect::<Vec<_>>(),
            [
                "--node must not be empty",
                "--service-priority must be at least 4 less than address-priority",
                "--mark-flag must be one bit, and mark-shift at most 25 with its seven bits beside the flag",
                "--health-port 9411 is that of --admin-address",
                "--coalesce 2s must be at most 1s",
                "--verify 0ns must be at least 1s",
            ]
        );
    }
}
