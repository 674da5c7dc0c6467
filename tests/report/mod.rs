//! What becomes of results: provenance, history, reports and profiles, as a user meets them.

mod documents;
mod foreign_packages;
mod foreign_text;
mod gate;
mod interop;
mod kernel_tuner;
mod predictions;
mod profile;
mod provenance;
pub(crate) mod support;
mod verify;
