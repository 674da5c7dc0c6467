//! The virtual GPU as a device: executes plans and returns hazards and results.

mod shadow;
mod trace;
mod variables;

use ::vgpu::{
    Arch, Arg, BlockOrder, BlockSet, BufferId, Checks, GlobalMemory, HazardKind, Launch, Module,
    Roots, Schedule,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Role};
use tuner_core::record::{Hazard, Verdict};
use tuner_core::target::ComputeTarget;
use tuner_core::units::ContentHash;
use tuner_judge::session::{
    Blocks, Order, Rounding, Run, RunReport, Session, Slot, TraceRequest, TraceResult, Work,
};
use tuner_kernel::compile::DiskCache;
use tuner_predict::{Forecaster, resident_blocks};
use variables::SetVariable;
pub(crate) use variables::other_size;

tuner_core::with_defaults! {
    /// Limits of one session.
    #[derive(Debug, Clone, Copy)]
    pub struct Limits {
        /// Host memory for the device's buffers, bytes. The virtual GPU adds one bit of history per
        /// byte.
        pub memory_bytes: u64 = 6 << 30,
        /// Warp instructions that one block may execute before it counts as endless.
        pub instructions_per_block: u64 = 400_000_000,
        /// Host threads that execute blocks.
        pub threads: usize = std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Maximum number of cached modules: a candidate's, its reference's, and their check problems'.
const MAX_CACHED_MODULES: usize = 8;

/// A module, or the reason for its absence.
type Parsed = Result<Arc<Module>, Judgement>;

/// A session on the virtual GPU.
pub struct VirtualGpu {
    arch: &'static Arch,
    limits: Limits,
    memory: GlobalMemory,
    buffers: Vec<BufferId>,
    forecaster: Forecaster,
    /// Modules by the hash of the text, and whether they round at random.
    modules: HashMap<ContentHash, Parsed>,
    /// Random rounding of the following runs.
    rounding: Option<::vgpu::Rounding>,
    /// The following runs compute shadow values.
    shadow_values: bool,
    /// Kept variables of the module with this text, used instead of their initial values.
    kept: Option<(Arc<str>, Vec<Vec<u8>>)>,
    /// Variables at the first run since the last reset.
    found: Option<(Arc<str>, Vec<Vec<u8>>)>,
    /// Variables that were set since the last reset.
    set: Vec<SetVariable>,
}

impl VirtualGpu {
    /// Creates a session on a virtual GPU of type `arch`.
    #[must_use]
    pub fn new(arch: &'static Arch, limits: Limits) -> Self {
        let memory = GlobalMemory::new(limits.memory_bytes.min(arch.memory_bytes));
        Self {
            arch,
            limits,
            memory,
            buffers: Vec::new(),
            forecaster: Forecaster::new(arch, limits.memory_bytes.min(arch.memory_bytes))
                .keeping(DiskCache::default_folder()),
            modules: HashMap::new(),
            rounding: None,
            shadow_values: false,
            kept: None,
            found: None,
            set: Vec::new(),
        }
    }

    /// Returns the timing model.
    pub fn forecaster(&mut self) -> &mut Forecaster {
        &mut self.forecaster
    }

    /// Returns the GPU type.
    #[must_use]
    pub fn arch(&self) -> &'static Arch {
        self.arch
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "slots are numbered by the session that made them"
    )]
    fn buffer(&self, slot: Slot) -> BufferId {
        // Slots are only created by `alloc` of this session and dropped at `reset`.
        self.buffers[slot.0]
    }

    /// Parses each distinct PTX once: a plan's launches and seeds share the text. With `slice`, only the
    /// instructions that determine memory accesses.
    fn module(&mut self, code: &Code, slice: Option<Roots>) -> Result<Arc<Module>, Judgement> {
        let random = self.rounding.is_some();
        let kind: &[u8] = match (slice, random) {
            (Some(Roots::Stores), _) => b"stores",
            (Some(Roots::Accesses), _) => b"accesses",
            (None, true) => b"rounded",
            (None, false) if self.shadow_values => b"shadowed",
            (None, false) => b"",
        };
        let key = ContentHash::from_parts([code.ptx.as_bytes(), kind]);
        if let Some(module) = self.modules.get(&key) {
            return module.clone();
        }
        let loaded = match slice {
            Some(roots) => Module::load_slice(&code.ptx, roots),
            None if random => Module::load_randomly_rounded(&code.ptx),
            None if self.shadow_values => Module::load_with_shadow_values(&code.ptx),
            None => Module::load(&code.ptx),
        };
        let module = match loaded {
            Ok(module) => Ok(Arc::new(module)),
            Err(vgpu::LoadError::Unsupported(what)) => {
                Err(Judgement::new(Verdict::Unsupported, what.to_string()))
            }
            Err(error) => Err(Judgement::new(
                Verdict::CompileFailed,
                format!("the virtual GPU cannot read this PTX: {error}"),
            )),
        };
        if self.modules.len() >= MAX_CACHED_MODULES {
            self.modules.clear();
        }
        self.modules.insert(key, module.clone());
        module
    }

    fn arguments(&self, run: &Run<'_>) -> Vec<Arg> {
        let address = |index: usize| {
            let slot = run.slots.get(index).copied().flatten()?;
            self.address(slot)
        };
        let resolve = |index: &usize| {
            let argument = run.plan.arguments.get(*index)?;
            if argument.role == Role::Scalar {
                return argument.scalar_at(address).map(Arg::Bytes);
            }
            let slot = run.slots.get(*index).copied().flatten()?;
            Some(Arg::Buffer(self.buffer(slot)))
        };
        run.launch.arguments.iter().filter_map(resolve).collect()
    }

    /// Builds the launch for the virtual GPU, and reports whether the run's budget is smaller than
    /// the device's.
    fn launch(&self, run: &Run<'_>) -> (Launch, bool) {
        let most = self.limits.instructions_per_block;
        let own = run.budget.filter(|budget| *budget < most);
        let launch = Launch {
            dynamic_shared_bytes: run.launch.shared_bytes,
            registers: run.code.needs(&run.launch.entry).registers,
            blocks: match &run.blocks {
                Blocks::All => BlockSet::All,
                Blocks::Some(list) => BlockSet::List(list.clone()),
            },
            schedule: match run.order {
                Order::Natural => Schedule::RoundRobin,
                Order::Other { seed, .. } => Schedule::Random { seed },
            },
            block_order: match run.order {
                Order::Natural => BlockOrder::Ascending,
                Order::Other { number, seed } => BlockOrder::nth(number, seed),
            },
            instruction_budget: own.unwrap_or(most),
            threads: self.limits.threads,
            checks: Checks {
                same_value_writes_allowed: run.plan.gate.same_value_writes,
                ..Checks::default()
            },
            cluster: run.launch.cluster,
            cooperative: run.launch.cooperative,
            rounding: self.rounding,
            shadow_values: self.shadow_values,
            ..Launch::new(
                &run.launch.entry,
                run.launch.grid,
                run.launch.block,
                self.arguments(run),
            )
        };
        (launch, own.is_some())
    }
}

