//! Prediction of one plan on one virtual GPU: memory, traces, the model.

use super::cache::PredictionCache;
use super::cases::keep;
use super::{DOUBTFUL, explain_work, interval, resident_blocks};
use gpu_model::{Estimate, Sampled, Shape, Traces, Withheld};
use sass_machine::{Machine, MachineError};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, Role};
use tuner_core::record::Verdict;
use tuner_core::units::Micros;
use tuner_judge::explanation::Explanation;
use tuner_judge::gate::generate;
use vgpu::{Arch, Arg, BufferId, Counters, GlobalMemory, Launch, Module};

/// Seed of the inputs.
const SEED: u64 = 0x5eed;
/// Buffers up to this size are filled as the space specifies, bytes. Larger floating-point buffers stay
/// zero and larger integer buffers repeat their beginning: their contents rarely affect a time, and filling
/// them would cost more than the model.
const FILLED_BYTES: u64 = 1 << 20;
/// Maximum instructions of the sampled block.
const MAX_INSTRUCTIONS: u64 = 60_000_000;
/// Candidates after which memory is reallocated, because modules leave their variables in it.
const USES_MAX: u32 = 256;

/// A predicted time and its explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Time of all launches.
    pub time: Micros,
    /// Explanation of the time.
    pub explanation: Explanation,
}

/// Memory laid out for one list of arguments.
struct ArgumentMemory {
    arguments: Vec<PlanArgument>,
    memory: GlobalMemory,
    buffers: Vec<Option<BufferId>>,
    /// Names of the buffers that do not, or not entirely, contain the data of the space.
    made_up: Vec<(BufferId, String)>,
    uses: u32,
}

/// Predicts times on one virtual GPU. Candidates of the same problem share its memory.
pub struct Forecaster {
    arch: &'static Arch,
    memory_bytes: u64,
    prepared: Option<ArgumentMemory>,
    /// The folder of caches, also used for cases.
    caches: Option<PathBuf>,
    kept: Option<PredictionCache>,
}

impl ArgumentMemory {
    fn address(&self, argument: usize) -> Option<u64> {
        let buffer = self.buffers.get(argument).copied().flatten()?;
        Some(self.memory.address(buffer))
    }
}

/// One launch, predicted.
struct LaunchForecast {
    /// Blocks of the whole grid.
    blocks: u64,
    /// Counters of the sampled blocks.
    counters: Counters,
    estimate: Estimate,
}

/// Multiprocessor resources of a block of a launch.
#[derive(Debug, Clone, Copy)]
struct BlockResources {
    /// Registers per thread.
    registers: u32,
    /// Shared memory, static and dynamic, bytes.
    shared_bytes: u64,
    /// Resident blocks of a multiprocessor.
    resident: u64,
}

impl BlockResources {
    fn new(arch: &Arch, plan: &Plan, launch: &PlanLaunch) -> Self {
        let needs = plan.code.needs(&launch.entry);
        let shared_bytes = u64::from(launch.shared_bytes) + needs.static_shared_bytes;
        Self {
            registers: needs.registers,
            shared_bytes,
            resident: resident_blocks(arch, launch.threads(), needs.registers, shared_bytes),
        }
    }
}

fn refused(detail: impl Into<String>) -> Judgement {
    Judgement::new(Verdict::LaunchFailed, detail)
}

fn unavailable(why: &MachineError) -> Judgement {
    Judgement::new(
        Verdict::Unsupported,
        format!("prediction not available: {why}"),
    )
}

impl Forecaster {
    /// Creates a forecaster for `arch` with a limit of host memory.
    #[must_use]
    pub fn new(arch: &'static Arch, memory_bytes: u64) -> Self {
        Self {
            arch,
            memory_bytes,
            prepared: None,
            caches: None,
            kept: None,
        }
    }

    /// Caches predictions, and saves cases in which SASS and PTX produce different memory contents, in this
    /// folder, which need not exist.
    #[must_use]
    pub fn keeping(mut self, folder: Option<PathBuf>) -> Self {
        self.kept = folder.clone().and_then(PredictionCache::new);
        self.caches = folder;
        self
    }

