//! Predicted times for the search on a device that measures.
//!
//! A predicted time is a feature of a candidate like its registers. The search learns its reliability, and
//! uses it to choose which of the compiled candidates are evaluated and which are dropped. It is never a
//! result: only measured times are stored and ranked.

use std::sync::Mutex;
use tuner_core::panics::lock;
use tuner_core::plan::Plan;
use tuner_core::units::Micros;
use tuner_kernel::compile::DiskCache;
use tuner_predict::Forecaster;
use tuner_space::DeviceLimits;
use vgpu::Arch;
use vgpu::arch::{by_device_name, list_gpus};

/// Predicts the time of a candidate with the virtual GPU's model.
pub(crate) struct Prior {
    arch: &'static Arch,
    memory_bytes: u64,
    /// Idle forecasters: each candidate is prepared on a separate thread.
    idle: Mutex<Vec<Forecaster>>,
}

impl Prior {
    /// Creates the model of `arch` with a host memory limit for each thread.
    #[must_use]
    pub(crate) fn new(arch: &'static Arch, memory_bytes: u64) -> Self {
        Self {
            arch,
            memory_bytes,
            idle: Mutex::default(),
        }
    }

    /// Returns the display name.
    pub(crate) fn name(&self) -> String {
        format!("vgpu:{}", self.arch.name)
    }

    /// Returns the predicted time of a plan; `None` without a reliable one.
    pub(crate) fn predicted(&self, plan: &Plan) -> Option<Micros> {
        let idle = || lock(&self.idle);
        // Locked only to take and to return one: a forecast takes long.
        let taken = idle().pop();
        let fresh =
            || Forecaster::new(self.arch, self.memory_bytes).keeping(DiskCache::default_folder());
        let mut forecaster = taken.unwrap_or_else(fresh);
        let forecast = forecaster.forecast(plan).ok();
        idle().push(forecaster);
        let forecast = forecast?;
        // Unreliable figures would mislead more than they help.
        forecast
            .explanation
            .doubts
            .is_empty()
            .then_some(forecast.time)
    }
}

/// Returns the virtual GPU most similar to a real one: by name, else by compute capability and the
/// nearest number of multiprocessors. `None` for a generation without a table.
#[must_use]
pub fn like(name: &str, limits: &DeviceLimits) -> Option<&'static Arch> {
    let is_same = |arch: &&'static Arch| arch.cc == limits.cc;
    by_device_name(name).filter(is_same).or_else(|| {
        let same = list_gpus().iter().filter(is_same);
        same.min_by_key(|arch| arch.sm_count.abs_diff(limits.sm_count))
    })
}

#[cfg(test)]
mod tests;
