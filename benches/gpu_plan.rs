//! What a candidate costs a GPU, on the stand-in for the driver with the costs of a server: a launch in
//! 3 µs, copies at 12 GB/s, an image loaded in 0.3 ms. Time is virtual: the figures are the same on
//! every machine, but for those of the compiler, which is timed here. The device counts as busy while it
//! runs kernels of candidates, references and the gate, and while it waits behind the spinning kernel.
//!
//! `cargo bench --bench gpu_plan [-- CANDIDATES]`; needs NVRTC (`make nvrtc`).
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;
use tuner_core::element::Element;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference, Role};
use tuner_device::gpu::context::Gpu;
use tuner_device::gpu::helpers::{Helpers, compile};
use tuner_device::gpu::nvml::Monitor;
use tuner_device::gpu::session::GpuSession;
use tuner_judge::gate::level::Level;
use tuner_judge::gate::references::References;
use tuner_judge::gate::verify::{Demands, verify};
use tuner_judge::gate::{Verified, recheck};
use tuner_judge::session::Session as _;
use tuner_judge::stopwatch::{Stopwatch, Subject};
use tuner_judge::timing::calibration::NeededWork;
use tuner_judge::timing::executor::{TimingSession, race_candidate, settle};
use tuner_judge::timing::plan::Settings;
use tuner_kernel::compile::{Compiler, CompilerSettings, Isolation};
use tuner_testkit::fake::{Costs, VirtualDriver};

const ARCH: &str = "sm_89";
/// The best kernel's time, microseconds.
const KERNEL_US: f64 = 100.0;
/// Rows and columns of the problem.
const SHAPE: [u64; 2] = [256, 512];
/// Cores that compile.
const CORES: f64 = 16.0;

