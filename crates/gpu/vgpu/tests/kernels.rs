//! Kernels as NVRTC compiles them (`tests/ptx/basic.cu`): results and hazards.
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a panic")]

use vgpu::{
    Arch, Arg, End, GlobalMemory, HazardKind, Launch, LaunchReport, Module, Schedule, launch,
};

const PTX: &str = include_str!("ptx/basic.ptx");

fn h100() -> &'static Arch {
    Arch::by_name("h100").unwrap()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn as_floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks(4)
        .map(|c| f32::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

struct Bench {
    module: Module,
    memory: GlobalMemory,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            module: Module::load(PTX).unwrap(),
            memory: GlobalMemory::new(1 << 30),
        }
    }

    fn input(&mut self, values: &[f32]) -> Arg {
        let id = self.memory.alloc(values.len() as u64 * 4, "input").unwrap();
        self.memory.write(id, 0, &floats(values));
        Arg::Buffer(id)
    }

    fn output(&mut self, elements: u64) -> Arg {
        Arg::Buffer(self.memory.alloc(elements * 4, "output").unwrap())
    }

    fn read(&self, arg: &Arg) -> Vec<f32> {
        let Arg::Buffer(id) = arg else {
            panic!("a buffer")
        };
        as_floats(&self.memory.read(*id))
    }

    fn run(&mut self, entry: &str, grid: u32, block: u32, args: Vec<Arg>) -> LaunchReport {
        let mut l = Launch::new(entry, [grid, 1, 1], [block, 1, 1], args);
        l.instruction_budget = 1 << 22;
        launch(&self.module, &mut self.memory, h100(), &l).unwrap()
    }
}

fn int(v: i32) -> Arg {
    Arg::Bytes(v.to_le_bytes().to_vec())
}

fn kinds(report: &LaunchReport) -> Vec<HazardKind> {
    report.hazards.iter().map(|h| h.kind).collect()
}

#[test]
fn saxpy_gives_the_right_numbers_and_no_hazard() {
    let mut b = Bench::new();
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let (x, y) = (b.input(&values), b.input(&values));
    let a = Arg::Bytes(2.0f32.to_le_bytes().to_vec());
    let report = b.run("saxpy", 8, 128, vec![x, y.clone(), a, int(1000)]);
    assert_eq!(report.hazards, []);
    assert_eq!(report.end, End::Completed);
    let expected: Vec<f32> = values.iter().map(|v| 3.0 * v).collect();
    assert_eq!(b.read(&y), expected);
}

#[test]
fn a_block_reduction_is_clean_and_a_missing_barrier_is_a_race() {
    let mut b = Bench::new();
    let values: Vec<f32> = (0..777).map(|i| (i % 7) as f32).collect();
    let (x, out) = (b.input(&values), b.output(1));
    let args = vec![x, out.clone(), int(777)];
    let report = b.run("reduce", 1, 256, args.clone());
    assert_eq!(report.hazards, []);
    assert_eq!(b.read(&out)[0], values.iter().sum::<f32>());
    let report = b.run("reduce_bad", 1, 256, args);
    assert_eq!(kinds(&report)[0], HazardKind::Race);
    assert_eq!(report.hazards[0].source.as_ref().unwrap().line, 16);
    assert_eq!(report.hazards[0].other.as_ref().unwrap().line, 17);
}

#[test]
fn a_store_beyond_the_requested_size_is_out_of_bounds() {
    let mut b = Bench::new();
    let y = b.output(100);
    let report = b.run("oob", 1, 128, vec![y, int(100)]);
    assert_eq!(kinds(&report), [HazardKind::OutOfBounds]);
    assert_eq!(
        (report.hazards[0].repeated, report.hazards[0].thread),
        (28, [100, 0, 0])
    );
}

#[test]
fn a_barrier_that_half_a_warp_reaches_is_a_barrier_divergence() {
    let mut b = Bench::new();
    let y = b.output(64);
    let report = b.run("divbar", 1, 64, vec![y, int(0)]);
    assert_eq!(kinds(&report), [HazardKind::BarrierDivergence]);
    assert_eq!(report.hazards[0].source.as_ref().unwrap().line, 25);
}

