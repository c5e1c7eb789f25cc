//! Scenarios: behaviours as data, played through the real decision code.
//!
//! ```text
//!   load ──> model, expect ──> play (in a World) ──> check ──> tally ──> report
//! ```
//!
//! An expectation is checked, fails, or is counted under the name of what it waits for. None is passed over in silence:
//! an unknown key is an error when the file is read.

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
pub use play::{Cut, Played, StepFailure, Verdict, play};
pub use report::Report;
pub use tally::{Failure, Tally, Wait};
