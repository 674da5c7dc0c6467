//! Predicted times for the search on a device that measures.
//!
//! A predicted time is a fact about a candidate like its registers: the search learns how far to
//! trust it, and by it chooses which of the compiled candidates are evaluated and which are given
//! up. It is never a result: what is stored and ranked was measured.

use std::sync::Mutex;
use tuner_core::panics::lock;
use tuner_core::plan::Plan;
use tuner_core::units::Micros;
use tuner_judge::timing::predict::Forecaster;
use tuner_kernel::compile::DiskCache;
use tuner_space::DeviceLimits;
use vgpu::Arch;

/// Says beforehand what a candidate may take, by the virtual GPU's model.
pub(crate) struct Prior {
    arch: &'static Arch,
    memory_bytes: u64,
    /// Forecasters that nobody uses: each candidate is prepared on a thread of its own.
    idle: Mutex<Vec<Forecaster>>,
}

impl Prior {
    /// The model of `arch`, in at most so much host memory a thread.
    #[must_use]
    pub(crate) fn new(arch: &'static Arch, memory_bytes: u64) -> Self {
        Self {
            arch,
            memory_bytes,
            idle: Mutex::default(),
        }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        format!("vgpu:{}", self.arch.name)
    }

    /// The predicted time of a plan; `None` where there is none that can be relied on.
    pub(crate) fn predicted(&self, plan: &Plan) -> Option<Micros> {
        let idle = || lock(&self.idle);
        let taken = idle().pop();
        let fresh =
            || Forecaster::new(self.arch, self.memory_bytes).keeping(DiskCache::default_folder());
        let mut forecaster = taken.unwrap_or_else(fresh);
        let forecast = forecaster.forecast(plan).ok();
        idle().push(forecaster);
        let forecast = forecast?;
        // Doubtful figures would mislead more than they help.
        forecast
            .explanation
            .doubts
            .is_empty()
            .then_some(forecast.time)
    }
}

/// The virtual GPU that is most like a real one: of its name, else of its compute capability with
/// the nearest number of multiprocessors. `None` for a generation that has no table.
#[must_use]
pub fn like(name: &str, limits: &DeviceLimits) -> Option<&'static Arch> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = plain(name);
    let all = vgpu::arch::list_gpus();
    if let Some(arch) = all
        .iter()
        .find(|arch| format!("vgpu{}", arch.name) == wanted)
    {
        return Some(arch);
    }
    let same = all.iter().filter(|arch| arch.cc == limits.cc);
    same.min_by_key(|arch| {
        let named = wanted.ends_with(arch.name) || wanted.contains(&format!("{}sxm", arch.name));
        (!named, arch.sm_count.abs_diff(limits.sm_count))
    })
}

#[cfg(test)]
mod tests;
