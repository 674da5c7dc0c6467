//! Processes that a command leaves running in separate sessions.
//!
//! Killing a process group does not reach them. They inherit an environment variable, by which they are
//! found if the system has `/proc`.

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Name of the variable.
const VARIABLE: &str = "TUNER_ANSWER_ID";
/// Maximum wait for the end of killed processes. They may start others meanwhile, and a killed process on a
/// busy machine only ends when it is scheduled next.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two searches.
const SEARCH_INTERVAL: Duration = Duration::from_millis(1);

/// Number of commands so far, for the values of the variable.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Descendants of one command. Dropping it kills the remaining ones.
#[derive(Debug)]
pub(crate) struct Descendants {
    mark: String,
}

impl Descendants {
    /// Creates the mark of a command that is about to start.
    pub(crate) fn new() -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            mark: format!("{}-{count}", std::process::id()),
        }
    }

    /// Returns the variable for the command's environment.
    pub(crate) fn variable(&self) -> (String, String) {
        (VARIABLE.to_owned(), self.mark.clone())
    }

    /// Returns the marked processes that run.
    fn find(&self) -> Vec<Pid> {
        let entry = format!("{VARIABLE}={}", self.mark);
        let Ok(folders) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let marked = folders.filter_map(|folder| {
            let path = folder.ok()?.path();
            let id: i32 = path.file_name()?.to_str()?.parse().ok()?;
            has_entry(&path, entry.as_bytes())
                .then(|| Pid::from_raw(id))
                .flatten()
        });
        marked.collect()
    }
}

/// Reports whether a process's environment has this entry.
fn has_entry(process: &Path, entry: &[u8]) -> bool {
    // Processes of other users cannot be read, but are not descendants. A zombie has no environment.
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|one| one == entry)
}

impl Drop for Descendants {
    fn drop(&mut self) {
        let deadline = Instant::now() + KILL_TIMEOUT;
        loop {
            let left = self.find();
            if left.is_empty() || Instant::now() >= deadline {
                return;
            }
            for process in left {
                // It may have ended meanwhile.
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(SEARCH_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_in_its_own_session_ends_with_its_command() {
        let descendants = Descendants::new();
        let mut command = Command::new("setsid");
        let child = command
            .args(["sleep", "1000"])
            .envs([descendants.variable()]);
        let mut child = child.spawn().unwrap();
        while descendants.find().is_empty() {
            std::thread::yield_now();
        }
        drop(descendants);
        assert!(!child.wait().unwrap().success());
        assert!(Descendants::new().find().is_empty());
    }
}
