//! What a brain is told once.

use std::time::Duration;

use egret_core::Options;

/// What a brain is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What no object says about the cluster.
    pub options: Options,
    /// Nodes are probed; if not, every node counts as reachable.
    pub probing: bool,
    /// When silence is taken for the prober's own fault.
    pub mass_silence: MassSilence,
    /// How long the cloud is not asked again for what it has refused.
    pub cool_down: CoolDown,
    /// How often it is tried again whether what the API server pruned or denied is taken now.
    pub retrial: Duration,
}

impl Default for Config {
    /// Bare metal, probing, and the times of the design.
    fn default() -> Self {
        Self {
            options: Options::default(),
            probing: true,
            mass_silence: MassSilence::default(),
            cool_down: CoolDown::default(),
            retrial: Duration::from_mins(1),
        }
    }
}

/// When silence is taken for the prober's own fault: many fell silent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MassSilence {
    /// From this many targets on that answered within the last minute.
    pub least: usize,
    /// If more than this share of them is silent, in percent; 100 switches it off.
    pub percent: u8,
    /// How long the nodes that are in doubt when it ends may stay silent, counted anew each time one of them answers.
    pub grace: Duration,
    /// But never longer than this after its end.
    pub longest_grace: Duration,
}

impl Default for MassSilence {
    fn default() -> Self {
        Self { least: 5, percent: 55, grace: Duration::from_secs(5), longest_grace: Duration::from_secs(30) }
    }
}

/// How long a pair of address and node rests after the cloud has refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoolDown {
    /// After the first refusal; doubled by every further one.
    pub first: Duration,
    /// But never longer.
    pub longest: Duration,
}

impl Default for CoolDown {
    fn default() -> Self {
        Self { first: Duration::from_secs(30), longest: Duration::from_mins(10) }
    }
}
