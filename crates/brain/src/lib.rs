//! What the cluster manager does next.
//!
//! Decided here: which write may go out now, so that at no moment two statuses have an address; who is probed and whether
//! silence is believed; which mark an object gets; what is asked of the cloud and when again after a refusal; what events
//! and conditions say. Not known here: how objects are watched and written, what a probe is, who leads. No I/O, no clock:
//! everything comes in as an [`Input`] with the moment it came ([`Now`]), and the same inputs give the same [`Output`]s.
//!
//! ```text
//!   watches ──┐                     ┌──────────── brain ────────────┐
//!   probes ───┼─ Input ─> take ────>│ snapshot ─> Placer ─> decision│
//!   writes' ──┤                     │     │  (egret-placement)  │   │
//!   results   │          pass ─────>│     └──── difference <────┘   │──> Output { writes, events, targets, wake }
//!   lease ────┘                     └───────────────────────────────┘
//! ```
//!
//! Invariants: the snapshot counts what is under way as done, so a decision never contradicts a write that has not come
//! back; never two writes of one object at once; an address enters a status only when the API shows it in no other; on a
//! cloud a request changes only while its address is in no status, and a status shows only what the cloud has confirmed;
//! nothing is written while another instance leads, before every kind has been listed, or if nothing differs. Whatever
//! happens between two steps, the next pass starts from what is stored: there is no repair code.

mod assign;
mod brain;
mod cloud;
mod condition;
mod config;
mod egress_ip;
mod exchange;
mod flight;
mod host;
mod label;
mod learn;
mod mark;
mod meta;
mod reach;
mod request;
mod selector;
mod tell;
mod view;

pub use brain::Brain;
pub use config::{Config, CoolDown, MassSilence};
pub use exchange::{Action, Answer, Event, Input, Now, Output, Write, WriteError, WriteId};
pub use reach::Silence;
pub use view::{Numbers, Pair, Reach, Refusal, SilenceView, View};
