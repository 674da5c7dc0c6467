//! What becomes of results: provenance, history, reports and profiles, as a user meets them.

mod documents;
mod gate;
mod interop;
mod kernel_tuner;
mod profile;
mod provenance;
mod support;
