//! Blocks that run long are known by their beginning.
//!
//! A block of more than [`LONG`] instructions is not executed whole. What it does is taken to be its
//! beginning, again and again, where this holds: with one of its numbers made smaller the block ends soon
//! and has executed every instruction that the beginning has; and its length, at that number, twice and
//! three times it, lies on a straight line, which gives the whole's. The shorter blocks are executed at both
//! levels and must leave the same memory. (No prefix of a loop that stores at its end could tell.) And of the
//! whole block the way is followed as PTX, what decides it alone being executed: it must be as long as the
//! line says, so that nothing else waits at the end. Otherwise the block is executed whole.

use super::sample::some;
use sass_machine::{Begun, Machine, MachineError, Proof, prove};
use vgpu::counters::Counters;
use vgpu::exec::launch::{Depth, End, Launch, LaunchError, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::GlobalMemory;
use vgpu::{Arch, Arg, Module};

/// Instructions of the beginning.
pub(super) const FIRST: u64 = 500_000;
/// Instructions up to which a block is executed whole.
const LONG: f64 = 3_000_000.0;
/// Instructions of a shorter block at most.
const SHORT: u64 = 125_000;
/// How far the third length may be from the line through the first two.
const STRAIGHT: f64 = 0.01;

/// A long block.
pub(super) struct Long {
    /// What its beginning did, as machine code and as PTX.
    pub(super) main: BlockTrace,
    pub(super) plain: BlockTrace,
    /// How much more the whole is.
    pub(super) ratio: f64,
    /// What the whole counts as PTX.
    pub(super) counters: Counters,
    /// What the shorter blocks showed, where it is no proof.
    pub(super) differs: Option<Proof>,
}

/// A number among the arguments that decides how long a block runs.
struct Number {
    index: usize,
    value: u64,
    /// The smaller one.
    least: u64,
    /// Instructions of the block at `least` and at twice that.
    lengths: [f64; 2],
}

impl Number {
    /// Steps of `least` from the first length to the whole.
    fn steps(&self) -> f64 {
        self.value as f64 / self.least as f64 - 1.0
    }

    /// Instructions of the whole block.
    fn whole(&self) -> f64 {
        self.lengths[0] + (self.lengths[1] - self.lengths[0]) * self.steps()
    }
}

/// A launch with another number.
fn with(template: &Launch, index: usize, value: u64) -> Launch {
    let mut changed = template.clone();
    if let Some(Arg::Bytes(bytes)) = changed.args.get_mut(index) {
        let count = bytes.len();
        bytes.copy_from_slice(&value.to_le_bytes()[..count]);
    }
    changed
}

/// Instructions that a block came to, by their place.
fn visited(trace: &BlockTrace, count: usize) -> Vec<bool> {
    let mut visited = vec![false; count];
    for run in trace.warps.iter().flat_map(|warp| &warp.runs) {
        visited[run.start as usize..run.end as usize].fill(true);
    }
    visited
}

/// What is known of a block that has not ended after [`FIRST`] instructions; `None` where it must be
/// executed whole. Memory is left as it was, but for what shorter blocks store where it need not be.
///
/// # Errors
/// A launch that is refused.
pub(super) fn long(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    (template, begun): (&Launch, &Begun),
) -> Result<Option<Long>, MachineError> {
    let Some(main) = begun.trace().filter(|_| !template.cooperative) else {
        return Ok(None);
    };
    let seen = visited(main, machine.code().len());
    let Some(number) = deciding(machine, module, memory, template, &seen) else {
        return Ok(None);
    };
    let ratio = number.whole() / begun.instructions() as f64;
    if number.whole() <= LONG || ratio <= 1.0 {
        return Ok(None);
    }
    let mut counters = Vec::new();
    let mut differs = None;
    for times in [1, 2] {
        let shorter = with(template, number.index, number.least * times);
        let (report, proof) = prove(machine, module, memory, arch, &shorter)?;
        counters.push(report.counters);
        match proof {
            Proof::Same(_) | Proof::Rounded { .. } => {}
            Proof::Differs(..) => differs = differs.or(Some(proof)),
            Proof::Unfinished(_) | Proof::NotAvailable(_) => return Ok(None),
        }
    }
    let counted = counters[0].extrapolated(counters[1], number.steps());
    if counters[0].global_store_bytes == 0 || !follows(module, memory, arch, template, &counted)? {
        return Ok(None);
    }
    let mut first = some(template, Vec::new(), FIRST);
    first.blocks = template.blocks.clone();
    first.trace = true;
    let report = launch(module, memory, arch, &first)?;
    let Some(mut plain) = report.traces.into_iter().next() else {
        return Ok(None);
    };
    // Accesses that were not made count as such that were not kept.
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

/// Whether the whole block takes a way as long as it is said to count.
fn follows(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    counted: &Counters,
) -> Result<bool, LaunchError> {
    let mut way = some(template, Vec::new(), template.instruction_budget);
    way.blocks = template.blocks.clone();
    way.depth = Depth::Control;
    let report = launch(module, memory, arch, &way)?;
    let passed = report.counters.warp_instructions as f64;
    let said = counted.warp_instructions as f64;
    Ok(report.end == End::Completed && (passed - said).abs() <= STRAIGHT * said)
}

/// The number that decides the length, if one alone does, in a straight line.
fn deciding(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    template: &Launch,
    seen: &[bool],
) -> Option<Number> {
    let length = |memory: &mut GlobalMemory, index: usize, value: u64, budget: u64| {
        let mut shorter = with(template, index, value);
        shorter.instruction_budget = budget;
        let begun = Begun::of(machine, module, memory, &shorter);
        let ended = begun.ended().then(|| begun.instructions() as f64)?;
        let all = visited(begun.trace()?, seen.len());
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
        // No bits of a float, no mask.
        if !(64..1 << 32).contains(&value) || value > 0x7fff_ffff {
            continue;
        }
        // From the shortest on: a block that does not end then is not made shorter by this number.
        let smaller = [12, 10, 8, 6, 4].map(|shift| value >> shift);
        for least in smaller.into_iter().filter(|v| *v > 0) {
            let (first, covers) = match length(memory, index, least, SHORT) {
                Some(known) => known,
                None => break,
            };
            if !covers {
                continue;
            }
            let (second, _) = length(memory, index, least * 2, SHORT * 4)?;
            let (third, _) = length(memory, index, least * 3, SHORT * 4)?;
            let straight = (third - (2.0 * second - first)).abs() <= STRAIGHT * third;
            // Less than a tile of the loop is as long as twice that.
            if straight && second > first {
                return Some(Number {
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
