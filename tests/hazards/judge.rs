//! Runs one case on the virtual GPU and judges it by the contract's precedence.

use std::time::{Duration, Instant};

use sass_machine::{Machine, Proof};
use vgpu::{
    Arch, Arg, BlockOrder, BufferId, Counters, End, GlobalMemory, Hazard, Launch, LaunchError,
    LoadError, Module, PixelBox, Schedule, TensorElement, TensorMap, launch,
};

use super::case::{ArgKind, Case, LaunchSpec, MapSpec, Role};
use super::data::Type;
use super::reference::{Inputs, evaluate};

/// Far above what any kernel of the suite executes, far below a test's patience.
const INSTRUCTION_BUDGET: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
const MEMORY_BYTES: u64 = 1 << 28;
/// A NaN in every float type, and no plausible integer.
const POISON: [u8; 1] = [0xff];

/// What one run of a case's launches came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) verdict: String,
    pub(crate) detail: String,
    pub(crate) hazards: Vec<Hazard>,
    pub(crate) warnings: Vec<Hazard>,
    pub(crate) counters: Counters,
    /// Bytes of every buffer afterwards.
    pub(crate) buffers: Vec<Vec<u8>>,
    /// Bytes of the module's variables afterwards.
    variables: Vec<Vec<u8>>,
}

impl Judgement {
    fn refused(verdict: &str, detail: String) -> Box<Judgement> {
        Box::new(Judgement::of(verdict, detail))
    }

    fn of(verdict: &str, detail: String) -> Judgement {
        Judgement {
            verdict: verdict.to_owned(),
            detail,
            hazards: Vec::new(),
            warnings: Vec::new(),
            counters: Counters::default(),
            buffers: Vec::new(),
            variables: Vec::new(),
        }
    }
}

/// The buffers of one run, in the order of the case's arguments.
struct Stage {
    memory: GlobalMemory,
    args: Vec<Arg>,
    buffers: Vec<Option<BufferId>>,
    inputs: Inputs,
}

impl Stage {
    fn set(case: &Case) -> Stage {
        let mut stage = Stage {
            memory: GlobalMemory::new(MEMORY_BYTES),
            args: Vec::new(),
            buffers: Vec::new(),
            inputs: Inputs::new(),
        };
        for (salt, arg) in (0..).zip(&case.args) {
            match &arg.kind {
                ArgKind::Scalar(value) => {
                    stage.args.push(Arg::Bytes(arg.element.encode(*value)));
                    stage.buffers.push(None);
                }
                ArgKind::Map(map) => {
                    stage
                        .args
                        .push(Arg::Bytes(stage.map(case, map).encode().to_vec()));
                    stage.buffers.push(None);
                }
                ArgKind::Buffer { length, fill, .. } => {
                    let bytes = (length * arg.element.bytes()) as u64;
                    let id = stage
                        .memory
                        .alloc(bytes, &arg.name)
                        .expect("memory for a case");
                    match fill {
                        None => stage.memory.fill_uninitialised(id, &POISON),
                        Some(fill) => {
                            let values = fill.values(arg.element, *length, salt);
                            let data: Vec<u8> =
                                values.iter().flat_map(|&v| arg.element.encode(v)).collect();
                            stage.memory.write(id, 0, &data);
                            stage.inputs.insert(arg.name.clone(), values);
                        }
                    }
                    stage.args.push(Arg::Buffer(id));
                    stage.buffers.push(Some(id));
                }
            }
        }
        stage
    }

    /// The tensor map of a buffer that is set already.
    fn map(&self, case: &Case, spec: &MapSpec) -> TensorMap {
        let of = case.args.iter().position(|arg| arg.name == spec.of);
        let of = of.expect("a buffer before its map");
        let buffer = self.buffers[of].expect("a buffer of a map");
        let element = case.args[of].element;
        let mut stride = element.bytes() as u64;
        let strides = spec.sizes.iter().map(|size| {
            stride *= size;
            stride
        });
        let map = TensorMap {
            element: match element {
                Type::F16 => TensorElement::F16,
                Type::Bf16 => TensorElement::Bf16,
                Type::F32 => TensorElement::F32,
                Type::F64 => TensorElement::F64,
                Type::U8 => TensorElement::U8,
                Type::U16 => TensorElement::U16,
                Type::I32 => TensorElement::S32,
                Type::U32 => TensorElement::U32,
                Type::I64 => TensorElement::S64,
                Type::U64 => TensorElement::U64,
            },
            address: self.memory.address(buffer),
            strides: strides.take(spec.sizes.len() - 1).collect(),
            sizes: spec.sizes.clone(),
            boxes: spec.boxes.clone(),
            steps: vec![1; spec.sizes.len()],
            interleave: 0,
            swizzle: (spec.swizzle / 32).next_power_of_two().trailing_zeros()
                + u32::from(spec.swizzle > 0),
            promotion: 0,
            fills_nan: false,
            pixels: (!spec.lower.is_empty()).then(|| PixelBox {
                lower: spec.lower.clone(),
                upper: spec.upper.clone(),
            }),
        };
        map.check().expect("a map within the driver's limits");
        map
    }

