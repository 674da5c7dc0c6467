//! Counters of a prediction, with the names of Nsight Compute.

use super::estimate::Estimate;
use super::sm::Stall;
use super::units::{ALU, DOUBLE, FMA, FMA_SECOND, HALF, SPECIAL, TENSOR};
use sass::Unit;
use vgpu::Arch;

/// Smallest busy share of a unit that limits a launch.
const MIN_BUSY_SHARE: f64 = 0.6;

/// Metric of a launch with products of warp-groups: the percentage of them that the assembler
/// serialized.
pub const SERIALIZED: &str = "wgmma_serialized_pct";
/// Percentage above which a launch gets a warning.
pub const SERIALIZED_MOST_PCT: f64 = 50.0;

impl Estimate {
    /// Returns the busiest unit; `latency` if none is busy.
    pub(super) fn limit(&self, arch: &Arch) -> &'static str {
        let t = &self.tally;
        let cycles = self.replayed_cycles.max(1) as f64;
        let slots = cycles * f64::from(arch.schedulers);
        // With more lanes than the first pipe has, two pipes alternate.
        let pipes = f64::from(arch.fp32_lanes.div_ceil(arch.imad_lanes).max(1));
        let pipe = |pipe: usize| t.pipe_cycles[pipe] as f64 / slots;
        let mut units = [
            ("issue", t.issued as f64 / slots),
            ("fp32", (pipe(FMA) + pipe(FMA_SECOND)) / pipes),
            ("alu", pipe(ALU)),
            ("fp16", pipe(HALF)),
            ("fp64", pipe(DOUBLE)),
            ("special", pipe(SPECIAL)),
            ("tensor", pipe(TENSOR)),
            ("shared", t.lsu_cycles as f64 / cycles),
            ("l2", t.l2_cycles.max(t.atomic_cycles) / cycles),
            ("dram", t.dram_cycles / cycles),
        ];
        // The time is that of the roofline if the replay was faster.
        if self.floor.us >= self.us {
            return self.floor.bound;
        }
        units.sort_by(|a, b| b.1.total_cmp(&a.1));
        if units[0].1 >= MIN_BUSY_SHARE {
            units[0].0
        } else {
            "latency"
        }
    }

    /// Returns the counters of the launch, as sums over the grid. Names without dots have no
    /// counterpart in Nsight Compute: `idle_*` are shares of scheduler cycles without an issue, by
    /// the stall reason of the next warp.
    pub fn metrics(&self, arch: &Arch) -> Vec<(&'static str, f64)> {
        let slots = self.replayed_cycles.max(1) as f64 * f64::from(arch.schedulers);
        let mut all = self.of_instructions(slots);
        all.extend(self.of_memory());
        all.extend(self.of_idle_cycles(slots));
        let serialized = self.serialized.map(|share| (SERIALIZED, 100.0 * share));
        all.extend(serialized);
        all
    }

    /// Returns executed instructions and the pipe utilisation over `slots` issue slots.
    fn of_instructions(&self, slots: f64) -> Vec<(&'static str, f64)> {
        let t = &self.tally;
        let unit = |u: Unit| self.by_unit[u as usize];
        let lsu = [
            Unit::Global,
            Unit::CopyAsync,
            Unit::Shared,
            Unit::Local,
            Unit::Atomic,
        ];
        vec![
            ("sm__cycles_elapsed.max", self.cycles),
            ("smsp__inst_executed.sum", self.by_unit.iter().sum()),
            (
                "smsp__issue_active.avg.pct_of_peak_sustained_active",
                percent(t.issued as f64, slots),
            ),
            (
                "sm__warps_active.avg.pct_of_peak_sustained_active",
                self.occupancy * 100.0,
            ),
            ("launch__waves_per_multiprocessor", self.waves),
            ("launch__occupancy_limit_blocks", f64::from(self.resident)),
            ("sm__inst_executed_pipe_fma.sum", unit(Unit::Fma)),
            ("sm__inst_executed_pipe_alu.sum", unit(Unit::Alu)),
            ("sm__inst_executed_pipe_fp16.sum", unit(Unit::Half)),
            ("sm__inst_executed_pipe_fp64.sum", unit(Unit::Double)),
            ("sm__inst_executed_pipe_xu.sum", unit(Unit::Special)),
            ("sm__inst_executed_pipe_tensor.sum", unit(Unit::Tensor)),
            ("sm__inst_executed_pipe_uniform.sum", unit(Unit::Uniform)),
            (
                "sm__inst_executed_pipe_lsu.sum",
                lsu.into_iter().map(unit).sum(),
            ),
            (
                "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                percent(t.pipe_cycles[TENSOR] as f64, slots),
            ),
        ]
    }

    /// Returns the traffic of the caches and of memory.
    fn of_memory(&self) -> Vec<(&'static str, f64)> {
        let t = &self.tally;
        let sum = |n: u64| n as f64 * self.scale;
        vec![
            (
                "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                sum(t.l1_sectors),
            ),
            (
                "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                sum(t.stored_sectors),
            ),
            (
                "l1tex__t_sectors_pipe_lsu_mem_local.sum",
                sum(t.local_sectors),
            ),
            (
                "l1tex__t_sector_hit_rate.pct",
                percent(t.l1_hits as f64, t.l1_sectors as f64),
            ),
            (
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
                sum(t.shared_wavefronts),
            ),
            (
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
                sum(t.shared_conflicts),
            ),
            ("lts__t_sectors.sum", t.l2_sectors * self.scale),
            (
                "lts__t_sector_hit_rate.pct",
                100.0 - percent(t.dram_sectors, t.l2_sectors).min(100.0),
            ),
            ("dram__bytes.sum", t.dram_sectors * 32.0 * self.scale),
        ]
    }

    /// Returns the shares of the issue slots without an issue, by the stall reason of the next
    /// warp.
    fn of_idle_cycles(&self, slots: f64) -> Vec<(&'static str, f64)> {
        let idle = |s: Stall| percent(self.tally.stalled[s as usize] as f64, slots);
        vec![
            ("idle_wait_pct", idle(Stall::Wait)),
            ("idle_long_scoreboard_pct", idle(Stall::LongScoreboard)),
            ("idle_short_scoreboard_pct", idle(Stall::ShortScoreboard)),
            ("idle_math_pipe_pct", idle(Stall::MathPipe)),
            ("idle_mio_pct", idle(Stall::Mio)),
            ("idle_dispatch_pct", idle(Stall::Dispatch)),
            ("idle_no_instruction_pct", idle(Stall::NoInstruction)),
            ("idle_imc_miss_pct", idle(Stall::ImcMiss)),
            ("idle_barrier_pct", idle(Stall::Barrier)),
        ]
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * part / whole.max(1e-9)
}
