//! Which blocks of a launch are executed for the model, and what they leave.
//!
//! One block is executed whole, as machine code and as PTX: the first says what its warps did, and
//! both must leave the same memory. That it stands for all is not taken for granted: where a
//! branch depends on the block's index, the ways of blocks all over the grid are followed (control
//! flow alone is executed), the one nearest to their mean is the one that is traced, and its work is
//! scaled to the mean. What blocks that run at the same time share is read off the addresses that
//! some of them load from at first.

use super::code::{UNITS, executed};
use super::dependence::deciding;
use super::long::{FIRST, long};
use super::sharing::{Sharing, survey};
use sass_machine::{Begun, Difference, Machine, MachineError, Proof, prove_begun};
use std::collections::BTreeMap;
use vgpu::Arch;
use vgpu::Module;
use vgpu::counters::Counters;
use vgpu::exec::launch::{BlockSet, Checks, Depth, End, Launch, LaunchError, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::{BufferId, GlobalMemory};

/// Instructions of a warp for which the neighbours of the sampled block run.
const BESIDE: u64 = 8192;
/// Blocks whose ways are followed, where blocks differ.
const WAYS: u64 = 24;
/// Blocks that look alike before the others are taken to do as well.
const ALIKE: usize = 5;
/// Instructions, most of them passed over, after which no more ways are followed. (Not a time: the
/// same kernel is always predicted the same.)
const FOLLOWED: u64 = 8_000_000;

/// Traces of one block of a grid and of the beginning of those beside it.
#[derive(Debug, Clone)]
pub struct Traces {
    /// What the machine code did.
    pub(crate) main: BlockTrace,
    /// The same block as PTX: which bytes it touched.
    pub(crate) plain: BlockTrace,
    /// The next block along x and along y, where there is one, as PTX.
    pub(crate) beside: [Option<BlockTrace>; 2],
    /// What the block did, scaled to the mean of all blocks.
    pub counters: Counters,
    /// Whether the block ran to its end, or its whole is known from its beginning.
    pub complete: bool,
    /// How many times more the block does than was executed of it: 1 where it was executed whole.
    pub beyond: f64,
    /// Instructions that the block's warps executed, by opcode; what they repeated while they waited for
    /// others counts once.
    pub by_opcode: BTreeMap<&'static str, u64>,
    /// The same by unit, in the order of [`sass::Unit`].
    pub(crate) by_unit: [u64; UNITS],
    /// Bytes of all buffers: no launch moves more between memory and chip without asking twice.
    pub(crate) allocated: u64,
    /// How the block's work compares to that of others.
    pub(crate) unequal: Unequal,
    /// What blocks that run at the same time share.
    pub(crate) sharing: Sharing,
    /// Buffers with which the block takes another way, or asks for other addresses, when they hold
    /// other data.
    pub decided_by: Vec<BufferId>,
}

/// What executing the sampled blocks gave.
#[derive(Debug, Clone)]
pub enum Sampled {
    /// Both levels agree, or were cut short.
    Traced(Box<Traces>),
    /// There is nothing that a prediction could rest on.
    Withheld(Withheld),
}

/// Why nothing is predicted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Withheld {
    /// The grid has no block.
    #[error("no block of the grid was executed")]
    Empty,
    /// The machine code cannot be executed.
    #[error("{0}")]
    Machine(MachineError),
    /// Machine code and PTX leave different memory.
    #[error(
        "machine code and PTX leave different memory: {words} words of block {block}{}",
        first_of(.differences)
    )]
    Differs {
        /// Linear index of the block.
        block: u64,
        /// Words that differ.
        words: usize,
        /// The first of them.
        differences: Vec<Difference>,
    },
}

fn first_of(differences: &[Difference]) -> String {
    differences.first().map_or_else(String::new, |first| {
        let Difference { buffer, offset, ptx, machine } = first;
        format!(
            ", first `{buffer}` at byte {offset}, which is {ptx:#010x} by the PTX and {machine:#010x} \
             by the machine code"
        )
    })
}

/// Work of a grid's blocks, in units of the traced one's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unequal {
    /// The mean of all.
    pub(crate) mean: f64,
    /// The most of one.
    pub(crate) most: f64,
    /// Some could not be followed.
    pub(crate) unknown: bool,
}

/// A launch of some blocks for the model: without checks, on this thread.
pub(super) fn some(template: &Launch, blocks: Vec<u64>, budget: u64) -> Launch {
    let mut launch = template.clone();
    launch.blocks = BlockSet::List(blocks);
    launch.checks = Checks {
        races: false,
        uninitialized: false,
        ..Checks::default()
    };
    launch.threads = 1;
    launch.instruction_budget = budget;
    launch
}

