//! What takes the driver's place in the program that tests are made of (`tests/rig`). The program of
//! users installs nothing here.

use super::CountedDriver;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A stand-in for the driver, and what differs where it is used.
pub struct StandIn {
    /// Opens it, with its count of the energy.
    pub driver: Box<dyn Fn() -> CountedDriver + Send + Sync>,
    /// The only database for its results.
    pub database: PathBuf,
    /// Outputs are compared on the host: the kernels that compare on the device take the virtual GPU
    /// longer than the kernels of most tests do.
    pub compares_on_host: bool,
}

static INSTALLED: OnceLock<StandIn> = OnceLock::new();

/// Makes this process use the stand-in.
pub fn install(stand_in: StandIn) {
    let _ = INSTALLED.set(stand_in);
}

/// The stand-in, where one is installed.
#[must_use]
pub fn installed() -> Option<&'static StandIn> {
    INSTALLED.get()
}

/// Whether results of the stand-in would go to a database that is not theirs; always false where none
/// is installed.
#[must_use]
pub fn refuses(database: &Path) -> bool {
    installed().is_some_and(|stand_in| {
        let known = |path: &Path| std::path::absolute(path).ok();
        known(&stand_in.database) != known(database)
    })
}
