//! Extrapolation from the replay of one multiprocessor to the time of a launch.

use super::clock;
use super::code::{self, Instr, TensorCore, UNITS};
use super::imbalance::Imbalance;
use super::memory::{self, Neighbourhood, Traffic};
use super::sample::Traces;
use super::sm::{Outcome, Sm, Tally, Work};
use super::units::Rates;
use sass::Unit;
use sass_machine::Machine;
use vgpu::Arch;
use vgpu::counters::Counters;
use vgpu::exec::trace::{BlockTrace, Target};
use vgpu::tensor_core::COLUMNS;

/// Resource shape of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block.
    pub threads: u32,
    /// Registers per thread, as allocated by the assembler.
    pub registers: u32,
    /// Shared memory per block, static and dynamic, bytes.
    pub shared_bytes: u64,
}

/// Predicted time of a launch with its explanation.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Cycles of the busiest multiprocessor.
    pub cycles: f64,
    /// Microseconds without the launch overhead.
    pub us: f64,
    /// Resident blocks per multiprocessor.
    pub resident: u32,
    /// Resident warps as a share of the maximum, 0 to 1.
    pub occupancy: f64,
    /// Number of times that the grid fills the device.
    pub waves: f64,
    /// Limiting resource of the launch: `issue`, `fp32`, `alu`, `fp16`, `fp64`, `special`,
    /// `tensor`,
    /// `shared` (loads and stores of shared memory and of the L1 cache), `l2`, `dram` or `latency`.
    pub bound: &'static str,
    /// Counters of the replayed blocks.
    pub(crate) tally: Tally,
    /// Ratio of the launch to the replayed blocks.
    pub(crate) scale: f64,
    /// Number of replayed cycles.
    pub replayed_cycles: u64,
    /// Instructions of all warps of the launch, by unit in the order of [`Unit`].
    pub(crate) by_unit: [f64; UNITS],
    /// Share of the products of warp-groups that wait for the one before because the assembler
    /// serialized them; `None` without such products.
    pub(crate) serialized: Option<f64>,
    /// Memory traffic of the whole launch.
    pub traffic: Traffic,
    /// Roofline floor.
    pub floor: Floor,
    /// Reasons not to rely on the figure; empty if none is known.
    pub doubts: Vec<String>,
}

/// Roofline lower bound of the time, with its limiting resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Microseconds.
    pub us: f64,
    /// `fp32`, `fp64`, `tensor` or `dram`.
    pub bound: &'static str,
}

/// Largest number of replayed instructions per launch.
const MAX_REPLAYED_INSTRUCTIONS: u64 = 1_000_000;

/// Predicts one launch from traces of some of its blocks. `None` without traces, and if a block
/// does not fit on a multiprocessor.
pub fn estimate(
    arch: &Arch,
    machine: &Machine,
    mut traces: Traces,
    shape: &Shape,
) -> Option<Estimate> {
    let code = code::code(machine.code());
    let (products_of_groups, waiting) = code::serialized_products(machine.code());
    traces.main.warps.retain(|warp| !warp.runs.is_empty());
    let resident = resident_blocks(arch, shape.threads, shape.registers, shape.shared_bytes)
        .min(tensor_memory_blocks(&code, &traces.main));
    if resident == 0 || traces.main.warps.is_empty() {
        return None;
    }
    let imbalance = traces.imbalance;
    let around = Neighbourhood::new(&traces.plain, &traces.beside);
    around.mark(&mut traces.main);
    let blocks: u64 = shape.grid.iter().map(|d| u64::from(*d)).product();
    let sms = u64::from(arch.sm_count);
    let mine = blocks.div_ceil(sms);
    let here = u64::from(resident).min(mine);
    let active = blocks.min(sms) as f64;
    let l1_bytes = memory::l1_bytes(arch, shape.shared_bytes, u64::from(resident));
    let together = here * sms.min(blocks);
    let kept = memory::kept_ratio(&traces.plain);
    let asked = traces.reuse.sectors(&traces.plain) * kept;
    let mut traffic = around.traffic(arch, shape.grid, together, asked, kept, traces.allocated);
    let threads = together as f64 * f64::from(shape.threads);
    traffic.local_hit_share = memory::local_hit_share(arch, &code, threads);
    let mut mhz = clock::first_mhz(arch, &code);
    let mut work = Work {
        arch,
        code: &code,
        trace: &traces.main,
        active,
        resident: here as usize,
        blocks: mine as usize,
        budget: MAX_REPLAYED_INSTRUCTIONS,
        l1_bytes,
        l2_port_rate: 0.0,
        l2_rate: 0.0,
        dram_rate: 0.0,
        first_miss: traffic.first_miss,
        cold: traffic.cold,
        write_cost: f64::from(arch.dram_write_pct) / 100.0,
        local_hit_share: traffic.local_hit_share,
    };
    let (mut outcome, mut cycles) = replay(&mut work, mhz, mine as f64, imbalance);
    for _ in 1..clock::MAX_REPLAYS {
        let device = blocks as f64 * imbalance.mean;
        let Some(next) = clock::lower_mhz(&work, &outcome, mhz, device, cycles) else {
            break;
        };
        mhz = next;
        (outcome, cycles) = replay(&mut work, mhz, mine as f64, imbalance);
    }
    let floor = compute_floor(arch, &code, &traces.counters, blocks, &traffic);
    let modelled = cycles / mhz;
    let warps = f64::from(shape.threads.div_ceil(32)) * here as f64;
    let mut estimate = Estimate {
        cycles,
        us: modelled.max(floor.us),
        resident,
        occupancy: warps * 32.0 / f64::from(arch.max_threads_per_sm),
        waves: blocks as f64 / (u64::from(resident) * sms) as f64,
        bound: "latency",
        tally: outcome.tally,
        scale: blocks as f64 * imbalance.mean / outcome.progress.max(1e-6),
        replayed_cycles: outcome.cycles,
        by_unit: traces
            .by_unit
            .map(|n| n as f64 * blocks as f64 * imbalance.mean),
        serialized: (products_of_groups > 0).then(|| waiting as f64 / products_of_groups as f64),
        traffic,
        floor,
        doubts: Vec::new(),
    };
    estimate.bound = estimate.limit(arch);
    estimate.doubts = list_doubts(&estimate, &traces);
    Some(estimate)
}