/// What some blocks do in their warps' first `each` instructions, as far as `depth` has it executed.
pub(super) fn beginnings(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    blocks: Vec<u64>,
    (each, depth): (u64, Depth),
) -> Result<Vec<BlockTrace>, LaunchError> {
    let warps = u64::from(template.block.iter().product::<u32>()).div_ceil(32);
    let mut launched = some(template, blocks, each * warps);
    launched.trace = true;
    launched.depth = depth;
    Ok(launch(module, memory, arch, &launched)?.traces)
}

/// Executes the blocks that the model needs, without checks, of a grid of which `together` are on
/// the device at once. Memory is written as by these blocks.
///
/// # Errors
/// A launch that is refused.
pub fn trace(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    together: u64,
) -> Result<Sampled, LaunchError> {
    let allocated = memory.allocated();
    // A grid without blocks is refused when it is launched.
    let [x, y, _] = template.grid.map(|extent| u64::from(extent.max(1)));
    let (chosen, unequal) = representative(module, memory, arch, template)?;
    let sharing = survey(module, memory, arch, template, (chosen, together))?;
    let whole = Launch {
        trace: true,
        ..some(template, vec![chosen], template.instruction_budget)
    };
    let block = match executed_block(machine, module, memory, arch, &whole)? {
        Ok(block) => block,
        Err(withheld) => return Ok(Sampled::Withheld(withheld)),
    };
    let Block {
        main,
        plain,
        counters,
        complete,
        ratio,
    } = block;
    let counters = counters.scaled(unequal.mean);
    let unequal = Unequal {
        mean: unequal.mean * ratio,
        most: unequal.most * ratio,
        ..unequal
    };
    let (mut by_opcode, by_unit) = executed(machine.code(), &main);
    for count in by_opcode.values_mut() {
        *count = (*count as f64 * ratio).round() as u64;
    }
    let mut limited = template.clone();
    if ratio > 1.0 {
        limited.instruction_budget = FIRST;
    }
    let decided_by = deciding(module, memory, arch, &limited, &plain)?;
    let mut beside = [None, None];
    let places = [
        (chosen % x + 1 < x).then_some(chosen + 1),
        (chosen / x % y + 1 < y).then_some(chosen + x),
    ];
    for (trace, place) in beside.iter_mut().zip(places) {
        if let Some(place) = place {
            let wanted = (BESIDE, Depth::Whole);
            let traces = beginnings(module, memory, arch, template, vec![place], wanted)?;
            *trace = traces.into_iter().next();
        }
    }
    Ok(Sampled::Traced(Box::new(Traces {
        main,
        plain,
        beside,
        counters,
        complete,
        beyond: ratio,
        by_opcode,
        by_unit,
        allocated,
        unequal,
        sharing,
        decided_by,
    })))
}

/// What the sampled block did.
struct Block {
    main: BlockTrace,
    plain: BlockTrace,
    /// Of the whole block as PTX.
    counters: Counters,
    complete: bool,
    /// How much more the whole block does than the traces hold.
    ratio: f64,
}

/// Executes the sampled block at both levels, or its beginning where that tells enough.
fn executed_block(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    whole: &Launch,
) -> Result<Result<Block, Withheld>, LaunchError> {
    let first = some_of(whole, FIRST);
    let mut found = Begun::of(machine, module, memory, &first);
    // A block that waits for others does so for ever here, where it is alone.
    let whole = if found.stopped() && found.waits() {
        &first
    } else {
        whole
    };
    if found.stopped() && whole.instruction_budget > FIRST {
        match long(machine, module, memory, arch, (whole, &found)) {
            Ok(Some(long)) => {
                return Ok(match long.differs {
                    Some(Proof::Differs(words, kept)) => Err(differ(whole, words, kept)),
                    _ => Ok(Block {
                        main: long.main,
                        plain: long.plain,
                        counters: long.counters,
                        complete: true,
                        ratio: long.ratio,
                    }),
                });
            }
            Ok(None) => found = Begun::of(machine, module, memory, whole),
            Err(MachineError::Launch(refused)) => return Err(refused),
            Err(other) => return Ok(Err(Withheld::Machine(other))),
        }
    }
    let (report, proof) = match prove_begun(found, module, memory, (arch, whole)) {
        Ok(found) => found,
        Err(MachineError::Launch(refused)) => return Err(refused),
        Err(other) => return Ok(Err(Withheld::Machine(other))),
    };
    let execution = match proof {
        Proof::Same(execution) | Proof::Rounded { execution, .. } => execution,
        Proof::Unfinished(execution) => execution,
        Proof::NotAvailable(error) => return Ok(Err(Withheld::Machine(error))),
        Proof::Differs(words, kept) => return Ok(Err(differ(whole, words, kept))),
    };
    let complete = report.end == End::Completed && execution.complete;
    let plain = report.traces.into_iter().next();
    let (Some(plain), Some(main)) = (plain, execution.traces.into_iter().next()) else {
        return Ok(Err(Withheld::Empty));
    };
    Ok(Ok(Block {
        main,
        plain,
        counters: report.counters,
        complete,
        ratio: 1.0,
    }))
}

