//! Launches of the stand-in: helper kernels by name, others on the virtual GPU.

use super::virtual_driver::{Kernel, VirtualDriver};
use std::time::Duration;
use tuner_device::gpu::driver::{Answer, CudaError, DevicePointer, LaunchConfig, code};
use tuner_device::gpu::helpers::entry;
use vgpu::{Arg, Checks, End, HazardKind, Launch, LaunchError};

/// Warp instructions of a block after which a launch hangs forever, as an endless loop does.
const HANG_INSTRUCTIONS: u64 = 20_000_000;
/// Minimum duration of a launch, microseconds.
const LAUNCH_US: f64 = 2.0;

/// A queued launch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Queued {
    pub(super) kernel: Kernel,
    pub(super) config: LaunchConfig,
}

impl VirtualDriver {
    /// Runs a launch now and advances the clock. Returns its time without noise, microseconds.
    pub(super) fn execute(&mut self, queued: &Queued) -> Answer<f64> {
        let micros = match self.own(queued)? {
            Some(micros) => micros,
            None => self.on_virtual_gpu(queued)?,
        };
        self.clock.advance(micros);
        Ok(micros)
    }

    /// Executes a helper kernel and returns its duration; `None` for other kernels.
    fn own(&mut self, queued: &Queued) -> Answer<Option<f64>> {
        let words: Vec<u64> = queued
            .config
            .parameters
            .iter()
            .map(|bytes| {
                let mut word = [0; 8];
                let length = bytes.len().min(8);
                word[..length].copy_from_slice(&bytes[..length]);
                u64::from_le_bytes(word)
            })
            .collect();
        let word = |index: usize| words.get(index).copied().unwrap_or(0) as f64;
        let threads = f64::from(queued.config.grid[0]) * f64::from(queued.config.block[0]);
        // Rates of no particular GPU: 2 TB/s of memory, 5 TB/s of cache, 30 and 200 TFLOP/s.
        Ok(Some(match queued.kernel.name.as_str() {
            entry::NULL => 1.0,
            entry::POISON_SHARED => {
                self.shared_fill = u32::MAX;
                1.0
            }
            entry::SPIN => word(0) / 1e3,
            entry::STAMP => {
                let ticket = words.get(1).copied().unwrap_or(0);
                let stamps = [self.clock.cycles(), self.clock.nanoseconds(), ticket];
                let bytes: Vec<u8> = stamps
                    .iter()
                    .flat_map(|stamp| stamp.to_le_bytes())
                    .collect();
                let at = words.first().copied().unwrap_or(0);
                self.write(DevicePointer(at), &bytes)?;
                let written = self.living.range(..=at).next_back();
                self.stamps = written.map(|(_, (id, _))| *id);
                1.0
            }
            entry::COPY => 32.0 * word(2) / 2e6,
            entry::READ => 16.0 * word(2) * word(3) / 5e6,
            entry::SINGLE => 256.0 * word(1) * threads / 30e6,
            entry::TENSOR => 131_072.0 * word(1) * threads / 32.0 / 200e6,
            _ => return Ok(None),
        }))
    }

    /// Executes the launch, unless the same launch on the same memory was executed before.
    fn on_virtual_gpu(&mut self, queued: &Queued) -> Answer<f64> {
        let Some(found) = self.found(queued) else {
            return self.executed(queued);
        };
        if let Some(micros) = self.recall(queued, &found) {
            return Ok(micros);
        }
        let micros = self.executed(queued)?;
        if self.poisoned.is_none() {
            self.keep(queued, found, micros);
        }
        Ok(micros)
    }

    fn executed(&mut self, queued: &Queued) -> Answer<f64> {
        let failed = |code| CudaError::new("cuLaunchKernel", code);
        let config = &queued.config;
        let parameters = config.parameters.iter().cloned().map(Arg::Bytes);
        let launch = Launch {
            dynamic_shared_bytes: config.shared_bytes,
            shared_fill: self.shared_fill,
            // Two launches never read the same clock.
            clock: self.clock.cycles(),
            cluster: config.cluster,
            cooperative: config.cooperative,
            instruction_budget: HANG_INSTRUCTIONS,
            checks: Checks {
                races: false,
                uninitialized: false,
                ..Checks::default()
            },
            ..Launch::new(
                &queued.kernel.name,
                config.grid,
                config.block,
                parameters.collect(),
            )
        };
        let module = std::sync::Arc::clone(&queued.kernel.module);
        let report = vgpu::launch(&module, &mut self.memory, self.arch, &launch).map_err(
            |error| match error {
                LaunchError::UnknownEntry { .. } => failed(code::NOT_FOUND),
                LaunchError::Unsupported(_) => failed(code::ILLEGAL_INSTRUCTION),
                LaunchError::Memory(_) => failed(code::OUT_OF_MEMORY),
                other => failed(code::INVALID_VALUE).noting(&other.to_string()),
            },
        )?;
        for hazard in &report.hazards {
            match hazard.kind {
                HazardKind::OutOfBounds => self.poisoned = Some(code::ILLEGAL_ADDRESS),
                HazardKind::Misaligned => self.poisoned = Some(code::MISALIGNED_ADDRESS),
                HazardKind::Crashed if hazard.detail.contains("assert") => {
                    // The driver prints it as well.
                    eprintln!("Assertion failed: {}", hazard.detail);
                    self.poisoned = Some(code::ASSERT);
                }
                HazardKind::Crashed => self.poisoned = Some(code::LAUNCH_FAILED),
                HazardKind::Deadlock | HazardKind::Timeout => hang(),
                _ => {}
            }
        }
        if self.poisoned.is_none() && report.end != End::Completed {
            self.poisoned = Some(code::LAUNCH_FAILED);
        }
        let lanes = f64::from(self.arch.sm_count) * 64.0;
        let cycles = report.counters.lane_instructions as f64 / lanes;
        let slower = f64::from(config.shared_bytes) * 1e-3;
        let made_up = self.kernel_us.map(|micros| micros + slower);
        Ok(made_up.unwrap_or(LAUNCH_US + cycles / super::clock::MHZ))
    }
}

/// Hangs the process, as a launch without an end does.
fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
