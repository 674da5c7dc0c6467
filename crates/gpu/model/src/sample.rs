//! Choice and execution of the blocks of a launch for the model.
//!
//! One block is executed whole, as SASS and as PTX: SASS yields the work of its warps, and both
//! must leave the same memory. If a branch depends on the block index, the block may not represent
//! the grid. The sampler then executes the control flow of blocks all over the grid, traces the
//! block nearest to their mean, and scales its work to the mean. The addresses of the first loads
//! of some blocks show the bytes that concurrent blocks share.

use super::blocks::{cluster_blocks, first_of_pair, launch_blocks, trace_beginnings};
use super::code::{UNITS, executed, has_pairs};
use super::dependence::find_deciding_buffers;
use super::handed_on::HandedOn;
use super::imbalance::{Imbalance, MAX_FOLLOWED_INSTRUCTIONS, nearest_to_mean};
use super::long::{BEGINNING_INSTRUCTIONS, extrapolate_long};
use super::queue::find_share;
use super::reuse::{Reuse, survey};
use sass_machine::{Difference, Machine, MachineError, Proof, SassRun, prove_run};
use std::collections::BTreeMap;
use vgpu::Arch;
use vgpu::Module;
use vgpu::counters::{Class, Counters};
use vgpu::exec::launch::{BlockSet, Depth, End, Launch, LaunchError, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::{BufferId, GlobalMemory};

/// Instructions per warp for which the neighbours of the sampled block run.
const NEIGHBOUR_INSTRUCTIONS: u64 = 8192;
/// Number of blocks whose paths are followed if blocks differ.
const MAX_PATHS: u64 = 24;
/// The same where some blocks do nothing.
const MAX_PATHS_BESIDE_IDLE: u64 = 240;
/// Instructions of a warp that finds out that it has nothing to do, at most.
const MAX_IDLE_INSTRUCTIONS: u64 = 64;
/// Difference of the work of blocks that count as equal.
const EQUAL_SHARE: f64 = 0.01;
/// Number of equal paths after which the other blocks count as equal.
const MIN_EQUAL_PATHS: usize = 5;

/// Traces of one block of a grid and of the beginning of its neighbours.
#[derive(Debug, Clone)]
pub struct Traces {
    /// Trace of the block as SASS.
    pub(crate) main: BlockTrace,
    /// Trace of the same block as PTX, with the bytes it accessed.
    pub(crate) plain: BlockTrace,
    /// PTX traces of the next blocks along x and y, if they exist.
    pub(crate) beside: [Option<BlockTrace>; 2],
    /// Counters of the block, scaled to the mean of all blocks.
    pub counters: Counters,
    /// True if the block ran to its end, or its whole is extrapolated from its beginning.
    pub complete: bool,
    /// Ratio of the block's work to the executed part: 1 for a block executed whole.
    pub beyond: f64,
    /// Instructions of the block's warps by opcode. Repetitions while waiting for other warps count
    /// once.
    pub by_opcode: BTreeMap<&'static str, u64>,
    /// Instructions of the block's warps by unit, in the order of [`sass::Unit`].
    pub(crate) by_unit: [u64; UNITS],
    /// Bytes of all buffers, an upper bound of the traffic without repeated accesses.
    pub(crate) allocated: u64,
    /// Work of the block relative to other blocks.
    pub(crate) imbalance: Imbalance,
    /// Data shared by concurrent blocks.
    pub(crate) reuse: Reuse,
    /// Buffers whose data decide the block's control flow or addresses.
    pub decided_by: Vec<BufferId>,
    /// Blocks of a cluster, 1 without clusters.
    pub cluster_blocks: u32,
}

/// Result of executing the sampled blocks.
#[derive(Debug, Clone)]
pub enum Sampled {
    /// Traces; SASS and PTX agree, or were cut short.
    Traced(Box<Traces>),
    /// No basis for a prediction.
    Withheld(Withheld),
}

/// Reason for a missing prediction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Withheld {
    /// Empty grid.
    #[error("the grid is empty")]
    Empty,
    /// The SASS cannot be executed.
    #[error("{0}")]
    Machine(MachineError),
    /// SASS and PTX leave different memory.
    #[error(
        "SASS and PTX leave different memory: {words} words of block {block}{}",
        first_of(.differences)
    )]
    Differs {
        /// Linear index of the block.
        block: u64,
        /// Number of differing words.
        words: usize,
        /// The first differing words.
        differences: Vec<Difference>,
    },
}