impl Session for VirtualGpu {
    fn reset(&mut self) {
        self.memory = GlobalMemory::new(self.limits.memory_bytes.min(self.arch.memory_bytes));
        self.buffers.clear();
        self.found = None;
        self.set.clear();
    }

    fn forget_variables(&mut self) {
        self.kept = None;
        self.found = None;
    }

    fn restore_variables(&mut self, code: &Code) -> Result<(), Judgement> {
        variables::restore(self, code)
    }

    fn keep_variables(&mut self, code: &Code) -> Result<bool, Judgement> {
        variables::keep(self, code)
    }

    fn set_variable(&mut self, code: &Code, name: &str, bytes: &[u8]) -> Result<bool, Judgement> {
        variables::set(self, code, name, bytes)
    }

    fn alloc(&mut self, name: &str, bytes: u64) -> Result<Slot, Judgement> {
        let id = self.memory.alloc(bytes, name).map_err(|error| {
            Judgement::new(
                Verdict::OutOfMemory,
                format!("buffer `{name}` of {bytes} bytes: {error}"),
            )
        })?;
        self.buffers.push(id);
        Ok(Slot(self.buffers.len() - 1))
    }

    fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Judgement> {
        let id = self.buffer(slot);
        self.memory.write(id, 0, bytes);
        Ok(())
    }

