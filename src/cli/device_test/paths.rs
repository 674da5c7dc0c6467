//! Tests of every use of a GPU, in sequence in this process.

use super::bench::{gpu, worker};
use crate::cli::{CliError, usage};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::time::Instant;
use tuner_core::cache_mode::CacheMode;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference, Role};
use tuner_core::record::Verdict;
use tuner_device::gpu::context::Gpu;
use tuner_device::gpu::helpers::{Helpers, compile};
use tuner_device::gpu::nvml::Monitor;
use tuner_device::gpu::session::GpuSession;
use tuner_device::gpu::{GpuFacts, open_driver};
use tuner_device::worker::host::Settings;
use tuner_engine::like;
use tuner_judge::session::{Blocks, Contents, Order, Run, RunReport, Session};
use tuner_judge::stopwatch::Stopwatch;
use tuner_judge::timing::calibration::{Calibration, Probe, Prober};

/// Elements of the test's buffers.
const COUNT: u64 = 1 << 16;
/// Threads of a block.
const BLOCK: u32 = 256;

/// Returns the GPU's properties with its calibration.
pub(super) fn facts(ordinal: u32) -> Result<(Value, bool), CliError> {
    let (facts, compiler) = gpu(ordinal)?;
    let health = Monitor::open(&facts.uuid).health();
    let mut worker = worker(&facts, &compiler)?;
    let began = Instant::now();
    worker.open()?;
    let open_ms = began.elapsed().as_secs_f64() * 1e3;
    let calibration = worker.calibrate()?;
    let virtual_gpu = like(&facts.name, &facts.limits());
    let report = json!({
        "facts": facts,
        "virtual": virtual_gpu.map(|arch| format!("vgpu:{}", arch.name)),
        "health": health,
        "nvrtc": compiler.nvrtc().version(),
        "worker_open_ms": open_ms,
        "calibration": calibration,
    });
    Ok((report, true))
}

/// State shared by the tests.
struct TestContext {
    session: GpuSession,
    facts: GpuFacts,
    code: Code,
}

