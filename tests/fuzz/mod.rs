//! Random damage to everything that is read from outside: no panic, no hang, and every text that is
//! refused is refused with a message.
//!
//! Inputs are real files of the project and those of `tests/fuzz/corpus`, mutated from a fixed seed.
//! `cargo test --test program fuzz::` tries a fixed number for each target, some 20 s in all;
//! `TUNER_FUZZ_SECONDS=600 cargo test --release --test program fuzz:: -- --nocapture` gives each ten
//! minutes and prints how many inputs it had. With
//! `RUSTFLAGS="-C instrument-coverage --cfg fuzz_coverage" LLVM_PROFILE_FILE=/dev/null` and `--test-threads=1`
//! inputs that reach new parts of the program are mutated further (its own `--target-dir` keeps the other
//! builds). An input that fails is kept in the target folder (one that
//! ends the process, with `TUNER_FUZZ_KEEP=1`) and named; put it into `tests/fuzz/crashes/TARGET/`,
//! where it is tried first from then on.

mod coverage;
mod http;
mod messages;
mod mutate;
mod targets;

use coverage::Coverage;
use mutate::Mutator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Something that reads, and what it usually reads.
struct Target {
    name: &'static str,
    corpus: fn() -> Vec<Vec<u8>>,
    /// Words that this reader knows.
    words: &'static [&'static str],
    /// Mutated inputs without `TUNER_FUZZ_SECONDS`: about a second in a debug build.
    inputs: u64,
    read: fn(&[u8]),
}

/// Nothing that is read takes this long, on whatever machine.
const HANG: Duration = Duration::from_secs(120);

/// Inputs of a target: a number, or as many as a time allows.
enum Budget {
    Inputs(u64),
    Until(Instant),
}

impl Budget {
    fn of(target: &Target) -> Self {
        let seconds = std::env::var("TUNER_FUZZ_SECONDS").ok();
        let seconds: Option<u64> = seconds.and_then(|text| text.parse().ok());
        match seconds {
            Some(seconds) => Self::Until(Instant::now() + Duration::from_secs(seconds)),
            None => Self::Inputs(target.inputs),
        }
    }

    fn is_left(&self, mutated: u64) -> bool {
        match self {
            Self::Inputs(most) => mutated < *most,
            Self::Until(end) => Instant::now() < *end,
        }
    }
}

/// The files of a folder of this module.
fn stored(folder: &str, name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz")
        .join(folder)
        .join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = files.iter().map(|file| std::fs::read(file).unwrap());
    read.collect()
}

fn keep(name: &str, input: &[u8]) -> PathBuf {
    let hash = tuner_core::units::ContentHash::from_parts([input]);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{}", hash.short()));
    std::fs::write(&path, input).unwrap();
    path
}

/// Reads inputs until the budget is used up, on a thread that is watched. Returns a line with their
/// number.
fn fuzz(target: &'static Target, read: impl Fn(&[u8]) + Send + 'static) -> String {
    let corpus = (target.corpus)();
    assert!(
        !corpus.is_empty(),
        "{} has nothing to start from",
        target.name
    );
    let mut inputs = stored("crashes", target.name);
    inputs.extend(corpus.iter().cloned());
    let mut mutator = Mutator::new(corpus, target.words);
    let (sender, jobs) = mpsc::channel::<Vec<u8>>();
    let (done, results) = mpsc::channel::<bool>();
    std::thread::spawn(move || {
        for input in jobs {
            let read = catch_unwind(AssertUnwindSafe(|| read(&input)));
            if done.send(read.is_ok()).is_err() {
                return;
            }
        }
    });
    let every = std::env::var_os("TUNER_FUZZ_KEEP").is_some();
    let budget = Budget::of(target);
    let mut coverage = Coverage::new();
    let (mut count, mut mutated, mut longest) = (0_u64, 0_u64, Duration::ZERO);
    let mut given = inputs.into_iter();
    loop {
        let input = match given.next() {
            Some(input) => input,
            None if budget.is_left(mutated) => {
                mutated += 1;
                mutator.next()
            }
            None => break,
        };
        // An overflow of the stack ends the process: then this is the input.
        let kept = every.then(|| keep(target.name, &input));
        let began = Instant::now();
        Coverage::begin();
        sender.send(input.clone()).unwrap();
        let what = match results.recv_timeout(HANG) {
            Ok(true) => None,
            Ok(false) => Some("panicked"),
            Err(_) => Some("did not come back"),
        };
        if let Some(what) = what {
            let path = keep(target.name, &input);
            panic!("{} {what}; the input is {}", target.name, path.display());
        }
        if let Some(path) = kept {
            std::fs::remove_file(path).unwrap();
        }
        longest = longest.max(began.elapsed());
        count += 1;
        if coverage.as_mut().is_some_and(Coverage::add) {
            mutator.learn(input);
        }
    }
    let reached = coverage.map_or_else(String::new, |coverage| {
        let (reached, kept) = (coverage.reached(), mutator.learned());
        format!(", {reached} counters reached, {kept} inputs mutated further")
    });
    format!(
        "{}: {count} inputs, the longest {longest:?}{reached}",
        target.name
    )
}

macro_rules! fuzz_tests {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            println!("{}", fuzz(&targets::$name, targets::$name.read));
        }
    )*};
}

fuzz_tests!(
    search_space,
    bare_space,
    expression,
    recording,
    kernel_tuner_problem,
    ptx,
    cubin,
    shipped_header,
    run_request,
    compiler_log,
    packed_file,
    profiler_table,
    profile,
    configuration_table,
    fleet_message,
    process_message,
);
