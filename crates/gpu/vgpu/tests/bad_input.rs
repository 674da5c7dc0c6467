//! Bad input: every text and every launch ends in an error value, never in a panic or a hang.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should fail"
)]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use vgpu::{
    Arch, Arg, End, GlobalMemory, HazardKind, Launch, LaunchError, LaunchReport, LoadError, Module,
    Schedule, launch,
};

const HEAD: &str = ".version 9.0\n.target sm_80\n.address_size 64\n";

fn kernel(params: &str, body: &str) -> String {
    format!("{HEAD}.visible .entry k({params})\n{{\n{body}\nret;\n}}\n")
}

fn h100() -> &'static Arch {
    Arch::by_name("h100").expect("a known device")
}

/// Runs `k` with a buffer for every parameter.
fn run(
    text: &str,
    grid: [u32; 3],
    block: [u32; 3],
    change: impl FnOnce(&mut Launch),
) -> Result<LaunchReport, LaunchError> {
    let module = Module::load(text).expect("the text is PTX");
    let mut memory = GlobalMemory::new(1 << 24);
    let count = module.entry("k").map_or(0, |e| e.params.len());
    let args = (0..count).map(|_| {
        let id = memory.alloc(4096, "buffer").expect("memory");
        memory.write(id, 0, &[0; 4096]);
        Arg::Buffer(id)
    });
    let mut wanted = Launch::new("k", grid, block, args.collect());
    wanted.instruction_budget = 1 << 16;
    wanted.wall_deadline = Some(Instant::now() + Duration::from_secs(20));
    change(&mut wanted);
    launch(&module, &mut memory, h100(), &wanted)
}

fn refused(
    text: &str,
    grid: [u32; 3],
    block: [u32; 3],
    change: impl FnOnce(&mut Launch),
) -> String {
    match run(text, grid, block, change) {
        Ok(report) => panic!("it ran: {report:?}"),
        Err(why) => why.to_string(),
    }
}

#[test]
fn launches_over_a_limit_are_refused_with_the_limit() {
    let text = kernel("", "");
    for (grid, block, word) in [
        ([0, 1, 1], [32, 1, 1], "zero"),
        ([1, 1, 0], [32, 1, 1], "zero"),
        ([1, 70_000, 1], [32, 1, 1], "65535"),
        ([u32::MAX, 1, 1], [32, 1, 1], "2^31-1"),
        ([2_000_000_000, 65_535, 65_535], [1, 1, 1], "blocks"),
        ([1, 1, 1], [0, 1, 1], "zero"),
        ([1, 1, 1], [1025, 1, 1], "1024"),
        ([1, 1, 1], [32, 32, 2], "1024"),
        ([1, 1, 1], [1, 1, 65], "64"),
        ([1, 1, 1], [u32::MAX, u32::MAX, u32::MAX], "1024"),
    ] {
        let why = refused(&text, grid, block, |_| {});
        assert!(why.contains(word), "{grid:?} {block:?}: {why}");
    }
}

#[test]
fn too_much_shared_memory_is_refused_with_both_sizes() {
    let why = refused(&kernel("", ""), [1; 3], [32, 1, 1], |l| {
        l.dynamic_shared_bytes = u32::MAX;
    });
    assert!(why.contains("4294967295"), "{why}");
    for bytes in ["60000", "4000000000", "999999999999999"] {
        let text = kernel("", &format!(".shared .align 4 .b8 s[{bytes}];"));
        if let Ok(module) = Module::load(&text) {
            let mut memory = GlobalMemory::new(1 << 20);
            let wanted = Launch::new("k", [1; 3], [32, 1, 1], vec![]);
            launch(&module, &mut memory, h100(), &wanted).expect_err(bytes);
        }
    }
}

