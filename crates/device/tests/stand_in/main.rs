//! The complete path of a candidate on the stand-in driver, and the outcome of every error that a driver
//! call can return.

#![expect(clippy::expect_used, reason = "a test that cannot go on should fail")]

mod errors;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use tuner_core::cache_mode::CacheMode;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference, PlanVariable, Role};
use tuner_core::record::Verdict;
use tuner_device::gpu::GpuError;
use tuner_device::gpu::context::Gpu;
use tuner_device::gpu::driver::LaunchConfig;
use tuner_device::gpu::helpers::{self, Helpers};
use tuner_device::gpu::nvml::Monitor;
use tuner_device::gpu::session::GpuSession;
use tuner_judge::session::{Blocks, Contents, Order, Run, Session};
use tuner_judge::stopwatch::Stopwatch;
use tuner_judge::timing::calibration::{Probe, Prober};
use tuner_testkit::fake::{Costs, Failing, Gauges, Meter, Notes, VirtualDriver};

/// Minimal helper kernels: the stand-in recognises them by name.
const HELPERS: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry tuner_poison_shared(.param .u32 a) { ret; }
.visible .entry tuner_stamp(.param .u64 a, .param .u64 b) { ret; }
.visible .entry tuner_spin(.param .u32 a) { ret; }
.visible .entry tuner_null() { ret; }
.visible .entry tuner_copy(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
.visible .entry tuner_read(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d) { ret; }
.visible .entry tuner_single(.param .u64 a, .param .u32 b) { ret; }
.visible .entry tuner_tensor(.param .u64 a, .param .u32 b) { ret; }
";

/// `y[i + shift] = x[i] * factor` for 64 threads, without a bounds check.
const SCALE: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .const .align 4 .b8 table[16];
.visible .entry scale(.param .u64 px, .param .u64 py, .param .f32 pf, .param .u32 ps)
{
    .reg .b64 %rd<8>;
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [px];
    ld.param.u64 %rd2, [py];
    ld.param.f32 %f1, [pf];
    ld.param.u32 %r2, [ps];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    add.s32 %r3, %r1, %r2;
    mul.wide.s32 %rd5, %r3, 4;
    add.s64 %rd6, %rd2, %rd5;
    st.global.f32 [%rd6], %f3;
    ret;
}
";

fn code_of(ptx: &str) -> Code {
    Code {
        ptx: "".into(),
        cubin: ptx.as_bytes().into(),
        registers: 16,
        static_shared_bytes: 0,
        kernels: std::collections::BTreeMap::new(),
    }
}

fn argument(name: &str, element: Element, role: Role, value: f64) -> PlanArgument {
    let shape: &[u64] = if role == Role::Scalar { &[] } else { &[64] };
    PlanArgument {
        fill: Fill::Arange,
        value,
        ..PlanArgument::new(name, element, role, shape)
    }
}

/// Returns the candidate, which writes `shift` elements too far.
fn plan(shift: f64) -> Plan {
    Plan {
        variables: vec![PlanVariable {
            holds: PlanArgument {
                shape: vec![4],
                ..argument("table", Element::F32, Role::Input, 0.0)
            },
        }],
        ..Plan::new(
            vec![
                argument("x", Element::F32, Role::Input, 0.0),
                argument("y", Element::F32, Role::Output, 0.0),
                argument("factor", Element::F32, Role::Scalar, 3.0),
                argument("shift", Element::I32, Role::Scalar, shift),
            ],
            vec![PlanLaunch::new(
                "scale",
                [1, 1, 1],
                [64, 1, 1],
                vec![0, 1, 2, 3],
            )],
            code_of(SCALE),
            PlanReference::Oracle("none".to_owned()),
        )
    }
}

fn session(driver: Failing<VirtualDriver>) -> Result<GpuSession, GpuError> {
    let gpu = Gpu::open(Box::new(driver), 0)?;
    let helpers = Helpers::new(code_of(HELPERS));
    // The stand-in recognises helper kernels by name only: tests/device_gate.rs tests their
    // results.
    let session = GpuSession::new(gpu, helpers, Monitor::default());
    Ok(session.comparing_on_host())
}

fn sound() -> GpuSession {
    let (driver, _) = Failing::new(VirtualDriver::with_arch(arch()), "", 0);
    session(driver).expect("the stand-in opens")
}

fn arch() -> &'static vgpu::Arch {
    vgpu::Arch::by_name("l4").expect("an architecture")
}

