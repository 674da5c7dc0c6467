//! Messages to the user, on standard error of the program.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;

use crate::connection;
use crate::protocol::{Message, Op};

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

/// Names a function that the device does not implement, here and in the summary of the device.
pub(crate) fn report_missing(function: &str) {
    say_once(&format!(
        "{function} is not supported by the virtual device"
    ));
    let mut head = Message::new();
    head.put_str(function);
    let _ = connection::call(Op::Report, &head);
}