fn first_of(differences: &[Difference]) -> String {
    differences.first().map_or_else(String::new, |first| {
        let Difference {
            buffer,
            offset,
            ptx,
            machine,
        } = first;
        format!(
            ", first `{buffer}` at byte {offset}: {ptx:#010x} after the PTX, {machine:#010x} after \
             the SASS"
        )
    })
}

/// Executes the blocks that the model needs, without checks; `together` blocks of the grid are on
/// the device at once. Memory keeps the stores of these blocks.
///
/// # Errors
/// A refused launch.
pub fn trace(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    together: u64,
) -> Result<Sampled, LaunchError> {
    let template = &Launch {
        plain_numbers: true,
        ..template.clone()
    };
    let allocated = memory.allocated();
    // The launch itself reports a grid without blocks as an error.
    let [x, y, _] = template.grid.map(|extent| u64::from(extent.max(1)));
    let state = HandedOn::save(module, memory);
    let (mut chosen, imbalance, turn) = representative(module, memory, arch, template, &state)?;
    let template = &Launch {
        turn,
        ..template.clone()
    };
    if has_pairs(machine.code()) {
        chosen = first_of_pair(module, template, chosen);
    }
    let reuse = survey(module, memory, arch, template, chosen, together)?;
    state.restore(memory);
    let whole = Launch {
        trace: true,
        ..launch_blocks(template, vec![chosen], template.instruction_budget)
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
    let counters = counters.scaled(imbalance.mean);
    let imbalance = Imbalance {
        mean: imbalance.mean * ratio,
        most: imbalance.most * ratio,
        ..imbalance
    };
    let (mut by_opcode, by_unit) = executed(machine.code(), &main);
    for count in by_opcode.values_mut() {
        *count = (*count as f64 * ratio).round() as u64;
    }
    let mut limited = template.clone();
    if ratio > 1.0 {
        limited.instruction_budget = BEGINNING_INSTRUCTIONS;
    }
    let decided_by = find_deciding_buffers(module, memory, arch, &limited, &plain)?;
    let mut beside = [None, None];
    let places = [
        (chosen % x + 1 < x).then_some(chosen + 1),
        (chosen / x % y + 1 < y).then_some(chosen + x),
    ];
    for (trace, place) in beside.iter_mut().zip(places) {
        if let Some(place) = place {
            state.restore(memory);
            let (each, depth) = (NEIGHBOUR_INSTRUCTIONS, Depth::Whole);
            // It takes other numbers from a queue.
            let blocks = u64::from(cluster_blocks(module, template)).max(1);
            let distance = place / blocks - chosen / blocks;
            let other = Launch {
                turn: turn.map(|rank| rank + distance),
                ..template.clone()
            };
            let traces = trace_beginnings(module, memory, arch, &other, vec![place], each, depth)?;
            // All blocks of its cluster were executed.
            *trace = traces
                .into_iter()
                .find(|trace| u64::from(trace.block) == place);
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
        imbalance,
        reuse,
        decided_by,
        cluster_blocks: cluster_blocks(module, template),
    })))
}

/// Result of the sampled block.
struct Block {
    main: BlockTrace,
    plain: BlockTrace,
    /// Counters of the whole block, from PTX.
    counters: Counters,
    complete: bool,
    /// Ratio of the whole block to its traces.
    ratio: f64,
}