/// Replays the blocks of a multiprocessor at a clock, MHz, and returns the cycles of all of them.
fn replay(work: &mut Work<'_>, mhz: f64, mine: f64, imbalance: Imbalance) -> (Outcome, f64) {
    work.set_clock(mhz);
    let outcome = Sm::new(work).run();
    let cycles = with_heaviest(&outcome, work, mine, imbalance);
    (outcome, cycles)
}

/// Share of idle blocks whose start may take as long as the work of the others.
const MANY_IDLE: f64 = 0.5;

/// Lists known weaknesses of the model that apply to this launch.
fn list_doubts(estimate: &Estimate, traces: &Traces) -> Vec<String> {
    let mut doubts = Vec::new();
    if !traces.complete {
        doubts.push("the sampled block did not run to its end".to_owned());
    }
    if traces.imbalance.unknown {
        doubts.push("blocks may differ in their work: they could not all be followed".to_owned());
    }
    if traces.imbalance.idle > MANY_IDLE {
        doubts.push(format!(
            "{:.0} % of the blocks do nothing, and the time to start them is not in the model",
            100.0 * traces.imbalance.idle
        ));
    }
    let all: f64 = estimate.by_unit.iter().sum();
    let share = |unit: Unit| estimate.by_unit[unit as usize] / all.max(1.0);
    if share(Unit::Atomic) + share(Unit::SharedAtomic) > 0.02 {
        doubts.push("contention of atomics was compared with no recording".to_owned());
    }
    if share(Unit::Texture) > 0.0 {
        doubts.push("texture units were compared with no recording".to_owned());
    }
    doubts
}

/// Computes the cycles of a multiprocessor for `blocks` blocks of unequal work. They are at least
/// those of the heaviest block, which runs next to blocks like the sampled one.
fn with_heaviest(outcome: &Outcome, work: &Work<'_>, blocks: f64, imbalance: Imbalance) -> f64 {
    let cycles = extrapolate_cycles(outcome, blocks * imbalance.mean);
    if imbalance.most <= 1.0 {
        return cycles;
    }
    let resident_time = match outcome.first_wave {
        // No wave has ended: it takes its time at the rate so far.
        None => outcome.cycles as f64 * work.resident as f64 / outcome.progress.max(1e-6),
        Some(first) => first as f64,
    };
    cycles.max(resident_time * imbalance.most)
}