/// Runs the plan once as the gate does; returns the output.
fn run(session: &mut GpuSession, plan: &Plan) -> Result<(Vec<u8>, usize), Judgement> {
    session.reset();
    let x = session.alloc("x", 256)?;
    let y = session.alloc("y", 256)?;
    let input: Vec<u8> = (0..64).flat_map(|i| (i as f32).to_le_bytes()).collect();
    session.upload(x, &input)?;
    Session::poison(session, y, Element::F32.poison())?;
    let slots = [Some(x), Some(y), None, None];
    let report = session.run(&Run {
        code: &plan.code,
        launch: &plan.launches[0],
        plan,
        slots: &slots,
        blocks: Blocks::All,
        order: Order::Natural,
        budget: None,
    })?;
    Ok((session.download(y)?, report.hazards.len()))
}

/// Performs every operation of the tuner on a GPU.
fn everything(driver: Failing<VirtualDriver>) -> Result<(), Result<GpuError, (Judgement, bool)>> {
    let mut session = session(driver).map_err(Ok)?;
    let all = all_steps(&mut session);
    let corrupted = session.gpu.corrupted().is_some();
    // A tolerated failure is still recorded.
    match all {
        Ok(()) if corrupted => Err(Err((Judgement::new(Verdict::Ok, String::new()), true))),
        Ok(()) => Ok(()),
        Err(fault) => Err(Err((fault, corrupted))),
    }
}

fn all_steps(session: &mut GpuSession) -> Result<(), Judgement> {
    let plan = plan(0.0);
    session.gpu.kernel_facts(&plan.code, "scale", 64, 0)?;
    run(session, &plan)?;
    let mut together = plan.clone();
    together.launches[0].cooperative = true;
    run(session, &together)?;
    // Code without owners is unloaded.
    drop(together);
    let subject = session.load_subject(&plan, 7)?;
    for cache in [CacheMode::Warm, CacheMode::Cold] {
        session.sample(subject, cache, 3)?;
    }
    Stopwatch::poison(session, subject)?;
    session.sample(subject, CacheMode::Cold, 3)?;
    session.outputs(subject)?;
    // The large buffers of the other probes are not needed.
    for probe in [Probe::Null, Probe::Single] {
        session.probe(probe)?;
    }
    session.drop_subject(subject);
    drop(plan);
    session.next_job();
    Ok(())
}

#[test]
fn clusters_are_launched_by_the_call_that_names_them_where_the_gpu_has_any() {
    let mut plan = plan(0.0);
    plan.launches[0].cluster = Some([1, 1, 1]);
    let judgement = run(&mut sound(), &plan).unwrap_err();
    assert_eq!(judgement.verdict, Verdict::LaunchFailed);
    let detail = &judgement.detail;
    assert!(
        detail.contains("8.9 has no thread block clusters"),
        "{detail}"
    );
    let arch = vgpu::Arch::by_name("h100").expect("an architecture");
    let (driver, notes) = Failing::new(VirtualDriver::with_arch(arch), "", 0);
    let mut session = session(driver).expect("the stand-in opens");
    run(&mut session, &plan).unwrap();
    assert!(notes.borrow().calls.contains(&"cuLaunchKernelEx"));
}

#[test]
fn a_right_kernel_runs_and_its_guard_regions_stay_whole() {
    let mut session = sound();
    let (output, hazards) = run(&mut session, &plan(0.0)).unwrap();
    let wanted: Vec<u8> = (0..64)
        .flat_map(|i| (3.0 * i as f32).to_le_bytes())
        .collect();
    assert_eq!((output, hazards), (wanted, 0));
}

#[test]
fn a_write_just_outside_a_buffer_is_seen_in_its_guard_regions_and_one_far_outside_poisons_the_context()
 {
    for (shift, words) in [(1.0, "0 after its end"), (-2.0, "before its first byte")] {
        let mut session = sound();
        let plan = plan(shift);
        session.reset();
        let x = session.alloc("x", 256).unwrap();
        let y = session.alloc("y", 256).unwrap();
        session.upload(x, &[0; 256]).unwrap();
        let report = session
            .run(&Run {
                code: &plan.code,
                launch: &plan.launches[0],
                plan: &plan,
                slots: &[Some(x), Some(y), None, None],
                blocks: Blocks::All,
                order: Order::Natural,
                budget: None,
            })
            .unwrap();
        assert_eq!(report.hazards[0].kind, Verdict::OutOfBounds);
        assert!(
            report.hazards[0].detail.contains(words),
            "{:?}",
            report.hazards
        );
        assert!(session.gpu.corrupted().is_none());
    }
    let mut session = sound();
    let fault = run(&mut session, &plan(1e7)).unwrap_err();
    assert_eq!(fault.verdict, Verdict::OutOfBounds, "{fault:?}");
    assert!(session.gpu.corrupted().is_some() && !session.gpu.is_device_fault());
    // From here on every call in this process fails with the reason.
    let fault = run(&mut session, &plan(0.0)).unwrap_err();
    assert!(fault.detail.contains("ILLEGAL_ADDRESS"), "{fault:?}");
}

