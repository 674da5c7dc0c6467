//! Distributed runs: orders and answers over NATS JetStream.
//!
//! ```text
//! hub: engine ─ ask ─► work stream ─ pull ─► worker: bench ─► judge in child processes
//!             ◄─ commit, then acknowledge ─ results stream ◄─ answer, then acknowledge
//! ```
//!
//! The hub owns the search, the database and provenance; workers are stateless. Delivery is at
//! least once in both directions: an order is acknowledged after the server has stored its answer,
//! an answer after the hub has committed its result. An order has the name of its candidate, so
//! duplicate answers are recognized.
//!
//! Files (templates, recordings' hashes, compiled code) are objects named by the hash of their
//! content, and a reader verifies the hash.
//!
#![doc = include_str!("../README.md")]
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

/// Maximum deliveries of an order before its loss becomes the verdict.
pub const DELIVERIES_MAX: u32 = 3;

/// Age at which a worker's or hub's record expires.
pub const PRESENCE: std::time::Duration = std::time::Duration::from_secs(15);