    /// What is wrong with the buffers after a clean run, if anything.
    fn fault(&self, case: &Case) -> Result<(), String> {
        for (arg, id) in case.args.iter().zip(&self.buffers) {
            let (ArgKind::Buffer { role, .. }, Some(id)) = (&arg.kind, id) else {
                continue;
            };
            let bytes = self.memory.read(*id);
            if *role == Role::Input {
                let values = &self.inputs[&arg.name];
                let before = values.iter().flat_map(|&v| arg.element.encode(v));
                if !before.eq(bytes.iter().copied()) {
                    return Err(format!("the kernel changed its input `{}`", arg.name));
                }
            }
            let hole = self.memory.unwritten(*id).next();
            if let (Role::Output, Some(hole)) = (role, hole) {
                return Err(format!("nobody wrote bytes {hole:?} of `{}`", arg.name));
            }
        }
        self.compare(case)
    }

    fn compare(&self, case: &Case) -> Result<(), String> {
        let Some(expect) = &case.expect else {
            return Ok(());
        };
        let index = case.args.iter().position(|arg| arg.name == expect.output);
        let index = index.ok_or_else(|| format!("no argument `{}`", expect.output))?;
        let element = case.args[index].element;
        let bytes = self
            .memory
            .read(self.buffers[index].ok_or("a scalar is no output")?);
        let got: Vec<f64> = bytes
            .chunks(element.bytes())
            .map(|b| element.decode(b))
            .collect();
        let want = evaluate(
            &expect.function,
            &expect.parameters,
            &self.inputs,
            got.len(),
        )?;
        if want.len() != got.len() {
            return Err(format!(
                "{} expected elements, {} there",
                want.len(),
                got.len()
            ));
        }
        for (i, (&got, &want)) in got.iter().zip(&want).enumerate() {
            let tolerance = case.tolerance * want.abs().max(1.0);
            // Written so that a NaN fails.
            let near = (got - want).abs() <= tolerance;
            if !near {
                return Err(format!("{}[{i}] is {got}, expected {want}", expect.output));
            }
        }
        Ok(())
    }
}

fn arch_of(case: &Case) -> &'static Arch {
    let arch = Arch::by_name(if case.arch == "sm_80" { "a100" } else { "h100" });
    arch.expect("a known device")
}

/// A launch of a case.
fn wanted(spec: &LaunchSpec, stage: &Stage) -> Launch {
    let mut wanted = Launch::new(&spec.entry, spec.grid, spec.block, stage.args.clone());
    wanted.dynamic_shared_bytes = spec.shared;
    wanted.registers = spec.registers;
    wanted.cluster = spec.cluster;
    wanted.instruction_budget = INSTRUCTION_BUDGET;
    wanted.wall_deadline = Some(Instant::now() + PATIENCE);
    wanted
}

/// Executes all launches as machine code and as PTX; an error says where they differ.
pub(crate) fn prove(case: &Case, ptx: &str, cubin: &[u8]) -> Result<(), String> {
    let module = &Module::load_contracted(ptx).map_err(|error| error.to_string())?;
    let mut stage = Stage::set(case);
    for spec in &case.launches {
        let machine = Machine::load(cubin, &spec.entry).map_err(|error| error.to_string())?;
        let mut wanted = wanted(spec, &stage);
        // A block that waits by atomics has a long turn before the others come.
        wanted.instruction_budget = 1 << 27;
        let proof =
            sass_machine::prove(&machine, module, &mut stage.memory, arch_of(case), &wanted);
        match proof.map_err(|error| error.to_string())?.1 {
            Proof::Same(_) => {}
            // Sines and cosines, whose angles the machine code divides by 2π first.
            Proof::Rounded { ulps: 0..=4, .. } if case.name == "fast_math" => {}
            Proof::NotAvailable(error) => return Err(error.to_string()),
            other => return Err(format!("{other:?}").chars().take(300).collect()),
        }
    }
    Ok(())
}