/// Executes the sampled block as SASS and PTX, or its beginning if that is sufficient.
fn executed_block(
    machine: &Machine,
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    whole: &Launch,
) -> Result<Result<Block, Withheld>, LaunchError> {
    let first = with_budget(whole, BEGINNING_INSTRUCTIONS);
    let mut found = SassRun::execute(machine, module, memory, &first);
    // A block that waits for other blocks never ends here, where it runs alone.
    let whole = if found.stopped() && found.waits() {
        &first
    } else {
        whole
    };
    if found.stopped() && whole.instruction_budget > BEGINNING_INSTRUCTIONS {
        match extrapolate_long(machine, module, memory, arch, whole, &found) {
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
            Ok(None) => found = SassRun::execute(machine, module, memory, whole),
            Err(MachineError::Launch(refused)) => return Err(refused),
            Err(other) => return Ok(Err(Withheld::Machine(other))),
        }
    }
    let (report, proof) = match prove_run(found, module, memory, arch, whole) {
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
    // All blocks of a cluster were executed; the chosen one is the sample.
    let chosen = chosen_block(whole);
    let is_chosen = |trace: &BlockTrace| chosen.is_none_or(|block| block == u64::from(trace.block));
    let plain = report.traces.into_iter().find(is_chosen);
    let main = execution.traces.into_iter().find(is_chosen);
    let (Some(plain), Some(main)) = (plain, main) else {
        return Ok(Err(Withheld::Empty));
    };
    // The counters are those of a whole cluster.
    let share = 1.0 / report.counters.blocks.max(1) as f64;
    Ok(Ok(Block {
        main,
        plain,
        counters: Counters {
            blocks: 1,
            ..report.counters.scaled(share)
        },
        complete,
        ratio: 1.0,
    }))
}

/// Returns the block that is the sample.
fn chosen_block(whole: &Launch) -> Option<u64> {
    match &whole.blocks {
        BlockSet::List(blocks) => blocks.first().copied(),
        BlockSet::All => None,
    }
}

/// Returns the same launch with an instruction limit per block.
fn with_budget(whole: &Launch, budget: u64) -> Launch {
    let mut part = whole.clone();
    part.instruction_budget = budget.min(whole.instruction_budget);
    part
}

fn differ(whole: &Launch, words: usize, differences: Vec<Difference>) -> Withheld {
    Withheld::Differs {
        block: chosen_block(whole).unwrap_or(0),
        words,
        differences,
    }
}

/// Selects the block to trace and its turn at a queue, and compares the others with it.
fn representative(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    state: &HandedOn,
) -> Result<(u64, Imbalance, Option<u64>), LaunchError> {
    let [x, y, z] = template.grid.map(u64::from);
    let middle = (x.max(1) - 1) / 2 + x * ((y.max(1) - 1) / 2 + y * ((z.max(1) - 1) / 2));
    let blocks = x * y * z;
    let equal = |unknown| Imbalance {
        mean: 1.0,
        most: 1.0,
        unknown,
        idle: 0.0,
    };
    let slice = module.control_dependence(&template.entry)?;
    if blocks < 2 {
        return Ok((middle, equal(false), None));
    }
    // A block that runs alone does not take the path that it takes among others.
    if slice.depends_on_other_blocks() {
        if let Some((turn, imbalance)) = find_share(module, memory, arch, template, middle, state)?
        {
            return Ok((middle, imbalance, Some(turn)));
        }
        if slice.depends_on_block() {
            return Ok((middle, equal(true), None));
        }
    }
    if !slice.depends_on_block() {
        return Ok((middle, equal(false), None));
    }
    let follow = Follow {
        module,
        arch,
        template,
        state,
    };
    let mut paths = follow.paths(memory, &spread(blocks, middle, MAX_PATHS))?;
    if paths.len() < MIN_EQUAL_PATHS.min(blocks as usize) {
        return Ok((middle, equal(true), None));
    }
    let idle = follow.idle_work(memory, &paths)?;
    if idle.is_some() {
        // The share of busy blocks decides the traffic.
        paths = follow.paths(memory, &spread(blocks, middle, MAX_PATHS_BESIDE_IDLE))?;
    }
    let all = paths.len() as f64;
    paths.retain(|(_, work)| idle.is_none_or(|idle| *work > idle));
    let (block, imbalance) = nearest_to_mean(&paths, all, middle).unwrap_or((middle, equal(true)));
    Ok((block, imbalance, None))
}

/// Execution of the control flow of some blocks.
struct Follow<'a> {
    module: &'a Module,
    arch: &'a Arch,
    template: &'a Launch,
    state: &'a HandedOn,
}

