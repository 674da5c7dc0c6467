//! Panic handling: a report file for a bug report, and locks that survive a panic.

use crate::private;
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Path of reports; `None` before the hook is set.
static REPORT_PATH: Mutex<Option<PathBuf>> = Mutex::new(None);

thread_local! {
    /// Panics of this thread are expected and not reported.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Catches a panic of a library for which the caller has an error; no report is written.
///
/// # Errors
/// The payload of the panic.
pub fn catch_quietly<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    result
}

/// Installs a hook that writes each panic's report to this file in addition to the usual output.
pub fn report_to(path: PathBuf) {
    let before = lock(&REPORT_PATH).replace(path);
    // The hook is already set; a second one would call it as the usual output and report twice.
    if before.is_some() {
        return;
    }
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if QUIET.get() {
            return;
        }
        let path = lock(&REPORT_PATH).clone();
        if let Some(path) = path {
            // A report that cannot be written must not hide the panic.
            let _ = private::write_file(&path, &[report(panic).as_bytes()]);
        }
        usual(panic);
    }));
}

/// Locks and ignores poisoning: guarded state is never left half-updated.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Formats version, time, arguments, message, position and stack of a panic.
fn report(panic: &PanicHookInfo) -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    format!(
        "tuner {}\nseconds since 1970: {}\narguments: {arguments:?}\nthread: {}\n{panic}\n\n{}\n",
        env!("CARGO_PKG_VERSION"),
        since.map_or(0, |time| time.as_secs()),
        std::thread::current().name().unwrap_or("unnamed"),
        Backtrace::force_capture()
    )
}

#[cfg(test)]
mod tests;
