//! Messages to the user, on standard error of the program.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;

static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints a message, once in the life of the process.
pub(crate) fn say_once(text: &str) {
    let mut said = SAID
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if said.insert(text.to_owned()) {
        let _ = writeln!(std::io::stderr(), "tuner exec: {text}");
    }
}
