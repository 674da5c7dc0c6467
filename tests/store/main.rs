//! The store and the exports, as one program: linking costs more than testing.

mod basics;
mod child;
mod faults;
mod headers;
mod schema;
mod support;
