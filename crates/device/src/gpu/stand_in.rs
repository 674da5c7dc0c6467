//! Replacement of the driver in the test program (`tests/rig`). The released program never installs one.

use super::CountedDriver;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A stand-in for the driver, and its settings.
pub struct StandIn {
    /// Opens it, with its energy counter.
    pub driver: Box<dyn Fn() -> CountedDriver + Send + Sync>,
    /// The only database for its results.
    pub database: PathBuf,
    /// Outputs are compared on the host: the virtual GPU takes longer for the comparison kernels
    /// than for the kernels of most tests.
    pub compares_on_host: bool,
}

static INSTALLED: OnceLock<StandIn> = OnceLock::new();

/// Makes this process use the stand-in.
pub fn install(stand_in: StandIn) {
    let _ = INSTALLED.set(stand_in);
}

/// Returns the stand-in, if one is installed.
#[must_use]
pub fn installed() -> Option<&'static StandIn> {
    INSTALLED.get()
}

/// Reports whether results of the stand-in would be stored in a database other than its own; always false
/// without a stand-in.
#[must_use]
pub fn refuses(database: &Path) -> bool {
    installed().is_some_and(|stand_in| {
        let known = |path: &Path| std::path::absolute(path).ok();
        known(&stand_in.database) != known(database)
    })
}