const SOURCE: &str = r#"
extern "C" __global__ void scale(const float* x, float* y, int columns) {
    extern __shared__ float unused[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = i / columns;
    float top = -1e30f, sum = 0;
    for (int j = 0; j < 8; j++) top = fmaxf(top, x[row * columns + j]);
    for (int j = 0; j < 8; j++) sum += expf(x[row * columns + j] - top);
    y[i] = x[i] + 0.0f * sum;
}
"#;

/// The reference: every element is copied.
const REFERENCE: &str = r#"
extern "C" __global__ void plain(const float* x, float* y, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
"#;

fn as_image(code: Code) -> Code {
    Code {
        cubin: code.ptx.as_bytes().into(),
        ..code
    }
}

/// A candidate that takes `slower` nanoseconds more than the best: a byte of shared memory each.
fn plan(code: &Code, reference: &Code, slower: u32) -> Plan {
    let argument = |name: &str, element, role, shape: &[u64], value| PlanArgument {
        value,
        ..PlanArgument::new(name, element, role, shape)
    };
    let blocks = (SHAPE[0] * SHAPE[1] / 256) as u32;
    let launch = |entry: &str, shared_bytes| PlanLaunch {
        shared_bytes,
        ..PlanLaunch::new(entry, [blocks, 1, 1], [256, 1, 1], vec![0, 1, 2])
    };
    Plan::new(
        vec![
            argument("x", Element::F32, Role::Input, &SHAPE, 0.0),
            argument("y", Element::F32, Role::Output, &SHAPE, 0.0),
            argument("columns", Element::I32, Role::Scalar, &[], SHAPE[1] as f64),
        ],
        vec![launch("scale", slower)],
        code.clone(),
        PlanReference::Kernel {
            code: reference.clone(),
            launch: launch("plain", 0),
            oracle: None,
        },
    )
}

/// Judges what the timed launches left.
fn again(
    plan: &Plan,
    (watch, subject): (&mut dyn Stopwatch, Subject),
    references: &mut References,
) -> Result<(), Judgement> {
    let outputs = watch.outputs(subject)?;
    let Some(session) = watch.as_session() else {
        return Ok(());
    };
    let found = recheck(plan, 7, &outputs, references, session);
    session.release_all();
    found.unwrap_or(Ok(()))
}

struct Bench {
    session: GpuSession,
    references: References,
}

impl Bench {
    fn gate(&mut self, plan: &Plan, level: Level) -> Result<Verified, Judgement> {
        let demands = Demands::for_level(level, &[7], 0);
        let found = verify(&mut self.session, plan, &demands, &mut self.references);
        self.session.reset();
        match found {
            Ok(found) => found.map(|(verified, _)| verified),
            Err(error) => Err(Judgement::new(
                tuner_core::record::Verdict::Incorrect,
                error.to_string(),
            )),
        }
    }

    /// As a worker does it: screened, raced, and proven where it may win. Whether it may.
    fn measure(&mut self, timing: &mut TimingSession, plan: &Plan) -> Result<bool, Judgement> {
        let mut verified = self.gate(plan, Level::First)?;
        let candidate = self.session.load_subject(plan, 7)?;
        let raced = race_candidate(
            &mut self.session,
            timing,
            candidate,
            &mut |watch, subject| again(plan, (watch, subject), &mut self.references),
        )?;
        let contender = raced.is_contender();
        if contender {
            verified = self.gate(plan, Level::Timing)?;
        }
        let work = NeededWork::from_plan(plan);
        let timed = settle(
            &verified,
            &mut self.session,
            timing,
            raced,
            &work,
            &mut |watch, subject| again(plan, (watch, subject), &mut self.references),
        )?;
        if timed.replaces_incumbent {
            timing.incumbent = Some(timed.as_incumbent());
        } else {
            self.session.drop_subject(candidate);
        }
        Ok(contender)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(40);
    let compiler = Compiler::new(CompilerSettings {
        isolation: Isolation::InProcess,
        cache: None,
        ..CompilerSettings::default()
    })?;
    let arch = vgpu::Arch::by_name("l4").ok_or("no such table")?;
    let driver = VirtualDriver::with_arch(arch).costing(Costs::REALISTIC, Some(KERNEL_US));
    let gauges = driver.gauges();
    let gpu = Gpu::open(Box::new(driver), 0)?;
    let began = Instant::now();
    let helpers = as_image(Helpers::compile(&compiler, ARCH)?);
    let compile_s = began.elapsed().as_secs_f64();
    let code = as_image(compile(&compiler, "scale.cu", SOURCE, "scale", ARCH)?);
    let reference = as_image(compile(&compiler, "plain.cu", REFERENCE, "plain", ARCH)?);
    let mut bench = Bench {
        session: GpuSession::new(gpu, Helpers::new(helpers), Monitor::default()),
        references: References::default(),
    };
    let text = |fault: Judgement| fault.to_string();
    let first = plan(&code, &reference, 40_000);
    let subject = bench.session.load_subject(&first, 7).map_err(text)?;
    let settings = Settings::default();
    let session = &mut bench.session;
    let mut timing = TimingSession::begin(session, subject, None, None, settings).map_err(text)?;
    let (host, busy) = (gauges.host_us(), gauges.busy_us());
    let mut contenders = 0;
    for number in 0..count {
        // Every tenth candidate is near the best; the others are slower by a quarter and more.
        let slower = if number % 10 == 0 {
            40_000 / (number + 10)
        } else {
            30_000 + number * 100
        };
        let candidate = plan(&code, &reference, slower);
        contenders += u32::from(bench.measure(&mut timing, &candidate).map_err(text)?);
    }
    let (host, busy) = (gauges.host_us() - host, gauges.busy_us() - busy);
    let a_second = f64::from(count) / host * 1e6;
    println!(
        "{count} candidates of {KERNEL_US} µs and slower, {contenders} of them within 15 % of the best"
    );
    println!(
        "a candidate takes {:.1} ms of the device's time: {a_second:.1} a second; busy {:.1} %",
        host / 1e3 / f64::from(count),
        100.0 * busy / host
    );
    println!("the tuner's own kernels compile in {compile_s:.2} s here");
    for seconds in [0.5, 1.0, 1.5, 3.0] {
        let supply = CORES / seconds;
        let share = (supply / a_second).min(1.0);
        println!(
            "{CORES} cores, {seconds} s a compile: {:.0} candidates an hour, GPU busy {:.0} %",
            3600.0 * supply.min(a_second),
            100.0 * share * busy / host
        );
    }
    Ok(())
}