type Test = (&'static str, fn(&mut TestContext) -> Result<String, String>);

/// In this order: the last test corrupts the context.
const TESTS: &[Test] = &[
    ("driver facts", driver_facts),
    ("nvml", nvml),
    ("function attributes and occupancy", attributes),
    ("launch and result", launch),
    ("guard bands", bands),
    ("poisoned shared memory", shared_poison),
    ("shared memory opt-in", opt_in),
    ("too much shared memory is refused", too_much_shared),
    ("too many threads are refused", |tried| {
        not_launched(tried, |plan| plan.launches[0].block = [2048, 1, 1])
    }),
    ("machine code that is none is refused", |tried| {
        let garbage = *b"no machine code at all";
        not_launched(tried, |plan| plan.code.cubin = garbage.into())
    }),
    ("a kernel that is not there is refused", |tried| {
        let missing = "quadruple".to_owned();
        not_launched(tried, |plan| plan.launches[0].entry = missing)
    }),
    ("wrong parameters are refused", wrong_parameters),
    ("full memory is an outcome", full_memory),
    ("graph, events and clock, warm", |tried| {
        timed(tried, CacheMode::Warm)
    }),
    ("graph, events and clock, cold", |tried| {
        timed(tried, CacheMode::Cold)
    }),
    ("probes and floors", probes),
    ("illegal address", illegal_address),
];

/// Runs all tests. Passed if each did.
pub(super) fn run_all(ordinal: u32) -> Result<(Value, bool), CliError> {
    let (facts, compiler) = gpu(ordinal)?;
    let arch = facts.arch();
    // Workers receive this form, which is PTX for the stand-in driver of the tests.
    let helpers = tuner_engine::job::helpers(&compiler, &arch)?;
    let carry = Settings::for_gpu(ordinal, helpers.clone())
        .context("cannot find this program")?
        .carry;
    let code = compile(
        &compiler,
        "paths.cu",
        include_str!("paths.cu"),
        "triple",
        &arch,
    )?;
    let driver = open_driver().map_err(usage)?;
    let gpu = Gpu::open(driver, ordinal)?;
    let monitor = Monitor::open(&facts.uuid);
    let mut tried = TestContext {
        session: GpuSession::new(gpu, Helpers::new(helpers.packed(carry)), monitor),
        facts,
        code: code.packed(carry),
    };
    let mut rows = Vec::new();
    let mut passed = true;
    for (name, test) in TESTS {
        let began = Instant::now();
        let result = test(&mut tried);
        let ok = result.is_ok();
        passed &= ok;
        let detail = result.unwrap_or_else(|why| why);
        let ms = began.elapsed().as_secs_f64() * 1e3;
        say!("{} {name}: {detail}", if ok { "ok  " } else { "FAIL" });
        rows.push(json!({ "test": name, "ok": ok, "detail": detail, "ms": ms }));
    }
    Ok((json!({ "device": tried.facts.name, "tests": rows }), passed))
}

/// Returns an error with the detail unless the condition holds.
fn holds(condition: bool, detail: String) -> Result<String, String> {
    if condition { Ok(detail) } else { Err(detail) }
}

fn words(fault: Judgement) -> String {
    format!("{}: {}", fault.verdict, fault.detail)
}

/// Checks that a call was refused with this verdict and that the GPU still works.
fn refused<T>(
    tried: &mut TestContext,
    result: Result<T, Judgement>,
    wanted: Verdict,
) -> Result<String, String> {
    let fault = match result {
        Ok(_) => return Err("it was not refused".to_owned()),
        Err(fault) => fault,
    };
    if fault.verdict != wanted {
        return Err(words(fault));
    }
    launch(tried).map(|_| words(fault))
}

/// Builds the plan of a kernel with an input, an output of `count` elements and a scalar.
fn plan(
    code: &Code,
    entry: &str,
    output: Element,
    count: u64,
    scalar: Element,
    value: f64,
) -> Plan {
    let argument = |name: &str, element, role, shape: &[u64], value| PlanArgument {
        fill: Fill::Arange,
        value,
        ..PlanArgument::new(name, element, role, shape)
    };
    let blocks = (COUNT / u64::from(BLOCK)) as u32;
    Plan {
        problem: "device test".to_owned(),
        ..Plan::new(
            vec![
                argument("x", Element::F32, Role::Input, &[COUNT], 0.0),
                argument("y", output, Role::Output, &[count], 0.0),
                argument("scalar", scalar, Role::Scalar, &[], value),
            ],
            vec![PlanLaunch::new(
                entry,
                [blocks, 1, 1],
                [BLOCK, 1, 1],
                vec![0, 1, 2],
            )],
            code.clone(),
            PlanReference::Oracle("none".to_owned()),
        )
    }
}

fn triple(code: &Code, shift: f64) -> Plan {
    plan(code, "triple", Element::F32, COUNT, Element::I64, shift)
}

/// Runs a plan once as the gate does.
fn run(session: &mut GpuSession, plan: &Plan) -> Result<(RunReport, Vec<u8>), Judgement> {
    session.reset();
    let x = session.alloc("x", 4 * COUNT)?;
    let y = session.alloc("y", 4 * plan.arguments[1].count())?;
    let input: Vec<u8> = (0..COUNT)
        .flat_map(|index| (index as f32).to_le_bytes())
        .collect();
    session.upload(x, &input)?;
    Session::poison(session, y, Element::F32.poison())?;
    let report = session.run(&Run {
        code: &plan.code,
        launch: &plan.launches[0],
        plan,
        slots: &[Some(x), Some(y), None],
        blocks: Blocks::All,
        order: Order::Natural,
        budget: None,
    })?;
    let output = session.download(y)?;
    Ok((report, output))
}

fn driver_facts(tried: &mut TestContext) -> Result<String, String> {
    let facts = &tried.facts;
    let detail = format!(
        "{} {} {} SMs, driver {:?}, CUDA {:?}",
        facts.name,
        facts.arch(),
        facts.sm_count,
        facts.driver,
        facts.cuda
    );
    let plausible = facts.sm_count > 0
        && facts.capability.0 >= 7
        && facts.shared_bytes_optin >= 48 << 10
        && facts.memory_bytes > 0
        && facts.l2_bytes > 0;
    holds(plausible, detail)
}

fn nvml(tried: &mut TestContext) -> Result<String, String> {
    // Optional: its absence is not a failure.
    Ok(match tried.session.monitor.health() {
        Some(health) => format!(
            "{:?} MHz, {:?} °C, slowed: {:?}, processes: {}",
            health.clock_mhz,
            health.temperature_c,
            health.slowed,
            health.processes.len()
        ),
        None => "absent".to_owned(),
    })
}

fn attributes(tried: &mut TestContext) -> Result<String, String> {
    let facts = tried
        .session
        .gpu
        .kernel_facts(&tried.code, "triple", u64::from(BLOCK), 0)
        .map_err(words)?;
    let detail = format!("{facts:?}");
    holds(
        facts.registers > 0 && facts.blocks_per_sm > 0 && facts.max_threads > 0,
        detail,
    )
}

fn launch(tried: &mut TestContext) -> Result<String, String> {
    let plan = triple(&tried.code, 0.0);
    let (report, output) = run(&mut tried.session, &plan).map_err(words)?;
    let right = output
        .chunks_exact(4)
        .enumerate()
        .filter(|(index, bytes)| **bytes == (3.0 * *index as f32).to_le_bytes())
        .count() as u64;
    holds(
        right == COUNT && report.hazards.is_empty(),
        format!(
            "{right} of {COUNT} elements are right, {} hazards",
            report.hazards.len()
        ),
    )
}

fn bands(tried: &mut TestContext) -> Result<String, String> {
    let mut seen = Vec::new();
    for shift in [1.0, -1.0] {
        let plan = triple(&tried.code, shift);
        let (report, _) = run(&mut tried.session, &plan).map_err(words)?;
        let first = report.hazards.first();
        let first = first.ok_or_else(|| format!("a shift by {shift} was not seen"))?;
        seen.push(first.detail.clone());
    }
    Ok(seen.join("; "))
}

fn shared_poison(tried: &mut TestContext) -> Result<String, String> {
    if tuner_device::gpu::stand_in::installed().is_some() {
        return Ok("the stand-in keeps no shared memory between launches".to_owned());
    }
    let most = tried.facts.shared_bytes_optin / 4 * 4;
    let mut passed = true;
    let mut details = Vec::new();
    for bytes in [4096, 40_960, most / 8 * 4, most] {
        let seen = peek(tried, bytes).map_err(words)?;
        let full = seen.iter().filter(|count| **count == bytes / 4).count();
        let none = seen.iter().filter(|count| **count == 0).count();
        // A kernel that reads memory it did not write runs in many blocks: few of them may miss the poison.
        passed &= 10 * full >= 8 * seen.len() && none * 10 <= seen.len();
        details.push(format!(
            "{full} of {} blocks saw nothing but NaN in {bytes} bytes, {none} saw none, the others {}",
            seen.len(),
            ranges(seen.iter().filter(|count| **count != bytes / 4).copied()),
        ));
    }
    holds(passed, details.join("; "))
}

/// Formats the smallest and the largest of several numbers of words.
fn ranges(counts: impl Iterator<Item = u32> + Clone) -> String {
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) => format!("{least} to {most} words"),
        _ => "none".to_owned(),
    }
}