#[test]
fn a_last_block_reduction_with_a_fence_is_clean_and_without_one_a_race() {
    let mut b = Bench::new();
    let values: Vec<f32> = (0..2000).map(|i| (i % 5) as f32).collect();
    let (x, part, out) = (b.input(&values), b.output(16), b.output(1));
    let args = vec![x, part, out.clone(), int(2000)];
    for _ in 0..3 {
        let report = b.run("lastblock", 16, 128, args.clone());
        assert_eq!(report.hazards, []);
        assert_eq!(b.read(&out)[0], values.iter().sum::<f32>());
    }
    let report = b.run("lastblock_bad", 16, 128, args);
    assert!(kinds(&report).contains(&HazardKind::Race), "{report:?}");
}

#[test]
fn a_spin_lock_between_the_lanes_of_a_warp_makes_progress() {
    let mut b = Bench::new();
    let (lock, count) = (b.input(&[0.0]), b.input(&[0.0]));
    let report = b.run("spinlock", 2, 48, vec![lock, count.clone()]);
    assert_eq!(report.end, End::Completed, "{report:?}");
    assert_eq!(report.hazards, []);
    assert_eq!(b.read(&count)[0].to_bits(), 96);
}

/// Lanes spin until lane 0 stores, which waits for them where the branch ends: they repeat their state, however many
/// instructions their loop has, and yet progress is guaranteed.
#[test]
fn lanes_that_wait_for_a_lane_that_they_hold_back_make_progress() {
    for padding in 0..14 {
        let text = format!(
            ".version 8.0
            .target sm_80
            .address_size 64
            .visible .entry held(.param .u64 word) {{
            .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [word];
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra JOIN;
            SPIN: ld.relaxed.gpu.global.u32 %r2, [%rd1];
            {}
            setp.eq.u32 %p2, %r2, 0;
            @%p2 bra SPIN;
            JOIN: @%p1 st.relaxed.gpu.global.u32 [%rd1], 1;
            ret; }}",
            "mov.u32 %r3, 0;".repeat(padding)
        );
        let mut b = Bench::new();
        b.module = Module::load(&text).unwrap();
        let word = b.input(&[0.0]);
        let report = b.run("held", 1, 32, vec![word]);
        assert_eq!(report.end, End::Completed, "{padding}: {report:?}");
        assert_eq!(report.hazards, [], "{padding}");
    }
}

#[test]
fn waiting_for_what_nobody_writes_is_found() {
    let mut b = Bench::new();
    let p = b.input(&[0.0]);
    let report = b.run("endless", 1, 32, vec![p]);
    assert_eq!(kinds(&report), [HazardKind::Deadlock]);
}

#[test]
fn a_loop_that_reads_nothing_is_endless_and_one_that_reads_waits() {
    for (load, words) in [
        ("", "endless loop"),
        ("st.volatile.shared.u32 [word], %r1;", "endless loop"),
        ("ld.volatile.shared.u32 %r1, [word];", "wait in a loop"),
    ] {
        let text = format!(
            ".version 8.0
            .target sm_80
            .address_size 64
            .visible .entry loops() {{
            .shared .align 4 .b32 word;
            .reg .pred %p<2>; .reg .b32 %r<3>;
            mov.u32 %r1, 0;
            st.volatile.shared.u32 [word], %r1;
            LOOP:
            {load}
            add.u32 %r2, %r1, 0;
            setp.eq.u32 %p1, %r2, 0;
            @%p1 bra LOOP;
            ret;
            }}"
        );
        let module = Module::load(&text).unwrap();
        let l = Launch::new("loops", [1, 1, 1], [1, 1, 1], Vec::new());
        let report = launch(&module, &mut GlobalMemory::new(1 << 20), h100(), &l).unwrap();
        assert_eq!(kinds(&report), [HazardKind::Deadlock], "{words}");
        assert!(report.hazards[0].detail.contains(words), "{report:?}");
    }
}