#[test]
fn more_local_memory_than_a_thread_has_is_refused() {
    for bytes in ["600000", "4294967295", "4294967296", "99999999999999"] {
        let text = kernel("", &format!(".local .align 4 .b8 d[{bytes}];"));
        if let Ok(module) = Module::load(&text) {
            let mut memory = GlobalMemory::new(1 << 20);
            let wanted = Launch::new("k", [1; 3], [32, 1, 1], vec![]);
            launch(&module, &mut memory, h100(), &wanted).expect_err(bytes);
        }
    }
}

#[test]
fn memory_that_the_host_has_not_is_an_error() {
    let mut small = GlobalMemory::new(1000);
    small.alloc(1001, "x").expect_err("over the limit");
    small.alloc(1000, "x").expect("at the limit");
    let mut boundless = GlobalMemory::new(u64::MAX);
    for bytes in [u64::MAX, u64::MAX - 3, 1 << 62, 1 << 50] {
        boundless.alloc(bytes, "x").expect_err("more than any host");
    }
    let text = format!("{HEAD}.global .b8 big[1000000];\n.visible .entry k()\n{{\nret;\n}}\n");
    let module = Module::load(&text).expect("the text is PTX");
    let wanted = Launch::new("k", [1; 3], [32, 1, 1], vec![]);
    let error = launch(&module, &mut small, h100(), &wanted).expect_err("no room for variables");
    assert!(matches!(error, LaunchError::Memory(_)), "{error}");
}

#[test]
fn texts_that_declare_absurd_sizes_are_errors() {
    for line in [
        ".reg .b32 %r<4294967295>;",
        ".reg .b32 %r<99999999999999999999>;",
        ".local .align 4294967296 .b8 d[4];",
        ".shared .align 3 .b8 d[4];",
        ".shared .align 0 .b8 d[4];",
        ".param .align 8 .b8 p[4294967295];",
        ".param .align 8 .b8 p[18446744073709551615];",
        ".shared .v4 .f32 d[1073741824][1073741824];",
    ] {
        if let Ok(module) = Module::load(&kernel("", line)) {
            let mut memory = GlobalMemory::new(1 << 20);
            let wanted = Launch::new("k", [1; 3], [32, 1, 1], vec![]);
            let _ = launch(&module, &mut memory, h100(), &wanted);
        }
    }
    for params in [
        ".param .b8 p[4294967295]",
        ".param .align 16 .b8 p[4000000000], .param .u64 q, .param .b8 r[4000000000]",
    ] {
        if let Ok(module) = Module::load(&kernel(params, "")) {
            let _ = module.supported("k");
            let mut memory = GlobalMemory::new(1 << 20);
            let wanted = Launch::new("k", [1; 3], [32, 1, 1], vec![]);
            launch(&module, &mut memory, h100(), &wanted).expect_err(params);
        }
    }
}

