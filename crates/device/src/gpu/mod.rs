//! A real GPU as a device, over the calls of [`driver::Driver`].
//!
//! ```text
//! facts: what the driver says     nvml: clocks, heat, others     helpers: kernels of our own
//!    └───────────────┬────────────────────────┴───────────────────────┘
//!                 context: one GPU, its modules, what corrupted it
//!                    ├── session, gated: buffers, launches       (the gate drives it)
//!                    │      └── scan: what the gate looks at, on the device
//!                    └── stopwatch: graphs, events, clock stamps (timing drives it)
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

/// The driver of this machine; in tests of whole programs, what [`stand_in`] has in its place.
///
/// # Errors
/// There is none.
pub fn open_driver() -> Result<Box<dyn Driver>, DriverAbsent> {
    Ok(open_counted()?.0)
}

/// A driver, and what counts the energy where that is not NVML.
pub type CountedDriver = (Box<dyn Driver>, Option<Box<dyn EnergyCounter>>);

/// The same with its count of the energy.
pub(crate) fn open_counted() -> Result<CountedDriver, DriverAbsent> {
    match stand_in::installed() {
        Some(stand_in) => Ok((stand_in.driver)()),
        None => Ok((Box::new(CudaDriver::open()?), None)),
    }
}
