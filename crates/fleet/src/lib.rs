//! Many machines, one run: orders and answers over NATS JetStream.
//!
//! ```text
//! hub: engine ─ ask ─► work stream ─ pull ─► worker: bench ─► judge in child processes
//!             ◄─ commit, then acknowledge ─ results stream ◄─ answer, then acknowledge
//! ```
//!
//! The hub keeps the search, the database and provenance; workers keep nothing. Delivery is at least
//! once on both ways: an order is acknowledged after its answer is stored by the server, an answer
//! after its result is committed by the hub. Orders have the name of their candidate, so a second
//! answer is known as one.
//!
//! Files (templates, recordings' hashes, compiled code) travel as objects named by their content, and
//! whoever fetches one compares it with its name.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod access;
mod hub;
mod link;
mod message;
mod names;
mod objects;
mod presence;
mod view;
mod worker;

pub use access::{Access, AccessError};
pub use hub::{Hub, HubSettings};
pub use link::FleetError;
#[doc(hidden)]
pub use message::check_message;
pub use names::{DEFAULT_NAME, NameError, Names};
pub use view::look;
pub use worker::{Say, WorkerSettings, work};

/// Times an order is handed out before that is its verdict.
pub const DELIVERIES_MAX: u32 = 3;

/// How long a worker or hub that says nothing counts as there.
pub const PRESENCE: std::time::Duration = std::time::Duration::from_secs(15);