    /// Predicts the time of a plan's launches.
    ///
    /// # Errors
    /// PTX and SASS that the virtual GPU does not support or that produce different memory contents,
    /// launches that a GPU rejects, buffers that do not fit.
    pub fn forecast(&mut self, plan: &Plan) -> Result<Forecast, Judgement> {
        let Some(kept) = self.kept.clone() else {
            return self.replayed(plan);
        };
        let key = kept.key(self.arch, plan);
        if let Some(known) = key.as_ref().and_then(|key| kept.read(key)) {
            return Ok(known);
        }
        let forecast = self.replayed(plan)?;
        // A block may have been cut short by the clock.
        if let Some(key) = key.filter(|_| forecast.explanation.doubts.is_empty()) {
            kept.write(&key, &forecast);
        }
        Ok(forecast)
    }

    fn replayed(&mut self, plan: &Plan) -> Result<Forecast, Judgement> {
        // Contracted like the assembler's output: in half precision a unit in the last place is large.
        let module = Module::load_contracted(&plan.code.ptx)
            .map_err(|error| Judgement::new(Verdict::Unsupported, error.to_string()))?;
        let arch = self.arch;
        let prepared = self.prepare(plan)?;
        let mut pieces = Vec::with_capacity(plan.launches.len());
        for launch in &plan.launches {
            let room = BlockResources::new(arch, plan, launch);
            let machine = Machine::load(&plan.code.cubin, &launch.entry);
            let machine = machine.map_err(|error| unavailable(&error))?;
            let sampled = trace(arch, &module, &machine, prepared, plan, launch, room)?;
            let traces = match sampled {
                Sampled::Traced(traces) => *traces,
                Sampled::Withheld(why) => return Err(self.withheld(plan, launch, &why)),
            };
            let invented = invented(prepared, &traces);
            let mut found = piece(arch, &machine, launch, traces, room)?;
            found.estimate.doubts.extend(invented);
            pieces.push(found);
        }
        summary(arch, &pieces)
    }

    /// Explains a missing prediction; a case in which the two levels differ is saved.
    fn withheld(&self, plan: &Plan, launch: &PlanLaunch, why: &Withheld) -> Judgement {
        let mut detail = format!("prediction not available: {why}");
        if let (Withheld::Differs { .. }, Some(folder)) = (why, &self.caches) {
            detail.push_str("; ");
            detail.push_str(&match keep(folder, self.arch, plan, launch, why) {
                Ok(case) => format!("the case is kept in {}", case.display()),
                Err(error) => format!("{} cannot keep the case: {error}", folder.display()),
            });
        }
        Judgement::new(Verdict::Unsupported, detail)
    }

    /// Returns memory for the plan's arguments; reuses that of the last plan with the same
    /// arguments.
    fn prepare(&mut self, plan: &Plan) -> Result<&mut ArgumentMemory, Judgement> {
        let fits = |p: &ArgumentMemory| p.arguments == plan.arguments && p.uses < USES_MAX;
        if !self.prepared.as_ref().is_some_and(fits) {
            // Freed first: the old and the new memory may not fit at once.
            self.prepared = None;
            self.prepared = Some(fresh(plan, self.memory_bytes, self.arch)?);
        }
        let prepared = self.prepared.as_mut();
        let prepared = prepared.ok_or_else(|| refused("no memory"))?;
        prepared.uses += 1;
        Ok(prepared)
    }
}

fn fresh(plan: &Plan, limit: u64, arch: &Arch) -> Result<ArgumentMemory, Judgement> {
    let arguments = &plan.arguments;
    let mut memory = GlobalMemory::new(limit);
    let mut buffers = Vec::with_capacity(arguments.len());
    let mut made_up = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        if argument.role == Role::Scalar {
            buffers.push(None);
            continue;
        }
        let buffer = memory.alloc(argument.bytes(), &argument.name);
        let buffer =
            buffer.map_err(|error| Judgement::new(Verdict::OutOfMemory, error.to_string()))?;
        if argument.role.is_filled() {
            let whole = match (&argument.fill, &plan.generators) {
                (Fill::Kernel(entry), Some(code)) => {
                    generated(&mut memory, buffer, argument, entry, code, arch)?
                }
                _ => fill(&mut memory, buffer, argument, index as u64)?,
            };
            if !whole {
                made_up.push((buffer, argument.name.clone()));
            }
        }
        buffers.push(Some(buffer));
    }
    Ok(ArgumentMemory {
        arguments: arguments.to_vec(),
        memory,
        buffers,
        made_up,
        uses: 0,
    })
}