/// Extrapolates from the replayed blocks to all blocks of a multiprocessor.
fn extrapolate_cycles(outcome: &Outcome, blocks: f64) -> f64 {
    let cycles = outcome.cycles as f64;
    let done = outcome.done as f64;
    if outcome.cut_short {
        // A replay that was cut short continues at its rate so far.
        return cycles * blocks / outcome.progress.max(1e-6);
    }
    if done >= blocks {
        return cycles;
    }
    // Blocks of later waves replace earlier ones one by one, at the rate of the last wave, unless a
    // resource shared by all warps is slower. Memory traffic still pending at the last instruction
    // belongs to all waves, so it is added once.
    let tally = &outcome.tally;
    let issue = outcome.cycles_per_block.unwrap_or(0.0);
    let served = tally
        .dram_cycles
        .max(tally.l2_cycles)
        .max(tally.atomic_cycles);
    let each = issue.max(served.max(tally.lsu_cycles as f64) / done.max(1.0));
    cycles + (blocks - done) * each
}

/// Computes the number of blocks of this shape that fit on one multiprocessor (CUDA Programming
/// Guide, "Occupancy Calculator"). Registers are allocated in units of 256 per warp. Since compute
/// capability 8.0 the system reserves 1 KiB of shared memory per block.
pub fn resident_blocks(arch: &Arch, threads: u32, registers: u32, shared_bytes: u64) -> u32 {
    let warps = threads.div_ceil(32).max(1);
    // A warp with few threads takes the place of a whole one.
    let by_threads = arch.max_threads_per_sm / (warps * 32);
    let registers_a_warp = (registers.max(1) * 32).div_ceil(256) * 256;
    // Each scheduler has a separate part of the registers.
    let warps_a_part = arch.registers_per_sm / arch.schedulers / registers_a_warp;
    let by_registers = warps_a_part * arch.schedulers / warps;
    let system = if arch.cc >= 80 { 1024 } else { 0 };
    let by_shared = u64::from(arch.shared_bytes_per_sm) / (shared_bytes + system).max(1);
    let by_shared = u32::try_from(by_shared).unwrap_or(u32::MAX);
    by_threads
        .min(by_registers)
        .min(by_shared)
        .min(arch.max_blocks_per_sm)
}

/// Returns the number of blocks whose allocations fit in the tensor memory of a multiprocessor.
fn tensor_memory_blocks(code: &[Instr], trace: &BlockTrace) -> u32 {
    let accesses = trace.warps.iter().flat_map(|warp| &warp.accesses);
    let columns = accesses.filter_map(|access| match access.target {
        Target::TensorCore { columns, .. } => {
            let instr = code.get(access.pc as usize)?;
            (instr.tensor_core == Some(TensorCore::Allocate)).then_some(columns)
        }
        _ => None,
    });
    match columns.sum::<u32>() {
        0 => u32::MAX,
        // A block that frees columns and allocates again has a sum beyond the size.
        columns => (COLUMNS / columns).max(1),
    }
}

/// Computes the roofline lower bound: arithmetic and memory at their peak rates.
fn compute_floor(
    arch: &Arch,
    code: &[Instr],
    counters: &Counters,
    blocks: u64,
    traffic: &Traffic,
) -> Floor {
    let scale = blocks as f64 / counters.blocks.max(1) as f64;
    // The highest clock, although products may lower it, keeps this a lower bound.
    let clock = f64::from(arch.boost_mhz) * 1e6 * f64::from(arch.sm_count);
    let double = f64::from(arch.fp64_lanes) * 2.0 * clock;
    // With several matrix types, the fastest rate keeps the result a lower bound.
    let tensor = Rates::from_arch(arch).tensor;
    let rates = code
        .iter()
        .map(|instr| instr.tensor)
        .filter(|(work, _)| *work > 0);
    let fastest = rates
        .map(|(_, matrix)| tensor.rate(matrix))
        .max_by(f64::total_cmp);
    let matrix = fastest.unwrap_or(0.0) * f64::from(arch.schedulers) * 2.0 * clock;
    let time = |work: f64, peak: f64| {
        if work > 0.0 && peak > 0.0 {
            work / peak
        } else {
            0.0
        }
    };
    let floors = [
        (
            "fp32",
            time(counters.fp32_flops as f64 * scale, arch.peak_fp32()),
        ),
        ("fp64", time(counters.fp64_flops as f64 * scale, double)),
        ("tensor", time(counters.tensor_flops as f64 * scale, matrix)),
        ("dram", time(traffic.least_bytes, arch.dram_gb_s * 1e9)),
    ];
    let highest = floors.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (bound, seconds) = highest.unwrap_or(("dram", 0.0));
    Floor {
        us: seconds * 1e6,
        bound,
    }
}
