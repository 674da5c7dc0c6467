//! Extrapolation of long blocks from their beginning.
//!
//! A block of more than [`MAX_WHOLE_INSTRUCTIONS`] instructions is not executed whole. Its
//! beginning stands for the repeated work if two conditions hold. First, with one numeric argument
//! made smaller, the block ends soon and has executed every instruction of the beginning. Second,
//! its lengths at that number and at two and three times it are on a straight line, which also
//! yields the whole length.
//!
//! The shorter blocks run as SASS and as PTX and must leave the same memory. A prefix of the long
//! block is not enough: a loop that stores at its end would not show a difference. For the whole
//! block, only the control flow is executed, as PTX. It must be as long as the line predicts, so
//! that nothing else follows at the end. If a condition fails, the block is executed whole.

use super::blocks::{cluster_blocks, launch_blocks};
use sass_machine::{Machine, MachineError, Proof, SassRun, prove};
use vgpu::counters::Counters;
use vgpu::exec::launch::{Depth, End, Launch, LaunchError, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::GlobalMemory;
use vgpu::{Arch, Arg, Module};

/// Instructions of the executed beginning.
pub(super) const BEGINNING_INSTRUCTIONS: u64 = 500_000;
/// Largest number of instructions for which a block is executed whole.
const MAX_WHOLE_INSTRUCTIONS: f64 = 3_000_000.0;
/// Largest number of instructions of a shorter block.
const MAX_SHORT_INSTRUCTIONS: u64 = 125_000;
/// Largest relative distance of the third length from the line through the first two.
const MAX_LINE_ERROR: f64 = 0.01;

/// A long block, known by its beginning.
pub(super) struct Long {
    /// Trace of the beginning as SASS and as PTX.
    pub(super) main: BlockTrace,
    pub(super) plain: BlockTrace,
    /// Ratio of the whole block to its beginning.
    pub(super) ratio: f64,
    /// Counters of the whole block, from PTX.
    pub(super) counters: Counters,
    /// Difference between SASS and PTX in the shorter blocks, if any.
    pub(super) differs: Option<Proof>,
}

/// A numeric argument that determines the length of a block.
struct LengthArgument {
    index: usize,
    value: u64,
    /// The reduced value.
    least: u64,
    /// Instructions of the block at `least` and at twice that value.
    lengths: [f64; 2],
}

impl LengthArgument {
    /// Returns the steps of `least` from the first length to the whole.
    fn steps(&self) -> f64 {
        self.value as f64 / self.least as f64 - 1.0
    }

    /// Returns the instructions of the whole block.
    fn whole(&self) -> f64 {
        self.lengths[0] + (self.lengths[1] - self.lengths[0]) * self.steps()
    }
}

/// Returns the launch with another value of this argument.
fn with_value(template: &Launch, index: usize, value: u64) -> Launch {
    let mut changed = template.clone();
    if let Some(Arg::Bytes(bytes)) = changed.args.get_mut(index) {
        let count = bytes.len();
        bytes.copy_from_slice(&value.to_le_bytes()[..count]);
    }
    changed
}

/// Returns a flag for each instruction that the block executed.
fn visited(trace: &BlockTrace, count: usize) -> Vec<bool> {
    let mut visited = vec![false; count];
    for run in trace.warps.iter().flat_map(|warp| &warp.runs) {
        visited[run.start as usize..run.end as usize].fill(true);
    }
    visited
}

/// Extrapolates a block that has not ended after [`BEGINNING_INSTRUCTIONS`] instructions; `None` if
/// it must be executed whole. Memory is restored, except for stores of shorter blocks that need no
/// check.
///
/// # Errors
/// A refused launch.
pub(super) fn extrapolate_long(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    run: &SassRun,
) -> Result<Option<Long>, MachineError> {
    // The instructions of a cluster are not those of one block.
    let alone = !template.cooperative && cluster_blocks(module, template) == 1;
    let Some(main) = run.trace().filter(|_| alone) else {
        return Ok(None);
    };
    let seen = visited(main, machine.code().len());
    let Some(number) = find_length_argument(machine, module, memory, template, &seen) else {
        return Ok(None);
    };
    let ratio = number.whole() / run.instructions() as f64;
    if number.whole() <= MAX_WHOLE_INSTRUCTIONS || ratio <= 1.0 {
        return Ok(None);
    }
    let mut counters = Vec::new();
    let mut differs = None;
    for times in [1, 2] {
        let shorter = with_value(template, number.index, number.least * times);
        let (report, proof) = prove(machine, module, memory, arch, &shorter)?;
        counters.push(report.counters);
        match proof {
            Proof::Same(_) | Proof::Rounded { .. } => {}
            Proof::Differs(..) => differs = differs.or(Some(proof)),
            Proof::Unfinished(_) | Proof::NotAvailable(_) => return Ok(None),
        }
    }
    let counted = counters[0].extrapolated(counters[1], number.steps());
    // Two runs that store nothing leave the same memory whatever they compute.
    if counters[0].global_store_bytes == 0
        || !has_predicted_length(module, memory, arch, template, &counted)?
    {
        return Ok(None);
    }
    let mut first = launch_blocks(template, Vec::new(), BEGINNING_INSTRUCTIONS);
    first.blocks = template.blocks.clone();
    first.trace = true;
    let report = launch(module, memory, arch, &first)?;
    let Some(mut plain) = report.traces.into_iter().next() else {
        return Ok(None);
    };
    // Accesses that were not executed count as accesses that the trace did not keep.
    for warp in &mut plain.warps {
        let made = warp.accesses.len() as u64 + warp.dropped;
        warp.dropped += (made as f64 * (ratio - 1.0)) as u64;
    }
    Ok(Some(Long {
        main: main.clone(),
        plain,
        ratio,
        counters: counted,
        differs,
    }))
}

/// Returns true if the path of the whole block has the predicted length.
fn has_predicted_length(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    counted: &Counters,
) -> Result<bool, LaunchError> {
    let mut control_flow = launch_blocks(template, Vec::new(), template.instruction_budget);
    control_flow.blocks = template.blocks.clone();
    control_flow.depth = Depth::Control;
    let report = launch(module, memory, arch, &control_flow)?;
    let passed = report.counters.warp_instructions as f64;
    let said = counted.warp_instructions as f64;
    Ok(report.end == End::Completed && (passed - said).abs() <= MAX_LINE_ERROR * said)
}

/// Finds the one argument that determines the length linearly, if any.
fn find_length_argument(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    template: &Launch,
    seen: &[bool],
) -> Option<LengthArgument> {
    let length = |memory: &mut GlobalMemory, index: usize, value: u64, budget: u64| {
        let mut shorter = with_value(template, index, value);
        shorter.instruction_budget = budget;
        let run = SassRun::execute(machine, module, memory, &shorter);
        let ended = run.ended().then(|| run.instructions() as f64)?;
        let all = visited(run.trace()?, seen.len());
        let covers = seen.iter().zip(&all).all(|(wanted, had)| *had || !wanted);
        Some((ended, covers))
    };
    for (index, argument) in template.args.iter().enumerate() {
        let Arg::Bytes(bytes) = argument else {
            continue;
        };
        let mut wide = [0; 8];
        let Some(place) = wide.get_mut(..bytes.len()).filter(|place| place.len() >= 4) else {
            continue;
        };
        place.copy_from_slice(bytes);
        let value = u64::from_le_bytes(wide);
        // Skip values that look like floating-point bits or masks.
        if !(64..1 << 32).contains(&value) || value > 0x7fff_ffff {
            continue;
        }
        // From the smallest value on: if the block does not end there, this argument does not
        // shorten it.
        let smaller = [12, 10, 8, 6, 4].map(|shift| value >> shift);
        for least in smaller.into_iter().filter(|v| *v > 0) {
            let (first, covers) = match length(memory, index, least, MAX_SHORT_INSTRUCTIONS) {
                Some(known) => known,
                None => break,
            };
            // Too small: some of the work of the whole block, such as a loop, was skipped.
            if !covers {
                continue;
            }
            // Room for three times the work of the first.
            let (second, _) = length(memory, index, least * 2, MAX_SHORT_INSTRUCTIONS * 4)?;
            let (third, _) = length(memory, index, least * 3, MAX_SHORT_INSTRUCTIONS * 4)?;
            let straight = (third - (2.0 * second - first)).abs() <= MAX_LINE_ERROR * third;
            // Below one tile of the loop, doubling the value does not change the length.
            if straight && second > first {
                return Some(LengthArgument {
                    index,
                    value,
                    least,
                    lengths: [first, second],
                });
            }
        }
    }
    None
}