/// Returns the number of words of NaN in the shared memory of each of several blocks a
/// multiprocessor.
fn peek(tried: &mut TestContext, bytes: u32) -> Result<Vec<u32>, Judgement> {
    let blocks = tried.facts.sm_count * 8;
    let mut plan = plan(
        &tried.code,
        "peek",
        Element::U32,
        u64::from(blocks),
        Element::U32,
        f64::from(bytes / 4),
    );
    plan.launches[0].arguments = vec![1, 2];
    plan.launches[0].grid = [blocks, 1, 1];
    plan.launches[0].shared_bytes = bytes;
    tried.session.reset();
    let y = tried.session.alloc("y", 4 * u64::from(blocks))?;
    Session::poison(&mut tried.session, y, &[0])?;
    tried.session.run(&Run {
        code: &plan.code,
        launch: &plan.launches[0],
        plan: &plan,
        slots: &[None, Some(y), None],
        blocks: Blocks::All,
        order: Order::Natural,
        budget: None,
    })?;
    let output = tried.session.download(y)?;
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    Ok(output.chunks_exact(4).map(word).collect())
}

fn opt_in(tried: &mut TestContext) -> Result<String, String> {
    let mut plan = triple(&tried.code, 0.0);
    let most = tried.facts.shared_bytes_optin;
    plan.launches[0].shared_bytes = most;
    let (report, _) = run(&mut tried.session, &plan).map_err(words)?;
    holds(report.hazards.is_empty(), format!("{most} bytes a block"))
}

