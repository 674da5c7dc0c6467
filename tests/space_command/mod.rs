//! `tuner space` as a user meets it: results, formats, and what bad input is told.

mod bad_input;
mod hostile;
mod kernel_files;
mod results;
mod support;