/// Fills a buffer; returns whether all of it is as the space specifies.
fn fill(
    memory: &mut GlobalMemory,
    buffer: BufferId,
    argument: &PlanArgument,
    index: u64,
) -> Result<bool, Judgement> {
    let total = memory.len(buffer);
    let (element, rule) = (argument.element, &argument.fill);
    // If an element's value depends on its position, the beginning does not represent the rest.
    let drawn = matches!(
        rule,
        Fill::Normal { .. } | Fill::Uniform { .. } | Fill::Constant(_) | Fill::Sparse { .. }
    );
    let plain = drawn && argument.layout.is_none();
    if total > FILLED_BYTES && (plain && element.is_float() || *rule == Fill::Zeros) {
        return Ok(*rule == Fill::Zeros);
    }
    let whole = total <= FILLED_BYTES || !plain;
    let part = if whole {
        let content = argument.content(SEED, index);
        content.map_err(|why| refused(format!("the data of `{}`: {why}", argument.name)))?
    } else {
        let count = FILLED_BYTES / element.size() as u64;
        rule.bytes(element, SEED, index, count)
    };
    repeated(memory, buffer, &part);
    Ok(whole || matches!(rule, Fill::Constant(_)))
}

/// Repeats the bytes until the buffer is full.
#[expect(
    clippy::indexing_slicing,
    reason = "a part is at most as long as its piece"
)]
fn repeated(memory: &mut GlobalMemory, buffer: BufferId, part: &[u8]) {
    let (total, mut at) = (memory.len(buffer), 0);
    while at < total && !part.is_empty() {
        let length = (total - at).min(part.len() as u64);
        memory.write(buffer, at, &part[..length as usize]);
        at += length;
    }
}

/// Fills a buffer by a generator; for a large one only the beginning, which is repeated. Returns whether
/// all of it was generated.
fn generated(
    memory: &mut GlobalMemory,
    buffer: BufferId,
    argument: &PlanArgument,
    entry: &str,
    code: &Code,
    arch: &Arch,
) -> Result<bool, Judgement> {
    let told = |why: String| refused(format!("the generator of `{}`: {why}", argument.name));
    let module = Module::load(&code.ptx).map_err(|error| told(error.to_string()))?;
    let all = generate::elements(argument);
    let each = argument.bytes() / all.max(1);
    let count = all.min(FILLED_BYTES / each.max(1)).max(1);
    let shape = generate::launch(entry, all);
    let word = |value: u64| Arg::Bytes(value.to_le_bytes().to_vec());
    let args = vec![Arg::Buffer(buffer), word(all), word(SEED)];
    let mut launch = Launch::new(entry, shape.grid, shape.block, args);
    let blocks = count.div_ceil(u64::from(shape.block[0]));
    launch.blocks = vgpu::BlockSet::List((0..blocks).collect());
    launch.instruction_budget = MAX_INSTRUCTIONS;
    vgpu::launch(&module, memory, arch, &launch).map_err(|error| told(error.to_string()))?;
    if count < all {
        let mut part = memory.read(buffer);
        part.truncate(usize::try_from(count * each).unwrap_or(usize::MAX));
        repeated(memory, buffer, &part);
    }
    Ok(count == all)
}

/// Executes the blocks of one launch that the model needs.
fn trace(
    arch: &Arch,
    module: &Module,
    machine: &Machine,
    prepared: &mut ArgumentMemory,
    plan: &Plan,
    launch: &PlanLaunch,
    room: BlockResources,
) -> Result<Sampled, Judgement> {
    module
        .supported(&launch.entry)
        .map_err(|what| Judgement::new(Verdict::Unsupported, what.to_string()))?;
    let mut args = Vec::with_capacity(launch.arguments.len());
    for index in &launch.arguments {
        let argument = plan.arguments.get(*index);
        let argument = argument.ok_or_else(|| refused(format!("no argument {index}")))?;
        args.push(match prepared.buffers.get(*index).copied().flatten() {
            Some(buffer) => Arg::Buffer(buffer),
            None => {
                let bytes = argument.scalar_at(|at| prepared.address(at));
                Arg::Bytes(
                    bytes
                        .ok_or_else(|| refused(format!("`{}` points to nothing", argument.name)))?,
                )
            }
        });
    }
    for (index, variable) in plan.variables.iter().enumerate() {
        let bytes = variable.bytes(SEED, index, |at| prepared.address(at));
        let bytes = bytes.map_err(refused)?;
        // The gate rejects a variable of a different size.
        let set = module.set_variable(&mut prepared.memory, &variable.holds.name, &bytes);
        set.map_err(|error| refused(error.to_string()))?;
    }
    let mut template = Launch::new(&launch.entry, launch.grid, launch.block, args);
    template.dynamic_shared_bytes = launch.shared_bytes;
    template.cluster = launch.cluster;
    template.cooperative = launch.cooperative;
    template.instruction_budget = MAX_INSTRUCTIONS;
    let together = room.resident * u64::from(arch.sm_count);
    let memory = &mut prepared.memory;
    gpu_model::trace(machine, module, memory, arch, &template, together).map_err(|error| {
        let taken = launch.arguments.iter();
        let names = taken.filter_map(|index| Some(plan.arguments.get(*index)?.name.as_str()));
        refused(error.describe(&names.collect::<Vec<_>>()))
    })
}