/// Runs threads that wait for an `mbarrier` at which thread 0 arrives after a long loop, or never.
fn waiting(arrives: bool) -> LaunchReport {
    let arrive = if arrives {
        "mbarrier.arrive.shared.b64 %rd1, [%r2];"
    } else {
        ""
    };
    let text = format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry waits() {{
        .shared .align 8 .b64 bar;
        .reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, bar;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra READY;
        mbarrier.init.shared.b64 [%r2], 1;
        READY:
        bar.sync 0;
        setp.ge.u32 %p1, %r1, 32;
        @%p1 bra WAIT;
        mov.u32 %r3, 0;
        LOOP:
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p2, %r3, 20000;
        @%p2 bra LOOP;
        setp.ne.u32 %p3, %r1, 0;
        @%p3 bra WAIT;
        {arrive}
        WAIT:
        mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
        @!%p2 bra WAIT;
        ret;
        }}"
    );
    let module = Module::load(&text).unwrap();
    let mut memory = GlobalMemory::new(1 << 20);
    let mut l = Launch::new("waits", [1, 1, 1], [256, 1, 1], Vec::new());
    l.instruction_budget = 1 << 22;
    launch(&module, &mut memory, h100(), &l).unwrap()
}

#[test]
fn warps_that_poll_an_mbarrier_leave_the_turn_to_the_one_they_wait_for() {
    let report = waiting(true);
    assert_eq!(report.end, End::Completed, "{report:?}");
    assert_eq!(report.hazards, []);
    // The loop takes 60,000; polling for whole turns would take seven times as many.
    let ran = report.counters.warp_instructions;
    assert!((60_000..80_000).contains(&ran), "{ran}");
}

#[test]
fn an_mbarrier_at_which_nobody_arrives_is_a_deadlock() {
    assert_eq!(kinds(&waiting(false)), [HazardKind::Deadlock]);
}

#[test]
fn shared_memory_that_nobody_wrote_is_uninitialized() {
    let mut b = Bench::new();
    let y = b.output(64);
    let report = b.run("uninit", 1, 64, vec![y]);
    assert_eq!(kinds(&report), [HazardKind::Uninitialized]);
    assert_eq!(report.hazards[0].thread, [32, 0, 0]);
}

#[test]
fn a_random_schedule_changes_no_verdict() {
    let mut b = Bench::new();
    let values = vec![1.0; 512];
    let (x, out) = (b.input(&values), b.output(1));
    for seed in 0..4 {
        let args = vec![x.clone(), out.clone(), int(512)];
        let mut l = Launch::new("reduce", [1, 1, 1], [256, 1, 1], args);
        l.schedule = Schedule::Random { seed };
        let report = launch(&b.module, &mut b.memory, h100(), &l).unwrap();
        assert_eq!(report.hazards, []);
        assert_eq!(b.read(&out)[0], 512.0);
    }
}

#[test]
fn variables_of_a_module_outlive_a_memory_when_they_are_carried_over() {
    const COUNTER: &str = "
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 count = 5;
.visible .entry bump(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r1, [count];
    add.u32 %r1, %r1, 1;
    st.global.u32 [count], %r1;
    st.global.u32 [%rd2], %r1;
    ret;
}";
    let module = Module::load(COUNTER).unwrap();
    let run = |carried: Option<&[Vec<u8>]>| {
        let mut memory = GlobalMemory::new(1 << 20);
        let out = memory.alloc(4, "out").unwrap();
        if let Some(values) = carried {
            module.set_variables(&mut memory, values).unwrap();
        }
        let found = module.variables(&mut memory).unwrap();
        let l = Launch::new("bump", [1, 1, 1], [1, 1, 1], vec![Arg::Buffer(out)]);
        launch(&module, &mut memory, h100(), &l).unwrap();
        (
            found,
            memory.read(out),
            module.variables(&mut memory).unwrap(),
        )
    };
    let (found, out, left) = run(None);
    assert_eq!((found[0][0], out[0], left[0][0]), (5, 6, 6));
    let (found, out, left) = run(Some(&left));
    assert_eq!((found[0][0], out[0], left[0][0]), (6, 7, 7));
    assert_eq!(run(None).1[0], 6, "a fresh memory begins anew");
}
