//! The hazard suite: small CUDA kernels, each wrong in one way, and right ones that a careless
//! detector would blame. A `.cu` file dropped into `hazards/wrong` or `hazards/right` is a test;
//! `hazards/case.rs` describes its header.
//!
//! `cargo test --test program hazards:: -- --nocapture` prints the table. `TUNER_HAZARDS_ONLY=text` keeps
//! the cases whose name contains the text. Without NVRTC the suite fails, unless
//! `TUNER_NO_NVRTC=1` says that this machine is not meant to have it.

mod case;
mod check;
mod compiler;
mod data;
mod judge;
mod reference;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use case::Case;
use compiler::Compilers;
use judge::{Judgement, Turns};
use vgpu::{BlockOrder, Module, Schedule};

const SCHEDULES: [Turns; 4] = [
    (Schedule::RoundRobin, BlockOrder::Ascending),
    (Schedule::Random { seed: 1 }, BlockOrder::Descending),
    (Schedule::Random { seed: 2 }, BlockOrder::LastFirst),
    (Schedule::Random { seed: 3 }, BlockOrder::Interleaved),
];

fn cases(folder: &Path) -> Vec<Case> {
    let only = std::env::var("TUNER_HAZARDS_ONLY").unwrap_or_default();
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the suite's folder")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .filter(|path| path.to_string_lossy().contains(&only))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| Case::read(path).expect("a well-formed header"))
        .collect()
}

/// A folder of the suite.
fn own_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/hazards")
        .join(name)
}

/// What a case is compiled to.
struct Code {
    module: Module,
    ptx: String,
    cubin: Arc<[u8]>,
}

/// A case and its code, or why there is none.
type Compiled = (Case, Result<Code, Box<Judgement>>);

/// Every case of a folder with its code, or the judgement that refuses it; `None` where there is
/// no compiler.
fn compiled(folder: &Path) -> Option<Vec<Compiled>> {
    let Some(compilers) = Compilers::find() else {
        eprintln!("skipped: TUNER_NO_NVRTC is set");
        return None;
    };
    let compile = |case: Case| match compilers.code(&case) {
        Ok((ptx, cubin)) => {
            let module = judge::load(&ptx);
            let ptx = ptx.to_string();
            (case, module.map(|module| Code { module, ptx, cubin }))
        }
        Err(log) => (case, Err(judge::uncompiled(log))),
    };
    Some(cases(folder).into_iter().map(compile).collect())
}

/// The suite's own cases, compiled once for all tests of this process.
fn own(name: &'static str) -> Option<&'static [Compiled]> {
    type Cases = Option<Vec<Compiled>>;
    static WRONG: OnceLock<Cases> = OnceLock::new();
    static RIGHT: OnceLock<Cases> = OnceLock::new();
    let place = if name == "wrong" { &WRONG } else { &RIGHT };
    place.get_or_init(|| compiled(&own_folder(name))).as_deref()
}

/// Judges every case, prints the table, and panics with all that failed.
fn suite(cases: Option<&[Compiled]>, check: impl Fn(&Case, &Judgement) -> Result<(), String>) {
    let mut failures = Vec::new();
    let cases = cases.unwrap_or_default();
    for (case, code) in cases {
        let judgement = match code {
            Ok(code) => judge::judge(case, &code.module, &SCHEDULES),
            Err(refused) => (**refused).clone(),
        };
        let place = check::place(&judgement);
        let checked = check(case, &judgement);
        let mark = if checked.is_ok() { ' ' } else { '!' };
        eprintln!("{mark} {:48} {:19} {place}", case.name, judgement.verdict);
        if let Err(why) = checked {
            failures.push(format!("{} ({})\n  {why}", case.name, case.summary));
        }
    }
    let passed = cases.len() - failures.len();
    eprintln!("{passed} of {} as expected", cases.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_wrong_kernel_gets_its_verdict_and_its_line() {
    suite(own("wrong"), check::wrong_kernel);
}

#[test]
fn no_right_kernel_gets_a_verdict() {
    suite(own("right"), check::right_kernel);
}

#[test]
fn the_machine_code_of_right_kernels_leaves_what_their_ptx_leaves() {
    let mut wrong = Vec::new();
    for (case, code) in own("right").unwrap_or_default() {
        let Ok(Code { ptx, cubin, .. }) = code else {
            continue;
        };
        // There is no prediction of generic addresses of constant memory, of `%nsmid` and of reducing bulk
        // copies; what an element holds that nobody set is open.
        const LEFT_OUT: [&str; 5] = [
            "generic_pointers",
            "bulk_reduction_of_blocks",
            "cluster_reduction_into_the_peer",
            "persistent_rows_by_multiprocessor",
            "unused_elements_of_a_vector_unset",
        ];
        if LEFT_OUT.contains(&case.name.as_str()) {
            continue;
        }
        if let Err(why) = judge::prove(case, ptx, cubin) {
            wrong.push(format!("{}: {why}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Keeps every core busy while it runs something else.
fn under_load<T>(run: impl FnOnce() -> T) -> T {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        done.store(true, Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn threads_and_load_change_nothing() {
    let all = ["wrong", "right"].into_iter().filter_map(own).flatten();
    let mut different = Vec::new();
    // Each is executed four times: every third in each run of the tests, all in `make nightly`.
    let step = match std::env::var_os("TUNER_HAZARDS_ALL") {
        Some(_) => 1,
        None => 3,
    };
    for (index, (case, code)) in all.step_by(step).enumerate() {
        let Ok(Code { module, .. }) = code else {
            continue;
        };
        // Every second case by turns, every second at random.
        let turns = SCHEDULES[3 * (index % 2)];
        let alone = judge::run(case, module, turns, 1);
        let others = under_load(|| {
            [1, 2, 8].map(|threads| (threads, judge::run(case, module, turns, threads)))
        });
        for (threads, other) in others {
            if other != alone {
                let name = &case.name;
                different.push(format!("{name}, {threads} threads: {other:#?}\n{alone:#?}"));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn the_suite_holds_at_least_forty_kernels_of_either_kind() {
    if std::env::var_os("TUNER_HAZARDS_ONLY").is_none() {
        assert!(cases(&own_folder("wrong")).len() >= 40);
        let right = cases(&own_folder("right"));
        assert!(right.len() >= 40);
        assert!(right.iter().all(|case| case.expect.is_some()));
    }
}

#[test]
#[ignore = "needs kernels of your own: TUNER_HAZARDS_FOLDER=/a/folder"]
fn foreign_kernels_are_ok_or_unsupported() {
    let folder = std::env::var_os("TUNER_HAZARDS_FOLDER").expect("TUNER_HAZARDS_FOLDER");
    suite(
        compiled(Path::new(&folder)).as_deref(),
        |case, judgement| match judgement.verdict.as_str() {
            "unsupported" => {
                eprintln!("    {}", judgement.detail);
                Ok(())
            }
            _ => check::right_kernel(case, judgement),
        },
    );
}
