//! Clock of a launch.
//!
//! Kernels with matrix instructions run at a clock of their own in the table of a GPU. From compute capability
//! 10.0 on that is the clock at the full rate of the tensor cores, which then draw the power of the whole GPU: with
//! a part of that rate the clock is higher, as power goes with the clock and the square of the voltage, so with
//! the third power of the clock. The L2 cache keeps its clock there (ademeure/QuickRunCUDA,
//! `b300_clean/CLOCK_DOMAINS_AND_L2_UNITS.md`, B300: 1860 MHz at every clock of the multiprocessors).

use super::code::Instr;
use super::sm::{L2_PORT_RATE, Outcome, Work};
use super::units::TENSOR;
use sass::Unit;
use vgpu::Arch;

/// Compute capability times ten from which on the tensor cores are limited by power.
const POWER_LIMITED_FROM: u32 = 100;
/// Replays at most, each at the clock that the one before gives.
pub(super) const MAX_REPLAYS: usize = 3;
/// Relative difference of clocks below which a replay stands.
const MAX_DIFFERENCE: f64 = 0.02;

/// Returns the clock of a first replay, MHz.
pub(super) fn first_mhz(arch: &Arch, code: &[Instr]) -> f64 {
    let products = code.iter().any(|instr| instr.unit == Unit::Tensor);
    f64::from(match products && arch.cc < POWER_LIMITED_FROM {
        true => arch.tensor_mhz,
        false => arch.boost_mhz,
    })
}

/// Returns the clock that the power of the tensor cores allows, MHz, if it is another one than that of the
/// replay. `blocks` of the device take `cycles`.
pub(super) fn lower_mhz(
    work: &Work<'_>,
    outcome: &Outcome,
    mhz: f64,
    blocks: f64,
    cycles: f64,
) -> Option<f64> {
    let arch = work.arch;
    if arch.cc < POWER_LIMITED_FROM {
        return None;
    }
    let schedulers = f64::from(arch.schedulers);
    // Cycles of the mean scheduler for one block: the replay was of `progress` blocks.
    let busy = outcome.tally.pipe_cycles[TENSOR] as f64 / schedulers / outcome.progress.max(1e-6);
    // `mma.sync` has a part of the full rate.
    let rate = match work.code.iter().any(|instr| instr.tensor_core.is_some()) {
        true => 1.0,
        false => f64::from(arch.tensor_sync_pct) / 100.0,
    };
    let share = rate * busy * blocks / (f64::from(arch.sm_count) * cycles.max(1.0));
    let next = allowed_mhz(arch, share);
    ((next / mhz - 1.0).abs() > MAX_DIFFERENCE).then_some(next)
}

/// Returns the clock at a share of the full rate of the tensor cores, MHz.
fn allowed_mhz(arch: &Arch, share: f64) -> f64 {
    let allowed = f64::from(arch.tensor_mhz) / share.clamp(0.01, 1.0).cbrt();
    allowed.min(arch.boost_mhz.into())
}

impl Work<'_> {
    /// Sets the rates of the L2 cache and of memory at a clock of the multiprocessors.
    pub(super) fn set_clock(&mut self, mhz: f64) {
        let arch = self.arch;
        let l2 = match arch.cc {
            POWER_LIMITED_FROM.. => f64::from(arch.boost_mhz) / mhz,
            _ => 1.0,
        };
        self.l2_port_rate = L2_PORT_RATE * l2;
        self.l2_rate =
            (f64::from(arch.l2_bytes_per_clock) * l2 / self.active).min(self.l2_port_rate);
        self.dram_rate = arch.dram_gb_s * 1e9 / (mhz * 1e6) / self.active;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_falls_with_the_share_of_the_tensor_cores() {
        let b200 = Arch::by_name("b200").unwrap();
        let [full, half, none] = [1.0, 0.5, 0.0].map(|share| allowed_mhz(b200, share));
        assert_eq!(full, f64::from(b200.tensor_mhz));
        assert!(full < half && half < none);
        assert_eq!(none, f64::from(b200.boost_mhz));
        // A clock that is given is kept.
        let fixed = Arch::by_name("b200@1500MHz").unwrap();
        assert_eq!(
            [1.0, 0.1].map(|share| allowed_mhz(fixed, share)),
            [1500.0; 2]
        );
    }
}