#[test]
fn timed_launches_write_every_set_again_after_poison() {
    let mut session = sound();
    let subject = session.load_subject(&plan(0.0), 7).unwrap();
    for cache in [CacheMode::Warm, CacheMode::Cold] {
        let sample = session.sample(subject, cache, 40).unwrap();
        assert!(sample.micros > 0.0 && sample.micros < 10.0, "{sample:?}");
        Stopwatch::poison(&mut session, subject).unwrap();
        session.sample(subject, cache, 300).unwrap();
        for set in session.outputs(subject).unwrap() {
            let (index, bytes) = &set[0];
            let Contents::Host(bytes) = bytes else {
                panic!("compared on the host");
            };
            assert_eq!((*index, &bytes[4..8]), (1, &3f32.to_le_bytes()[..]));
        }
    }
}

/// Returns the candidate on one buffer: `y = 3 * y`.
fn in_place() -> Plan {
    let mut plan = plan(0.0);
    plan.arguments[1].role = Role::Inout;
    plan.launches[0].arguments = vec![1, 1, 2, 3];
    plan
}

#[test]
fn what_launches_change_in_place_begins_anew_with_each_sample_and_is_judged_after_one_launch() {
    let (driver, notes) = Failing::new(VirtualDriver::with_arch(arch()), "", 0);
    let mut session = session(driver).expect("the stand-in opens");
    let subject = session.load_subject(&in_place(), 7).unwrap();
    for cache in [CacheMode::Warm, CacheMode::Cold] {
        session.sample(subject, cache, 40).unwrap();
        notes.borrow_mut().calls.clear();
        session.sample(subject, cache, 40).unwrap();
        let calls = notes.borrow().calls.clone();
        let place = |name: &str| calls.iter().position(|call| *call == name);
        let (restored, timed) = (place("cuMemcpyDtoDAsync_v2"), place("cuGraphLaunch"));
        assert!(restored.is_some() && restored < timed, "{calls:?}");
        for set in session.outputs(subject).unwrap() {
            let (index, bytes) = &set[0];
            let Contents::Host(bytes) = bytes else {
                panic!("compared on the host");
            };
            // Not 3, which an earlier launch left, nor 9 times the number.
            assert_eq!((*index, &bytes[4..8]), (1, &3f32.to_le_bytes()[..]));
            assert_eq!(&bytes[8..12], 6f32.to_le_bytes());
        }
        assert!(!session.overflowed(subject).unwrap());
    }
}

#[test]
fn values_that_launches_drove_to_infinity_are_noticed() {
    let mut session = sound();
    let mut plan = in_place();
    plan.arguments[2].value = 1e38;
    let subject = session.load_subject(&plan, 7).unwrap();
    session.sample(subject, CacheMode::Warm, 3).unwrap();
    assert!(session.overflowed(subject).unwrap());
}

#[test]
fn a_subject_outlives_the_job_whose_equal_code_was_loaded_first() {
    let mut session = sound();
    // The same SASS twice, as in two separate messages.
    let (candidate, reference) = (plan(0.0), plan(0.0));
    run(&mut session, &candidate).unwrap();
    let subject = session.load_subject(&reference, 7).unwrap();
    drop((candidate, reference));
    session.next_job();
    session.sample(subject, CacheMode::Warm, 3).unwrap();
    session.sample(subject, CacheMode::Cold, 5).unwrap();
}

/// Returns a stand-in with the call costs of a server, and the log of its calls.
fn costing(kernel_us: f64, l2_bytes: u64) -> (GpuSession, Gauges, Rc<RefCell<Notes>>) {
    let driver = VirtualDriver::with_arch(arch())
        .costing(Costs::REALISTIC, Some(kernel_us))
        .with_cache(l2_bytes);
    let gauges = driver.gauges();
    let (driver, notes) = Failing::new(driver, "", 0);
    (session(driver).expect("the stand-in opens"), gauges, notes)
}

