//! One plan on one virtual GPU: memory, traces, the model.

use super::cache::PredictionCache;
use super::cases::keep;
use super::inputs::{self, ArgumentMemory};
use super::{DOUBTFUL, explain_work, interval, resident_blocks};
use gpu_model::{Estimate, Sampled, Shape, Traces, Withheld};
use sass_machine::{Machine, MachineError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Plan, PlanLaunch};
use tuner_core::record::Verdict;
use tuner_core::units::Micros;
use tuner_judge::explanation::Explanation;
use vgpu::{Arch, Arg, BufferId, Counters, Launch, Module};

/// Maximum instructions of the sampled block.
pub(super) const MAX_INSTRUCTIONS: u64 = 60_000_000;
/// Candidates after which memory is allocated anew: modules leave their variables in it.
const USES_MAX: u32 = 256;

/// A predicted time and its explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Time of all launches.
    pub time: Micros,
    /// Explanation of the time.
    pub explanation: Explanation,
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

pub(super) fn refused(detail: impl Into<String>) -> Judgement {
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

    /// Caches predictions, and saves cases in which SASS and PTX leave different memory, in this
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
    /// PTX and SASS that the virtual GPU does not support or that leave different memory, launches
    /// that a GPU refuses, buffers that do not fit.
    pub fn forecast(&mut self, plan: &Plan) -> Result<Forecast, Judgement> {
        let Some(kept) = self.kept.clone() else {
            return self.replayed(plan);
        };
        let key = kept.key(self.arch, plan);
        if let Some(known) = key.as_ref().and_then(|key| kept.read(key)) {
            return Ok(known);
        }
        let forecast = self.replayed(plan)?;
        // A block that was cut short may have been so by the clock.
        if let Some(key) = key.filter(|_| forecast.explanation.doubts.is_empty()) {
            kept.write(&key, &forecast);
        }
        Ok(forecast)
    }

    fn replayed(&mut self, plan: &Plan) -> Result<Forecast, Judgement> {
        // Contracted like the assembler's output: in half precision a unit in the last place is
        // large.
        let module = Module::load_contracted(&plan.code.ptx)
            .map_err(|error| Judgement::new(Verdict::Unsupported, error.to_string()))?;
        let arch = self.arch;
        let prepared = self.prepare(plan)?;
        let mut pieces = Vec::with_capacity(plan.launches.len());
        for (number, launch) in plan.launches.iter().enumerate() {
            let room = BlockResources::new(arch, plan, launch);
            let machine = Machine::load(&plan.code.cubin, &launch.entry);
            let machine = machine.map_err(|error| unavailable(&error))?;
            let sampled = trace(arch, &module, &machine, prepared, plan, launch, room)?;
            let traces = match sampled {
                Sampled::Traced(traces) => *traces,
                Sampled::Withheld(why) => return Err(self.withheld(plan, launch, &why)),
            };
            let invented = invented(prepared, &traces);
            let incomplete = incomplete(prepared, number, &traces);
            let mut found = piece(arch, &machine, launch, traces, room)?;
            found.estimate.doubts.extend(invented);
            found.estimate.doubts.extend(incomplete);
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
            self.prepared = None;
            self.prepared = Some(ArgumentMemory::new(plan, self.memory_bytes, self.arch)?);
        }
        let prepared = self.prepared.as_mut();
        let prepared = prepared.ok_or_else(|| refused("no memory"))?;
        prepared.uses += 1;
        prepared.fill_for(plan, self.arch)?;
        Ok(prepared)
    }
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
        args.push(match prepared.buffer(*index) {
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
    let seed = inputs::seed_of(&plan.code);
    for (index, variable) in plan.variables.iter().enumerate() {
        let bytes = variable.bytes(seed, index, |at| prepared.address(at));
        let bytes = bytes.map_err(refused)?;
        // A variable of another size is refused by the gate.
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

/// Reports that control flow depends on data other than those of the space.
fn invented(prepared: &ArgumentMemory, traces: &Traces) -> Option<String> {
    let decides = |(buffer, _): &&(BufferId, String)| traces.decided_by.contains(buffer);
    let names = prepared.made_up.iter().filter(decides);
    let names: Vec<String> = names.map(|(_, name)| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "its control flow depends on the data of {}, of which there is more than 1 MiB: the prediction uses \
             other data than a run",
            names.join(" and ")
        )
    })
}

/// Reports that control flow depends on data that an earlier launch leaves: only some of its blocks were
/// executed, so that these data are not those of a run.
fn incomplete(prepared: &ArgumentMemory, number: usize, traces: &Traces) -> Option<String> {
    if number == 0 {
        return None;
    }
    let left = traces
        .decided_by
        .iter()
        .filter(|buffer| !prepared.is_input(**buffer));
    // A module's variables are one kind: their buffers have names of the virtual GPU.
    let names: BTreeSet<String> = left
        .map(|buffer| {
            let argument = prepared.argument(*buffer);
            argument.map_or_else(
                || "variables of the module".to_owned(),
                |argument| format!("`{}`", argument.name),
            )
        })
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "its control flow depends on what earlier launches leave in {}, and only some of their blocks were \
             executed",
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
            // Sums add up; all other metrics are those of the longest launch.
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
