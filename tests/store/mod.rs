//! The store and the exports, as one program: linking costs more than testing.

mod admitted;
mod basics;
mod child;
mod commands;
mod compared;
mod deletion;
mod faults;
mod finals;
mod header_entries;
pub(crate) mod headers;
mod lookups;
mod lost_files;
mod measured;
mod origins;
mod random_lookups;
mod schema;
pub(crate) mod support;
mod withdrawn;
