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

use case::Case;
use compiler::Compilers;
use judge::Judgement;
use vgpu::Schedule;

const SCHEDULES: [Schedule; 4] = [
    Schedule::RoundRobin,
    Schedule::Random { seed: 1 },
    Schedule::Random { seed: 2 },
    Schedule::Random { seed: 3 },
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
fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/hazards")
        .join(name)
}

/// Compiles and judges every case, prints the table, and panics with all that failed.
fn suite(folder: &Path, check: impl Fn(&Case, &Judgement) -> Result<(), String>) {
    let Some(compilers) = Compilers::find() else {
        eprintln!("skipped: TUNER_NO_NVRTC is set");
        return;
    };
    let mut failures = Vec::new();
    let cases = cases(folder);
    for case in &cases {
        let judgement = match compilers.ptx(case).as_deref().map(judge::load) {
            Ok(Ok(module)) => judge::judge(case, &module, &SCHEDULES),
            Ok(Err(refused)) => refused,
            Err(log) => panic!("{} does not compile:\n{log}", case.name),
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
    eprintln!(
        "{}: {passed} of {} as expected",
        folder.display(),
        cases.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_wrong_kernel_gets_its_verdict_and_its_line() {
    suite(&own("wrong"), check::wrong_kernel);
}

#[test]
fn no_right_kernel_gets_a_verdict() {
    suite(&own("right"), |_, judgement| check::right_kernel(judgement));
}

#[test]
fn the_suite_holds_at_least_forty_kernels_of_either_kind() {
    if std::env::var_os("TUNER_HAZARDS_ONLY").is_none() {
        assert!(cases(&own("wrong")).len() >= 40);
        let right = cases(&own("right"));
        assert!(right.len() >= 40);
        assert!(right.iter().all(|case| case.expect.is_some()));
    }
}

#[test]
#[ignore = "needs kernels of your own: TUNER_HAZARDS_FOLDER=/a/folder"]
fn foreign_kernels_are_ok_or_unsupported() {
    let folder = std::env::var_os("TUNER_HAZARDS_FOLDER").expect("TUNER_HAZARDS_FOLDER");
    suite(Path::new(&folder), |_, judgement| {
        match judgement.verdict.as_str() {
            "unsupported" => {
                eprintln!("    {}", judgement.detail);
                Ok(())
            }
            _ => check::right_kernel(judgement),
        }
    });
}