    fn poison(&mut self, slot: Slot, pattern: &[u8]) -> Result<(), Judgement> {
        let id = self.buffer(slot);
        self.memory.fill_uninitialised(id, pattern);
        Ok(())
    }

    fn download(&mut self, slot: Slot) -> Result<Vec<u8>, Judgement> {
        Ok(self.memory.read(self.buffer(slot)))
    }

    fn is_unchanged(&mut self, slot: Slot, bytes: &Arc<[u8]>) -> Result<bool, Judgement> {
        Ok(self.memory.holds(self.buffer(slot), bytes))
    }

    fn unwritten(&self, slot: Slot) -> Option<Vec<Range<u64>>> {
        Some(self.memory.unwritten(self.buffer(slot)).collect())
    }

    fn unread(&self, slot: Slot) -> Option<Vec<Range<u64>>> {
        Some(self.memory.unread(self.buffer(slot)).collect())
    }

    fn is_overwritten(&self, slot: Slot) -> bool {
        self.memory.is_overwritten(self.buffer(slot))
    }

    fn can_sample(&self) -> bool {
        true
    }

    fn set_rounding(&mut self, rounding: Option<Rounding>) -> bool {
        self.rounding = rounding.map(|it| ::vgpu::Rounding {
            seed: it.seed,
            inverted: it.inverted,
            precision: it.precision,
        });
        true
    }

    fn set_shadow_values(&mut self, shadow_values: bool) -> bool {
        self.shadow_values = shadow_values;
        true
    }

    fn shadow_errors(&self, slot: Slot, element: Element) -> Option<Vec<u8>> {
        shadow::shadow_errors(&self.memory, self.buffer(slot), element)
    }

    fn address(&self, slot: Slot) -> Option<u64> {
        let buffer = self.buffers.get(slot.0)?;
        Some(self.memory.address(*buffer))
    }

    fn trace(
        &mut self,
        run: &Run<'_>,
        request: TraceRequest<'_>,
    ) -> Result<TraceResult, Judgement> {
        trace::trace(self, run, request)
    }

    fn run(&mut self, run: &Run<'_>) -> Result<RunReport, Judgement> {
        let module = self.module(run.code, None)?;
        launchable(self.arch, &module, run)?;
        variables::restore_kept(self, run.code, &module)?;
        let (launch, own) = self.launch(run);
        let report =
            vgpu::launch(&module, &mut self.memory, self.arch, &launch).map_err(|error| {
                let all = &run.plan.arguments;
                let taken = run.launch.arguments.iter();
                let names = taken.filter_map(|index| Some(all.get(*index)?.name.as_str()));
                refused(error.describe(&names.collect::<Vec<_>>()))
            })?;
        // A block that exceeds the run's budget is incomplete, not faulty.
        let late = |found: &vgpu::Hazard| own && found.kind == HazardKind::Timeout;
        let exhausted = report.hazards.iter().any(late);
        let kept = report.hazards.iter().filter(|found| !late(found));
        let mut hazards: Vec<Hazard> = kept.map(hazard).collect();
        if !run.launch.cooperative && run.code.ptx.contains("%envreg") {
            // Cooperative groups end a grid barrier with a trap if the driver passes no workspace.
            let crashed = hazards.iter_mut().filter(|it| it.kind == Verdict::Crashed);
            crashed.for_each(|it| it.detail.push_str(COOPERATIVE_HINT));
        }
        Ok(RunReport {
            hazards,
            warnings: report.warnings.iter().map(warning).collect(),
            work: Work {
                lane_instructions: cost(&report.counters),
                atomics: report.counters.class(::vgpu::counters::Class::Atomic),
                blocks: report.counters.blocks,
                grid_blocks: run.launch.blocks(),
            },
            stopped: !matches!(report.end, vgpu::End::Completed),
            budget_exhausted: exhausted,
        })
    }
}

/// Operations of a lane in one `mma.sync` of 16 x 8 x 16.
const LANE_OPERATIONS: u64 = 128;

/// Returns the work of a run, in lane instructions. A single thread starts a product of `wgmma` or
/// `tcgen05`, whose execution takes as long as thousands of other instructions.
fn cost(counters: &::vgpu::counters::Counters) -> u64 {
    let products = counters.tensor_flops / LANE_OPERATIONS;
    counters.lane_instructions.max(products)
}

