//! What a panic leaves behind: a file that can be sent with a report of the defect, and locks.

use crate::private;
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Where reports go; `None` until the hook is set.
static PLACE: Mutex<Option<PathBuf>> = Mutex::new(None);

thread_local! {
    /// Panics of this thread are expected, and not reported.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Catches a panic of a library for which the caller has an error; it leaves no report.
///
/// # Errors
/// The payload of the panic.
pub fn catch_quietly<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    result
}

/// From now on each panic writes a report to this file alone, and is told as before.
pub fn report_to(path: PathBuf) {
    let before = lock(&PLACE).replace(path);
    if before.is_some() {
        return;
    }
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if QUIET.get() {
            return;
        }
        let path = lock(&PLACE).clone();
        if let Some(path) = path {
            // A report that cannot be written must not hide the panic.
            let _ = private::write_file(&path, &[report(panic).as_bytes()]);
        }
        usual(panic);
    }));
}

/// Locks, whoever panicked while holding the lock: what it guards is whole at every moment.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Version, time, arguments, message, place and stack of a panic.
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
