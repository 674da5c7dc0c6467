//! A stand-in for the driver, for tests of the whole CUDA path on machines without a GPU.
//!
//! [`VirtualDriver`] behaves like a driver. Modules are PTX; launches run on the virtual GPU, with its
//! hazards reduced to those that hardware detects (an illegal address poisons the context, a deadlock
//! hangs); time is synthetic. Users cannot select it: the test program installs it ([`install`]) with the
//! only database for its results. Its device is named [`NAME`], so that its results cannot be mistaken for
//! measurements.
#![expect(
    clippy::indexing_slicing,
    reason = "buffers and launches are numbered by the stand-in itself"
)]

mod cache;
mod calls;
mod clock;
mod costing;
mod execute;
mod failing;
mod memo;
mod meter;
mod virtual_driver;

pub use cache::Gauges;
pub use clock::{Costs, throttle};
pub use failing::{Failing, Notes};
pub use meter::Meter;
pub use virtual_driver::VirtualDriver;

use std::path::PathBuf;
use tuner_device::cuda::CALLS;
use tuner_device::gpu::CountedDriver;
use tuner_device::gpu::driver::Driver;
use tuner_device::gpu::nvml::EnergyCounter;
use tuner_device::gpu::stand_in::{self, StandIn};

/// Name of the stand-in's GPU.
pub const NAME: &str = "fake GPU of the tests";

/// Settings of the stand-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The only database for its results.
    pub database: PathBuf,
    /// A driver call whose first use in every process fails with this code.
    pub failure: Option<(String, u32)>,
    /// Outputs are compared on the host.
    pub compares_on_host: bool,
    /// Slowdown of everything, in thousandths: GPUs of one model differ.
    pub slower: u16,
    /// The GPU has no energy counter, like those before Volta.
    pub counts_no_energy: bool,
}

/// Makes this process use the stand-in. For the test program.
pub fn install(settings: Settings) {
    stand_in::install(StandIn {
        database: settings.database.clone(),
        compares_on_host: settings.compares_on_host,
        driver: Box::new(move || driver(&settings)),
    });
}

/// Creates the stand-in, with the failure of the settings, and its energy counter.
fn driver(settings: &Settings) -> CountedDriver {
    let driver = VirtualDriver::new(settings);
    let meter = (!settings.counts_no_energy).then(|| Meter(driver.gauges()));
    let wanted = settings.failure.as_ref();
    let known = wanted.and_then(|(call, code)| {
        let call = CALLS.iter().find(|known| **known == call.as_str())?;
        Some((*call, *code))
    });
    let driver: Box<dyn Driver> = match known {
        Some((call, code)) => Box::new(Failing::new(driver, call, code).0),
        None => Box::new(driver),
    };
    let counter = meter.map(|meter| Box::new(meter) as Box<dyn EnergyCounter>);
    (driver, counter)
}