fn too_much_shared(tried: &mut TestContext) -> Result<String, String> {
    let bytes = tried.facts.shared_bytes_optin + 4;
    not_launched(tried, |plan| plan.launches[0].shared_bytes = bytes)
}

fn wrong_parameters(tried: &mut TestContext) -> Result<String, String> {
    if tried.facts.cuda < (12, 4) {
        return Ok("the driver does not tell parameters before CUDA 12.4".to_owned());
    }
    not_launched(tried, |plan| plan.launches[0].arguments = vec![0, 1])
}

/// Checks that an invalid plan is refused.
fn not_launched(tried: &mut TestContext, spoil: impl FnOnce(&mut Plan)) -> Result<String, String> {
    let mut plan = triple(&tried.code, 0.0);
    spoil(&mut plan);
    let result = run(&mut tried.session, &plan);
    refused(tried, result, Verdict::LaunchFailed)
}

fn full_memory(tried: &mut TestContext) -> Result<String, String> {
    tried.session.reset();
    let bytes = 2 * tried.facts.memory_bytes;
    let result = tried.session.alloc("too large", bytes);
    refused(tried, result, Verdict::OutOfMemory)
}

/// Checks that samples of few and of many launches agree, that the clock advances, and that outputs
/// are written again after poisoning.
fn timed(tried: &mut TestContext, cache: CacheMode) -> Result<String, String> {
    let plan = triple(&tried.code, 0.0);
    let mut attempt = || -> Result<String, Judgement> {
        let subject = tried.session.load_subject(&plan, 1)?;
        tried.session.sample(subject, cache, 50)?;
        let few = tried.session.sample(subject, cache, 50)?;
        Stopwatch::poison(&mut tried.session, subject)?;
        let many = tried.session.sample(subject, cache, 400)?;
        let sets = tried.session.outputs(subject)?;
        let mut written = true;
        for set in &sets {
            let bytes = match set.first() {
                Some((_, Contents::Host(bytes))) => bytes.clone(),
                Some((_, Contents::Device(kept))) => tried.session.fetch(*kept)?,
                None => Vec::new(),
            };
            written &= bytes.get(4..8) == Some(&3f32.to_le_bytes()[..]);
        }
        tried.session.release_all();
        tried.session.drop_subject(subject);
        let mhz = many.clock_mhz.unwrap_or(0.0);
        let agree = (few.micros / many.micros).ln().abs() < 0.7;
        let detail = format!(
            "{:.3} µs of 50 launches, {:.3} µs of 400, {mhz:.0} MHz, {} output sets written: {written}",
            few.micros,
            many.micros,
            sets.len()
        );
        let sound = agree && written && (100.0..5000.0).contains(&mhz);
        holds(sound, detail).map_err(|detail| Judgement::new(Verdict::Incorrect, detail))
    };
    attempt().map_err(words)
}

fn probes(tried: &mut TestContext) -> Result<String, String> {
    for probe in Probe::ALL {
        tried.session.probe(probe).map_err(words)?;
    }
    let promise = tried.facts.promise();
    let calibration = Calibration::measure(&mut tried.session, promise).map_err(words)?;
    // A rate above the data sheet's would be an error of the probe.
    let over = calibration
        .dram_gb_s
        .zip(promise.dram_gb_s)
        .is_some_and(|(probed, promised)| probed > 1.05 * promised);
    let detail = serde_json::to_string(&calibration).unwrap_or_default();
    holds(!over && calibration.null_us.is_some(), detail)
}

fn illegal_address(tried: &mut TestContext) -> Result<String, String> {
    let far = triple(&tried.code, 2f64.powi(42));
    let fault = match run(&mut tried.session, &far) {
        Ok(_) => return Err("not detected".to_owned()),
        Err(fault) => fault,
    };
    let near = triple(&tried.code, 0.0);
    let after = run(&mut tried.session, &near);
    let corrupted = tried.session.gpu.corrupted().is_some() && after.is_err();
    holds(
        fault.verdict == Verdict::OutOfBounds && corrupted,
        words(fault),
    )
}