/// Checks that the launch can begin.
fn launchable(arch: &Arch, module: &Module, run: &Run<'_>) -> Result<(), Judgement> {
    module
        .supported(&run.launch.entry)
        .map_err(|what| Judgement::new(Verdict::Unsupported, what.to_string()))?;
    let wrong = wrong_target(module.target(), arch.cc);
    let why = wrong.or_else(|| lacking_resources(arch, run));
    why.map_or(Ok(()), |why| Err(refused(why)))
}

/// Builds the judgement of a candidate that the device rejects before it runs.
pub(crate) fn refused(detail: impl Into<String>) -> Judgement {
    Judgement::new(Verdict::LaunchFailed, detail)
}

/// Returns the reason why a driver would reject the launch for lack of registers, or of space for all its
/// blocks.
fn lacking_resources(arch: &Arch, run: &Run<'_>) -> Option<String> {
    let threads = run.launch.threads();
    let needs = run.code.needs(&run.launch.entry);
    let each = needs.registers;
    // Devices allocate registers to whole warps, in units of eight per thread.
    let registers = u64::from(each.div_ceil(8) * 8) * threads.div_ceil(32) * 32;
    if registers > u64::from(arch.registers_per_sm) {
        return Some(format!(
            "too many resources requested for launch: {threads} threads of {each} registers need {registers}, the device has {}",
            arch.registers_per_sm
        ));
    }
    let shared = u64::from(run.launch.shared_bytes) + needs.static_shared_bytes;
    let together = resident_blocks(arch, threads, each, shared) * u64::from(arch.sm_count);
    let blocks = run.launch.blocks();
    (run.launch.cooperative && blocks > together).then(|| too_large_together(blocks, together))
}

/// Hint for a kernel that waits for its grid in a launch that is not cooperative.
const COOPERATIVE_HINT: &str =
    "; where it calls `grid.sync()`, write `cooperative: true` at its launch";

/// Formats the rejection of a cooperative launch that does not fit on the device.
pub(crate) fn too_large_together(blocks: u64, together: u64) -> String {
    format!(
        "too many blocks in a cooperative launch: {blocks}, and the device holds {together} of \
         them at once; launch at most so many, and let each do more"
    )
}

/// Returns the reason why a driver would reject PTX of this target on a GPU of that compute capability. An
/// older GPU lacks features of a newer target, and a target such as `sm_90a` is for one GPU only.
fn wrong_target(target: &str, cc: u32) -> Option<String> {
    let target: ComputeTarget = target.parse().ok()?;
    let why = target.refusal(cc)?;
    Some(format!("no kernel image for this device: {why}"))
}

fn verdict(kind: HazardKind) -> Verdict {
    match kind {
        HazardKind::OutOfBounds => Verdict::OutOfBounds,
        HazardKind::Misaligned => Verdict::Misaligned,
        HazardKind::BarrierDivergence => Verdict::BarrierDivergence,
        HazardKind::Deadlock => Verdict::Deadlock,
        HazardKind::Race => Verdict::Race,
        HazardKind::Uninitialized => Verdict::Uninitialized,
        HazardKind::Timeout => Verdict::Timeout,
        HazardKind::Crashed => Verdict::Crashed,
        HazardKind::ModuleState => Verdict::Incorrect,
    }
}

fn hazard(found: &vgpu::Hazard) -> Hazard {
    let mut detail = found.detail.clone();
    if let (HazardKind::Uninitialized, Some(origin)) = (found.kind, &found.other) {
        detail.push_str(&format!("; first read at {origin}"));
    }
    Hazard {
        kind: verdict(found.kind),
        detail,
        file: found.source.as_ref().map(|source| source.file.to_string()),
        line: found.source.as_ref().map(|source| source.line),
        block: Some(found.block),
        thread: Some(found.thread),
        address: Some(format!("0x{:x}", found.address)),
    }
}

/// Converts a warning, including its second location.
fn warning(found: &vgpu::Hazard) -> Hazard {
    let mut warning = hazard(found);
    if let Some(other) = found
        .other
        .as_ref()
        .filter(|o| Some(*o) != found.source.as_ref())
    {
        warning
            .detail
            .push_str(&format!(" (the other is at {other})"));
    }
    warning
}

#[cfg(test)]
mod tests;