#[test]
fn text_of_another_version_or_target_is_refused_or_named() {
    for text in [
        ".version 42.0\n.target sm_80\n.address_size 64\n",
        ".version 9.0\n.target\n",
        ".version\n",
        ".target sm_80\n",
        ".version 9.0\n.target sm_80\n.address_size 32\n.visible .entry k()\n{\nret;\n}\n",
        ".version 9.0\n.target sm_80\n.frobnicate 3;\n",
        "\u{0}\u{1}",
        "nothing of the kind",
    ] {
        let error = Module::load(text).map(|_| ()).expect_err(text);
        assert!(matches!(error, LoadError::Ptx(_)), "{error}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let text = kernel(".param .u64 p, .param .u32 n", "");
    let module = Module::load(&text).expect("the text is PTX");
    let mut memory = GlobalMemory::new(1 << 20);
    for args in [
        vec![],
        vec![Arg::Bytes(vec![0; 8])],
        vec![Arg::Bytes(vec![0; 8]), Arg::Bytes(vec![0; 8])],
        vec![Arg::Bytes(vec![]), Arg::Bytes(vec![0; 4])],
    ] {
        let wanted = Launch::new("k", [1; 3], [32, 1, 1], args);
        launch(&module, &mut memory, h100(), &wanted).expect_err("arguments do not fit");
    }
    let unknown = Launch::new("nobody", [1; 3], [32, 1, 1], vec![]);
    let error = launch(&module, &mut memory, h100(), &unknown).expect_err("no such entry");
    assert!(error.to_string().contains("it has k"), "{error}");
}

/// Endless loops, each of which must be stopped under any schedule.
const ENDLESS: &[&str] = &[
    "L: bra L;",
    "L: bra.uni L;",
    ".reg .b32 %r<2>;\nmov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nbra L;",
    ".reg .b32 %r<2>;\n.shared .b32 s;\nmov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nst.shared.u32 [s], %r1;\nbar.sync 0;\nbra L;",
    ".reg .b32 %r<2>;\n.reg .b64 %q<2>;\nld.param.u64 %q1, [p];\nL: atom.global.add.u32 %r1, [%q1], 1;\nbra L;",
    ".reg .b32 %r<2>;\n.reg .pred %p<2>;\nmov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 7;\n@%p1 bra M;\nL: bra L;\nM: bar.sync 0;",
    ".reg .b32 %r<2>;\n.reg .pred %p<2>;\n.reg .b64 %q<2>;\nld.param.u64 %q1, [p];\nL: ld.volatile.global.u32 %r1, [%q1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;",
    "L: nanosleep.u32 100;\nbra L;",
];

#[test]
fn a_kernel_that_never_ends_is_stopped() {
    for body in ENDLESS {
        for schedule in [Schedule::RoundRobin, Schedule::Random { seed: 1 }] {
            for blocks in [1, 200] {
                let report = run(
                    &kernel(".param .u64 p", body),
                    [blocks, 1, 1],
                    [96, 1, 1],
                    |l| {
                        l.schedule = schedule;
                    },
                )
                .expect("a launch within the limits");
                assert!(matches!(report.end, End::Stopped(_)), "{body}: {report:?}");
                let kind = report.hazards[0].kind;
                let stops = [
                    HazardKind::Timeout,
                    HazardKind::Deadlock,
                    HazardKind::BarrierDivergence,
                ];
                assert!(
                    stops.contains(&kind) || kind == HazardKind::Race,
                    "{body}: {report:?}"
                );
            }
        }
    }
}

#[test]
fn a_passed_deadline_stops_the_launch() {
    let body = ".reg .b32 %r<2>;\nmov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nbra L;";
    let report = run(&kernel("", body), [8, 1, 1], [32, 1, 1], |l| {
        l.instruction_budget = u64::MAX;
        l.wall_deadline = Some(Instant::now());
    })
    .expect("a launch within the limits");
    assert_eq!(report.hazards[0].kind, HazardKind::Timeout, "{report:?}");
}

#[test]
fn a_barrier_of_more_blocks_than_a_gpu_holds_is_stopped() {
    let body = ".reg .b32 %r<4>;\n.reg .pred %p<2>;\n.reg .b64 %q<2>;\nld.param.u64 %q1, [p];\n\
        atom.global.add.u32 %r1, [%q1], 1;\nmov.u32 %r3, %nctaid.x;\n\
        L: ld.acquire.gpu.global.u32 %r2, [%q1];\nsetp.lt.u32 %p1, %r2, %r3;\n@%p1 bra L;";
    let text = kernel(".param .u64 p", body);
    for threads in [1, 2, 7] {
        let change = |l: &mut Launch| {
            l.instruction_budget = 1 << 20;
            // The duration depends on the host: only the budget may end the launch.
            l.wall_deadline = None;
            // One block per multiprocessor.
            l.dynamic_shared_bytes = 200 << 10;
            l.threads = threads;
        };
        let fits = run(&text, [132, 1, 1], [1, 1, 1], change).expect("within the limits");
        assert_eq!(fits.end, End::Completed, "{threads} threads: {fits:?}");
        let report = run(&text, [133, 1, 1], [1, 1, 1], change).expect("within the limits");
        let kinds: Vec<HazardKind> = report.hazards.iter().map(|h| h.kind).collect();
        assert_eq!(
            kinds,
            [HazardKind::Deadlock],
            "{threads} threads: {report:?}"
        );
    }
}

#[test]
fn endless_recursion_ends_in_a_full_stack() {
    let text = format!(
        "{HEAD}.func (.param .b32 r) f(.param .b32 a)\n{{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [a];\n\
        {{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], %r1;\ncall (y), f, (x);\nld.param.b32 %r2, [y];\n}}\n\
        st.param.b32 [r], %r2;\nret;\n}}\n.visible .entry k()\n{{\n.reg .b32 %r<3>;\nmov.u32 %r1, 5;\n\
        {{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], %r1;\ncall (y), f, (x);\nld.param.b32 %r2, [y];\n}}\nret;\n}}\n"
    );
    let report = run(&text, [1; 3], [32, 1, 1], |l| {
        l.instruction_budget = 1 << 24
    });
    let report = report.expect("it runs");
    assert_eq!(report.stop, Some(vgpu::Stop::StackOverflow), "{report:?}");
}

const TEXTS: &[&str] = &[
    include_str!("ptx/basic.ptx"),
    include_str!("../benches/scalar.ptx"),
    include_str!("../benches/fa2.ptx"),
];

/// Loads the text and runs all its entries, for a short time.
fn try_all(text: &str) {
    let Ok(module) = Module::load(text) else {
        return;
    };
    for entry in module.entries().take(4) {
        if module.supported(&entry.name).is_err() {
            continue;
        }
        let mut memory = GlobalMemory::new(1 << 20);
        let buffer = memory.alloc(512, "x").expect("memory");
        memory.write(buffer, 0, &[1; 512]);
        let args = entry.params.iter().map(|p| match p.bytes {
            8 => Arg::Buffer(buffer),
            n => Arg::Bytes(vec![1; (n as usize).min(1 << 16)]),
        });
        let mut wanted = Launch::new(&entry.name, [2, 1, 1], [64, 1, 1], args.collect());
        wanted.instruction_budget = 2000;
        wanted.wall_deadline = Some(Instant::now() + Duration::from_secs(5));
        let _ = launch(&module, &mut memory, h100(), &wanted);
    }
}

/// Words that may replace another one.
const WORDS: &[&str] = &[
    "%r1",
    "%rd1",
    "%f1",
    "%p1",
    "%rs1",
    "%fd1",
    "0",
    "1",
    "-1",
    "4294967295",
    "0f7F800000",
    "[%rd1]",
    "[%r1]",
    "[%rd1+-4]",
    "[p]",
    "{%r1, %r2}",
    "{%f1, %f2, %f3, %f4}",
    "_",
    "u32",
    "s64",
    "b8",
    "f16x2",
    "pred",
    "v4",
    "shared",
    "global",
    "local",
    "sync",
    "wide",
    "lo",
    "rn",
    "%tid.x",
    "%laneid",
    "L",
    "bar.sync",
    "ret",
    "mad.lo.s32",
    "cvt.rn.f16.f32",
    "x",
    "!%p1",
];

#[test]
fn clusters_that_no_device_runs_are_refused() {
    let text = kernel(".param .u64 p", "");
    let with = |grid, shape: [u32; 3]| {
        refused(&text, grid, [32, 1, 1], |launch| {
            launch.cluster = Some(shape)
        })
    };
    let cases = [
        (
            [4, 1, 1],
            [3, 1, 1],
            "cluster [3, 1, 1] is refused: the grid [4, 1, 1] is not a multiple of it",
        ),
        (
            [4, 1, 1],
            [0, 1, 1],
            "cluster [0, 1, 1] is refused: a dimension is zero",
        ),
        (
            [32, 4, 1],
            [8, 4, 1],
            "32 blocks; a cluster has at most 16, and 8 on every device",
        ),
        ([u32::MAX; 3], [u32::MAX; 3], "grid"),
    ];
    for (grid, shape, expected) in cases {
        let why = with(grid, shape);
        assert!(why.contains(expected), "{why}");
    }
    let directives = |words: &str| text.replace("\n{\n", &format!("\n{words}\n{{\n"));
    let demanded = directives(".explicitcluster .reqnctapercluster 2, 1, 1");
    let why = refused(&demanded, [4, 1, 1], [32, 1, 1], |launch| {
        launch.cluster = Some([4, 1, 1]);
    });
    assert!(why.contains("the kernel demands [2, 1, 1]"), "{why}");
    assert!(run(&demanded, [4, 1, 1], [32, 1, 1], |_| {}).is_ok());
    let why = refused(
        &directives(".explicitcluster"),
        [4, 1, 1],
        [32, 1, 1],
        |_| {},
    );
    assert!(
        why.contains("was compiled for a launch with clusters"),
        "{why}"
    );
    let why = refused(
        &directives(".maxclusterrank 2"),
        [4, 1, 1],
        [32, 1, 1],
        |launch| {
            launch.cluster = Some([4, 1, 1]);
        },
    );
    assert!(why.contains("for clusters of at most 2 blocks"), "{why}");
    let why = refused(
        &directives(".blocksareclusters"),
        [4, 1, 1],
        [32, 1, 1],
        |_| {},
    );
    assert!(
        why.contains("a grid of clusters (.blocksareclusters)"),
        "{why}"
    );
}

#[test]
fn a_device_without_clusters_refuses_them() {
    let module = Module::load(&kernel("", "")).expect("the text is PTX");
    let mut wanted = Launch::new("k", [2, 1, 1], [32, 1, 1], Vec::new());
    wanted.cluster = Some([2, 1, 1]);
    let arch = Arch::by_name("a100").expect("a known device");
    let mut memory = GlobalMemory::new(1 << 20);
    let why = launch(&module, &mut memory, arch, &wanted).expect_err("no clusters");
    assert!(
        why.to_string()
            .contains("a100 has no thread block clusters"),
        "{why}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn truncated_texts_do_not_panic_when_loaded_or_run(at in 0usize..70_000, which in 0..TEXTS.len()) {
        let text = TEXTS[which];
        // Closed again, so that the rest may load.
        try_all(&format!("{}\nret;\n}}\n", &text[..at.min(text.len())]));
    }

    #[test]
    fn texts_with_other_words_do_not_panic_when_loaded_or_run(
        swaps in prop::collection::vec((0usize..30_000, prop::sample::select(WORDS)), 1..4),
        which in 0..TEXTS.len(),
    ) {
        let text = TEXTS[which];
        let mut words: Vec<&str> = text.split_inclusive([' ', '\t', ',', ';', '.', '\n']).collect();
        let mut kept = String::new();
        for (at, word) in &swaps {
            let n = words.len();
            // The separator is kept, so that the statement still ends in the same place.
            let last = words[at % n].chars().last().unwrap_or(' ');
            kept.push_str(word);
            kept.push(last);
        }
        let mut from = 0;
        for (at, word) in &swaps {
            let n = words.len();
            let last = words[at % n].chars().last().map_or(0, char::len_utf8);
            words[at % n] = &kept[from..from + word.len() + last];
            from += word.len() + last;
        }
        try_all(&words.concat());
    }

    #[test]
    fn damaged_texts_do_not_panic_when_loaded_or_run(
        places in prop::collection::vec((0usize..70_000, prop::sample::select(&b"0123456789abfprs.%[]{}@!,;<>-+"[..])), 1..4),
        which in 0..TEXTS.len(),
    ) {
        let mut bytes = TEXTS[which].as_bytes().to_vec();
        for (at, byte) in places {
            let n = bytes.len();
            bytes[at % n] = byte;
        }
        try_all(&String::from_utf8_lossy(&bytes));
    }
}