#[test]
fn a_span_that_began_before_the_host_had_queued_all_is_done_again_behind_a_longer_spin() {
    // 500 launches of 3 µs are not queued within the first spin.
    let (mut session, _, notes) = costing(2.0, 1 << 10);
    for probe in [Probe::Null, Probe::DramCopy] {
        session.probe(probe).unwrap();
    }
    let config = LaunchConfig {
        grid: [1, 1, 1],
        block: [32, 1, 1],
        shared_bytes: 0,
        parameters: Vec::new(),
        cluster: None,
        cooperative: false,
    };
    session.helper(helpers::entry::NULL).unwrap();
    notes.borrow_mut().calls.clear();
    let span = session.timed(1, &mut |session| {
        (0..500).try_for_each(|_| session.queue(helpers::entry::NULL, &config))
    });
    let queries = |notes: &Notes| {
        let calls = notes.calls.iter();
        calls.filter(|call| **call == "cuEventQuery").count()
    };
    assert!(queries(&notes.borrow()) > 1, "{}", queries(&notes.borrow()));
    let span = span.unwrap();
    // The null kernel takes 1 µs here; including the host's queueing it would be 3.
    assert!(!span.late && span.micros < 550.0, "{span:?}");
    // The adjusted spin is kept.
    notes.borrow_mut().calls.clear();
    session
        .timed(1, &mut |session| {
            (0..500).try_for_each(|_| session.queue(helpers::entry::NULL, &config))
        })
        .unwrap();
    assert_eq!(queries(&notes.borrow()), 1);
}

#[test]
fn a_new_graph_is_uploaded_before_its_first_launch_and_nothing_is_looked_up_in_the_window() {
    let (mut session, _, notes) = costing(2.0, 1 << 10);
    let subject = session.load_subject(&plan(0.0), 7).unwrap();
    session.sample(subject, CacheMode::Warm, 3).unwrap();
    notes.borrow_mut().calls.clear();
    session.sample(subject, CacheMode::Warm, 5).unwrap();
    let calls = notes.borrow().calls.clone();
    let at = |call: &str| calls.iter().position(|known| *known == call);
    assert!(at("cuGraphUpload") < at("cuGraphLaunch"), "{calls:?}");
    // Between the two spins and the last stamp: launches, the events, the graph, and no other call.
    let first = calls
        .iter()
        .rposition(|call| *call == "cuStreamSynchronize");
    let last = at("cuEventQuery").unwrap();
    let spun = calls[..last]
        .iter()
        .rposition(|call| *call == "cuStreamSynchronize");
    let window: BTreeSet<&str> = calls[spun.unwrap() + 1..last].iter().copied().collect();
    assert!(first > spun);
    let queueing = ["cuLaunchKernel", "cuEventRecord", "cuGraphLaunch"];
    assert_eq!(window, queueing.into_iter().collect());
}

#[test]
fn a_cold_sample_finds_nothing_of_the_sample_before_in_the_cache() {
    // One set of buffers fits into the cache many times over.
    let (mut session, gauges, _) = costing(2.0, 4 << 20);
    let subject = session.load_subject(&plan(0.0), 7).unwrap();
    session.sample(subject, CacheMode::Warm, 3).unwrap();
    session.sample(subject, CacheMode::Warm, 3).unwrap();
    assert!(gauges.hits() > 0, "warm samples find their buffers");
    let before = gauges.hits();
    for launches in [1, 3, 3, 1, 500] {
        session.sample(subject, CacheMode::Cold, launches).unwrap();
        assert_eq!(gauges.hits(), before, "{launches} launches");
    }
}

#[test]
fn a_window_of_the_energy_counter_holds_what_the_launches_draw() {
    let driver = VirtualDriver::with_arch(arch()).costing(Costs::NONE, Some(10.0));
    let meter = Meter(driver.gauges());
    let gpu = Gpu::open(Box::new(driver), 0).expect("the stand-in opens");
    let mut monitor = Monitor::default();
    monitor.counter = Some(Box::new(meter));
    let mut session = GpuSession::new(gpu, Helpers::new(code_of(HELPERS)), monitor);
    let subject = session.load_subject(&plan(0.0), 7).unwrap();
    let draw = session.draw(subject, 20, 400).unwrap();
    let draw = draw.expect("the stand-in counts");
    assert!((400..800).contains(&draw.launches), "{draw:?}");
    // 300 W, and 10 µs per launch.
    let launch_mj = draw.millijoules as f64 / draw.launches as f64;
    assert!((launch_mj - 3.0).abs() < 0.3, "{draw:?}");
}

#[test]
fn a_gpu_that_counts_no_energy_draws_nothing_that_is_known() {
    let mut session = sound();
    let subject = session.load_subject(&plan(0.0), 7).unwrap();
    assert_eq!(session.draw(subject, 20, 400).unwrap(), None);
}

#[test]
fn every_probe_gives_a_rate() {
    let mut session = sound();
    for probe in Probe::ALL {
        let (sample, work) = session.probe(probe).unwrap().expect("the unit is there");
        assert!(sample.micros > 0.0, "{probe:?}");
        assert_eq!(work > 0.0, probe != Probe::Null, "{probe:?}");
    }
}
