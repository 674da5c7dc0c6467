//! Random damage to everything that is read from outside: no panic, no hang, and every text that is
//! refused is refused with a message.
//!
//! Inputs are real files of the project, mutated. `cargo test --test program fuzz::` gives each
//! target half a second; `TUNER_FUZZ_SECONDS=600 cargo test --release --test program fuzz:: --
//! --nocapture` gives it ten minutes and prints how many inputs it had. An input that fails is kept
//! in the target folder (one that ends the process, with `TUNER_FUZZ_KEEP=1`) and named; put it into `tests/fuzz/crashes/TARGET/`, where it is tried first
//! from then on.

mod mutate;
mod targets;

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
    read: fn(&[u8]),
}

/// Nothing that is read takes this long, on whatever machine.
const HANG: Duration = Duration::from_secs(120);

fn duration() -> Duration {
    let seconds = std::env::var("TUNER_FUZZ_SECONDS").ok();
    let seconds: Option<u64> = seconds.and_then(|text| text.parse().ok());
    seconds.map_or(Duration::from_millis(500), Duration::from_secs)
}

/// Inputs that failed once.
fn crashes(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/crashes")
        .join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

fn keep(name: &str, input: &[u8]) -> PathBuf {
    let hash = tuner_core::units::ContentHash::from_parts([input]);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{}", hash.short()));
    std::fs::write(&path, input).unwrap();
    path
}

/// Reads inputs until the time is over, on a thread that is watched. Says how many there were.
fn fuzz(target: &'static Target) -> String {
    let corpus = (target.corpus)();
    assert!(
        !corpus.is_empty(),
        "{} has nothing to start from",
        target.name
    );
    let mut inputs = crashes(target.name);
    inputs.extend(corpus.iter().cloned());
    let mut mutator = Mutator::new(corpus, target.words);
    let (sender, jobs) = mpsc::channel::<Vec<u8>>();
    let (done, results) = mpsc::channel::<bool>();
    std::thread::spawn(move || {
        for input in jobs {
            let read = catch_unwind(AssertUnwindSafe(|| (target.read)(&input)));
            if done.send(read.is_ok()).is_err() {
                return;
            }
        }
    });
    let every = std::env::var_os("TUNER_FUZZ_KEEP").is_some();
    let end = Instant::now() + duration();
    let (mut count, mut longest) = (0_u64, Duration::ZERO);
    let mut given = inputs.into_iter();
    loop {
        let input = match given.next() {
            Some(input) => input,
            None if Instant::now() < end => mutator.next(),
            None => break,
        };
        // An overflow of the stack ends the process: then this is the input.
        let kept = every.then(|| keep(target.name, &input));
        let began = Instant::now();
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
    }
    format!("{}: {count} inputs, the longest {longest:?}", target.name)
}

macro_rules! fuzz_tests {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            println!("{}", fuzz(&targets::$name));
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
    acceptance_rules,
    run_request,
    compiler_log,
    packed_file,
);