/// The same launch with so many instructions a block at most.
fn some_of(whole: &Launch, budget: u64) -> Launch {
    let mut part = whole.clone();
    part.instruction_budget = budget.min(whole.instruction_budget);
    part
}

fn differ(whole: &Launch, words: usize, differences: Vec<Difference>) -> Withheld {
    let block = match &whole.blocks {
        BlockSet::List(blocks) => blocks.first().copied(),
        BlockSet::All => None,
    };
    Withheld::Differs {
        block: block.unwrap_or(0),
        words,
        differences,
    }
}

/// The block that is traced, and how others compare to it.
fn representative(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
) -> Result<(u64, Unequal), LaunchError> {
    let [x, y, z] = template.grid.map(u64::from);
    let middle = (x.max(1) - 1) / 2 + x * ((y.max(1) - 1) / 2 + y * ((z.max(1) - 1) / 2));
    let blocks = x * y * z;
    let equal = |unknown| Unequal {
        mean: 1.0,
        most: 1.0,
        unknown,
    };
    let way = module.way(&template.entry)?;
    if !way.by_block() || blocks < 2 {
        return Ok((middle, equal(false)));
    }
    if way.by_others() {
        return Ok((middle, equal(true)));
    }
    let mut ways: Vec<(u64, f64)> = Vec::new();
    let mut followed = 0;
    for block in spread(blocks, middle) {
        let alike = ways.len() >= ALIKE
            && ways
                .iter()
                .all(|(_, work)| (work / ways[0].1 - 1.0).abs() < 0.01);
        if alike || ways.len() >= ALIKE && followed > FOLLOWED {
            break;
        }
        let mut one = some(template, vec![block], template.instruction_budget);
        one.depth = Depth::Control;
        let report = launch(module, memory, arch, &one)?;
        if report.end != End::Completed {
            break;
        }
        followed += report.counters.warp_instructions;
        ways.push((block, report.counters.warp_instructions.max(1) as f64));
    }
    if ways.len() < ALIKE.min(blocks as usize) {
        return Ok((middle, equal(true)));
    }
    let mean = ways.iter().map(|(_, work)| work).sum::<f64>() / ways.len() as f64;
    let most = ways.iter().map(|(_, work)| *work).fold(0.0, f64::max);
    // Among those nearest to the mean, the one nearest to the middle of the grid.
    let key =
        |(block, work): &(u64, f64)| ((work / mean - 1.0).abs() * 100.0, block.abs_diff(middle));
    let order = |a: &(f64, u64), b: &(f64, u64)| (a.0 as u64, a.1).cmp(&(b.0 as u64, b.1));
    let nearest = ways.iter().min_by(|a, b| order(&key(a), &key(b)));
    let Some((chosen, work)) = nearest.copied() else {
        return Ok((middle, equal(true)));
    };
    let unequal = Unequal {
        mean: mean / work,
        most: most / work,
        unknown: false,
    };
    Ok((chosen, unequal))
}

/// Blocks all over a grid, each once: the middle, the ends, then by the golden ratio, which meets
/// every part of the grid and of any pattern that repeats along it evenly (Weyl's sequence).
fn spread(blocks: u64, middle: u64) -> Vec<u64> {
    let golden = (0..WAYS * 2).map(|i| {
        let part = (i as f64 * 0.618_033_988_749_895 + 0.29).fract();
        (part * blocks as f64) as u64
    });
    let mut chosen: Vec<u64> = Vec::new();
    for block in [middle, 0, blocks - 1].into_iter().chain(golden) {
        if chosen.len() < WAYS as usize && block < blocks && !chosen.contains(&block) {
            chosen.push(block);
        }
    }
    chosen
}
