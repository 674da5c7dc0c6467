//! Messages to the user, on standard error of the program.

use std::io::Write;

use crate::state::{lock, state};

/// Prints a message, once in the life of the process.
pub(crate) fn say_once(text: &str) {
    let mut said = lock(&state().said);
    if said.insert(text.to_owned()) {
        let _ = writeln!(std::io::stderr(), "tuner exec: {text}");
    }
}
