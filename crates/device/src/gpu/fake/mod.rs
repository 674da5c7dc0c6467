//! A stand-in for the driver, for tests of the whole CUDA path on machines without a GPU.
//!
//! [`VirtualDriver`] answers like a driver: modules are PTX, launches run on the virtual GPU with
//! its hazards reduced to what hardware notices (an illegal address poisons the context, a deadlock
//! hangs), and time is synthetic. It is no device a user can choose: a program of the tests composes
//! it in ([`stand_in`]) with the only database that its results may go to, and its device is called
//! [`NAME`], so that nothing measured with it can pass for a measurement.

mod cache;
mod calls;
mod clock;
mod costing;
mod execute;
pub(super) mod failing;
mod memo;
mod meter;
mod virtual_driver;

pub use cache::Gauges;
pub use clock::Costs;
pub use meter::Meter;
pub use virtual_driver::VirtualDriver;

use super::driver::Driver;
use crate::cuda::CALLS;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the stand-in calls its GPU.
pub const NAME: &str = "fake GPU of the tests";

/// How the stand-in behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The only database for its results.
    pub database: PathBuf,
    /// A driver call whose first use in every process answers this code.
    pub failure: Option<(String, u32)>,
    /// Outputs are compared on the host. The kernels that compare on the device take the virtual GPU
    /// longer than the kernels of most tests do.
    pub compares_on_host: bool,
    /// How much longer everything takes, in thousandths: GPUs of one model differ.
    pub slower: u16,
    /// The GPU does not count its energy, as those before Volta.
    pub counts_no_energy: bool,
}

static STAND_IN: OnceLock<Settings> = OnceLock::new();

/// Makes this process use the stand-in. For the program that tests are made of; what users run never
/// calls it.
pub fn stand_in(settings: Settings) {
    let _ = STAND_IN.set(settings);
}

/// The settings, in the program that tests are made of.
#[must_use]
pub fn asked_for() -> Option<Settings> {
    STAND_IN.get().cloned()
}

/// The stand-in, with the failure that the settings ask for, and its count of the energy.
pub(super) fn driver(settings: &Settings) -> (Box<dyn Driver>, Option<Meter>) {
    let driver = VirtualDriver::new(settings);
    let meter = (!settings.counts_no_energy).then(|| Meter(driver.gauges()));
    let wanted = settings.failure.as_ref();
    let known = wanted.and_then(|(call, code)| {
        let call = CALLS.iter().find(|known| **known == call.as_str())?;
        Some((*call, *code))
    });
    let driver: Box<dyn Driver> = match known {
        Some((call, code)) => Box::new(failing::Failing::new(driver, call, code).0),
        None => Box::new(driver),
    };
    (driver, meter)
}

/// Whether results of the stand-in would go to a database that is not theirs; always false where
/// no test asks for it.
#[must_use]
pub fn refuses(database: &Path) -> bool {
    asked_for().is_some_and(|settings| {
        let known = |path: &Path| std::path::absolute(path).ok();
        known(&settings.database) != known(database)
    })
}