/// How warps and blocks take turns.
pub(crate) type Turns = (Schedule, BlockOrder);

/// Runs all launches of `case` under `schedule` and in this order of blocks, on so many threads (0:
/// one a core).
pub(crate) fn run(case: &Case, module: &Module, turns: Turns, threads: usize) -> Judgement {
    run_after(case, module, turns, threads, &[])
}

/// The same after a run that left the module's variables so; none where there was no run before.
fn run_after(
    case: &Case,
    module: &Module,
    (schedule, order): Turns,
    threads: usize,
    variables: &[Vec<u8>],
) -> Judgement {
    let arch = arch_of(case);
    let mut stage = Stage::set(case);
    let set = module.set_variables(&mut stage.memory, variables);
    set.expect("memory for variables");
    let (mut hazards, mut warnings) = (Vec::new(), Vec::new());
    let mut counters = Counters::default();
    let mut detail = String::new();
    for spec in &case.launches {
        let mut wanted = wanted(spec, &stage);
        wanted.schedule = schedule;
        wanted.block_order = order;
        wanted.threads = threads;
        wanted.checks.same_value_writes_allowed = case.same_value_writes_allowed;
        match launch(module, &mut stage.memory, arch, &wanted) {
            Ok(report) => {
                hazards.extend(report.hazards);
                warnings.extend(report.warnings);
                counters += report.counters;
                if let End::Stopped(why) = report.end {
                    detail = why;
                    break;
                }
            }
            Err(LaunchError::Unsupported(what)) => {
                return Judgement::of("unsupported", what.to_string());
            }
            Err(refused) => return Judgement::of("launch_failed", refused.to_string()),
        }
    }
    let worst = hazards.iter().map(|h| h.kind).min();
    let verdict = match (worst, stage.fault(case)) {
        (Some(kind), _) => kind.name(),
        (None, _) if !detail.is_empty() => "stopped without a hazard",
        (None, Ok(())) => "ok",
        (None, Err(fault)) => {
            detail = fault;
            "incorrect"
        }
    };
    Judgement {
        verdict: verdict.to_owned(),
        detail,
        buffers: results(case)
            .filter_map(|number| stage.buffers[number])
            .map(|id| stage.memory.read(id))
            .collect(),
        variables: module
            .variables(&mut stage.memory)
            .expect("memory for variables"),
        hazards,
        warnings,
        counters,
    }
}

/// Numbers of the arguments that hold results: outputs, or where there are none what goes in and
/// out. Scratch may hold what depends on who came first.
fn results(case: &Case) -> impl Iterator<Item = usize> + '_ {
    let is = |number: &usize, wanted: Role| matches!(case.args[*number].kind, ArgKind::Buffer { role, .. } if role == wanted);
    let outputs = (0..case.args.len()).any(|number| is(&number, Role::Output));
    let wanted = if outputs { Role::Output } else { Role::Inout };
    (0..case.args.len()).filter(move |number| is(number, wanted))
}

/// Runs `case` under each schedule and order of blocks; the worst judgement is the case's, and buffers that differ
/// between clean runs make it `nondeterministic`.
pub(crate) fn judge(case: &Case, module: &Module, schedules: &[Turns]) -> Judgement {
    let mut left = Vec::new();
    let mut runs = schedules.iter().map(|&turns| {
        let run = run_after(case, module, turns, 0, &left);
        if case.keeps_variables {
            left.clone_from(&run.variables);
        }
        run
    });
    let first = runs.next().expect("a schedule");
    let fine = |run: &Judgement| matches!(run.verdict.as_str(), "ok" | "incorrect");
    if !fine(&first) {
        return first;
    }
    for (number, next) in runs.enumerate() {
        if !fine(&next) {
            return next;
        }
        if next.buffers != first.buffers {
            let detail = format!("schedule {} gives other results than the first", number + 1);
            return Judgement::of("nondeterministic", detail);
        }
    }
    first
}

/// Loads PTX; a refusal is a judgement.
pub(crate) fn load(ptx: &str) -> Result<Module, Box<Judgement>> {
    Module::load(ptx).map_err(|e| match e {
        LoadError::Unsupported(what) => Judgement::refused("unsupported", what.to_string()),
        LoadError::Ptx(error) => Judgement::refused("unreadable PTX", error.to_string()),
    })
}

/// What NVRTC refuses is a judgement too.
pub(crate) fn uncompiled(log: String) -> Box<Judgement> {
    Judgement::refused("compile_failed", log)
}