/// Reports that control flow depends on data that are not from the space.
fn invented(prepared: &ArgumentMemory, traces: &Traces) -> Option<String> {
    let decides = |(buffer, _): &&(BufferId, String)| traces.decided_by.contains(buffer);
    let names = prepared.made_up.iter().filter(decides);
    let names: Vec<String> = names.map(|(_, name)| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "its way depends on the data of {}, of which there is more than 1 MiB and not all is as the \
             space says",
            names.join(" and ")
        )
    })
}

/// Predicts one launch.
fn piece(
    arch: &Arch,
    machine: &Machine,
    launch: &PlanLaunch,
    traces: Traces,
    room: BlockResources,
) -> Result<LaunchForecast, Judgement> {
    let (blocks, counters) = (launch.blocks(), traces.counters);
    if room.resident == 0 {
        return Err(refused(
            "too many resources requested for launch: not one block fits on a multiprocessor",
        ));
    }
    let shape = Shape {
        grid: launch.grid,
        threads: launch.threads() as u32,
        registers: room.registers,
        shared_bytes: room.shared_bytes,
    };
    // The model replays single blocks; their time excludes waits for the whole grid.
    let together = launch
        .cooperative
        .then(|| "waits of the whole grid for each other are not modelled".to_owned());
    let cluster = (traces.cluster_blocks > 1).then(|| {
        "waits of the blocks of a cluster for each other, and their copies, are not modelled"
            .to_owned()
    });
    let estimate = gpu_model::estimate(arch, machine, traces, &shape);
    let mut estimate = estimate.ok_or_else(|| refused("nothing was executed"))?;
    estimate.doubts.extend(together);
    estimate.doubts.extend(cluster);
    Ok(LaunchForecast {
        blocks,
        counters,
        estimate,
    })
}

/// Combines all launches; ratios and shares are those of the longest.
fn summary(arch: &Arch, pieces: &[LaunchForecast]) -> Result<Forecast, Judgement> {
    let us = |piece: &LaunchForecast| piece.estimate.us;
    let total: f64 = pieces.iter().map(|piece| us(piece) + arch.launch_us).sum();
    let longest = pieces.iter().max_by(|a, b| us(a).total_cmp(&us(b)));
    let (Some(longest), Some(time)) = (longest, Micros::new(total)) else {
        return Err(refused("there is no launch to predict"));
    };
    let work = pieces.iter().map(|piece| (piece.blocks, piece.counters));
    let estimate = &longest.estimate;
    let mut explanation = Explanation {
        bound: estimate.bound.to_owned(),
        occupancy: estimate.occupancy,
        waves: estimate.waves,
        blocks: longest.blocks,
        ..explain_work(&work.collect::<Vec<_>>())
    };
    for doubt in pieces.iter().flat_map(|piece| &piece.estimate.doubts) {
        if !explanation.doubts.contains(doubt) {
            explanation.doubts.push(doubt.clone());
        }
    }
    let factors = if explanation.doubts.is_empty() {
        interval(estimate.bound)
    } else {
        DOUBTFUL
    };
    explanation.interval_us = factors.map(|factor| total * factor);
    for piece in pieces {
        for (name, value) in piece.estimate.metrics(arch) {
            // Sums are added; all other metrics are those of the longest launch.
            let sums = name.ends_with(".sum") || name.ends_with(".max");
            if sums || std::ptr::eq(piece, longest) {
                *explanation.metrics.entry(name.to_owned()).or_default() += value;
            }
        }
    }
    let duration = "gpu__time_duration.sum".to_owned();
    explanation.metrics.insert(duration, total * 1e3);
    Ok(Forecast { time, explanation })
}
