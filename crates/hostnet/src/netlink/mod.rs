//! Netlink, as much of it as is needed: one request at a time, each with its answer.
//!
//! Written here instead of taken from `rtnetlink`: the route and the netfilter families need one codec, a step must have
//! failed before the next one is sent, and a dump that was interrupted must be seen as such. What a newer kernel adds to
//! a message is passed over, where typed parsers refuse the whole message.

mod message;
mod socket;

pub use message::Truncated;
pub(crate) use message::{Attributes, Message, address, text, u16_ne, u32_ne};
pub use socket::Fault;
pub(crate) use socket::{Datagram, Socket, listening};
