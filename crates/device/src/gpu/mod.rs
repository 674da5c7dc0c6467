//! A real GPU as a device, on top of the calls of [`driver::Driver`].
//!
//! ```text
//! facts: driver attributes     nvml: clocks, temperature, processes     helpers: own kernels
//!    └───────────────┬─────────────────────────┴──────────────────────────────┘
//!                 context: one GPU, its modules, its corruption
//!                    ├── session, gated: buffers, launches       (driven by the gate)
//!                    │      └── scan: checks of the gate, on the device
//!                    └── stopwatch: graphs, events, clock stamps (driven by timing)
//! ```
#![expect(
    clippy::indexing_slicing,
    reason = "slots, arguments and subjects are numbered by the session that made them"
)]

pub mod context;
pub mod driver;
mod energy;
pub mod error;
pub mod examine;
pub mod facts;
mod gated;
pub mod helpers;
mod launches;
pub mod meter;
pub mod nvml;
mod prober;
mod scan;
pub mod session;
pub mod stand_in;
mod stopwatch;
mod subject;

pub use facts::{GpuError, GpuFacts, find, list};
pub use stopwatch::Span;

use super::cuda::{CudaDriver, DriverAbsent};
use driver::Driver;
use nvml::EnergyCounter;

/// Opens the driver of this machine; in tests of whole programs, that of the [`stand_in`].
///
/// # Errors
/// The driver is missing.
pub fn open_driver() -> Result<Box<dyn Driver>, DriverAbsent> {
    Ok(open_counted()?.0)
}

/// A driver, and its energy counter if NVML is not used.
pub type CountedDriver = (Box<dyn Driver>, Option<Box<dyn EnergyCounter>>);

/// Opens the driver with its energy counter.
pub(crate) fn open_counted() -> Result<CountedDriver, DriverAbsent> {
    match stand_in::installed() {
        Some(stand_in) => Ok((stand_in.driver)()),
        None => Ok((Box::new(CudaDriver::open()?), None)),
    }
}
