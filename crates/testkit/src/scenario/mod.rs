//! Scenarios: behaviours as data, played through the real controller code.
//!
//! ```text
//!   load ──> model, expect ──> play (a World on a Stage) ──> check ──> tally ──> report
//! ```
//!
//! An expectation is checked: none is passed over, and an unknown key is an error when the file is read. Beside what a
//! step expects, the history of every object since the step before is checked.

mod check;
mod expect;
mod load;
mod model;
mod op;
mod play;
mod report;
mod tally;

pub use expect::{
    CloudExpect, ClusterExpect, EgressIpExpect, EgressServiceExpect, EventExpect, EventsExpect, Expect, MarkExpect,
    NodeLabelsExpect, Pairs, ProbesExpect,
};
pub use load::{LoadError, load, parse};
pub use model::{CloudAck, GatewayModeName, NodeSpec, Origin, PlatformName, Scenario, ScenarioFile, Settings};
pub use op::{Op, Settle, Step};
pub use play::{Played, StepFailure, Verdict, play};
pub use report::Report;
pub use tally::{Failure, Tally};