impl Follow<'_> {
    /// Returns the blocks that were followed, each with its instructions.
    fn paths(
        &self,
        memory: &mut GlobalMemory,
        blocks: &[u64],
    ) -> Result<Vec<(u64, f64)>, LaunchError> {
        let mut paths: Vec<(u64, f64)> = Vec::new();
        let mut followed = 0;
        for block in blocks.iter().copied() {
            let alike = paths.len() >= MIN_EQUAL_PATHS
                && paths
                    .iter()
                    .all(|(_, work)| (work / paths[0].1 - 1.0).abs() < EQUAL_SHARE);
            if alike || paths.len() >= MIN_EQUAL_PATHS && followed > MAX_FOLLOWED_INSTRUCTIONS {
                break;
            }
            let budget = self.template.instruction_budget;
            let mut one = launch_blocks(self.template, vec![block], budget);
            one.depth = Depth::Control;
            let report = launch(self.module, memory, self.arch, &one)?;
            self.state.restore(memory);
            // A path that was cut short says nothing of the block's work.
            if report.end != End::Completed {
                break;
            }
            followed += report.counters.warp_instructions;
            paths.push((block, report.counters.warp_instructions.max(1) as f64));
        }
        Ok(paths)
    }

    /// Returns the instructions of the blocks that exit at once, where others do more: those of a grid
    /// that is larger than its data.
    fn idle_work(
        &self,
        memory: &mut GlobalMemory,
        paths: &[(u64, f64)],
    ) -> Result<Option<f64>, LaunchError> {
        let least = paths.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let most = paths.iter().map(|(_, work)| *work).fold(0.0, f64::max);
        // Among equal blocks none is idle, however little they do.
        let Some((block, work)) = least.filter(|(_, work)| most > work * (1.0 + EQUAL_SHARE))
        else {
            return Ok(None);
        };
        let mut whole = launch_blocks(
            self.template,
            vec![*block],
            self.template.instruction_budget,
        );
        whole.trace = true;
        let report = launch(self.module, memory, self.arch, &whole)?;
        self.state.restore(memory);
        let counters = &report.counters;
        let warps = u64::from(self.template.block.iter().product::<u32>()).div_ceil(32);
        let memory_bytes = counters.global_load_bytes
            + counters.global_store_bytes
            + counters.shared_bytes
            + counters.local_bytes;
        let others = counters.class(Class::Atomic) + counters.barriers;
        let idle = report.end == End::Completed
            && memory_bytes + others == 0
            && counters.warp_instructions <= warps * MAX_IDLE_INSTRUCTIONS;
        Ok(idle.then_some(*work * (1.0 + EQUAL_SHARE)))
    }
}

/// Spreads distinct block indices over a grid: the middle, the ends, then golden-ratio steps. These
/// are equidistributed over the grid and over periodic patterns in it (Weyl's sequence).
fn spread(blocks: u64, middle: u64, most: u64) -> Vec<u64> {
    let golden = (0..most * 2).map(|i| {
        let part = (i as f64 * 0.618_033_988_749_895 + 0.29).fract();
        (part * blocks as f64) as u64
    });
    let mut chosen: Vec<u64> = Vec::new();
    for block in [middle, 0, blocks - 1].into_iter().chain(golden) {
        if chosen.len() < most as usize && block < blocks && !chosen.contains(&block) {
            chosen.push(block);
        }
    }
    chosen
}
