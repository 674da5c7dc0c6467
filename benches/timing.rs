//! How often the timing protocol decides rightly on synthetic clocks, beside the mean of seven
//! sequential runs that other tuners take.
//!
//! `cargo bench --bench timing [-- TRIALS]`

use tuner_core::cache_mode::CacheMode;
use tuner_judge::stopwatch::Subject;
use tuner_judge::timing::executor;
use tuner_judge::timing::paired::{Decision, PairedComparison};
use tuner_judge::timing::plan::{Runner, Settings};
use tuner_testkit::synthetic::{CLOCKS, Noise, SyntheticClock, sequential_means};

/// Time of the incumbent, microseconds.
const INCUMBENT_US: f64 = 21.3;
/// Runs of the habit that is compared with.
const RUNS: u32 = 7;

/// What came of the trials of one clock and one true ratio, as shares.
#[derive(Default)]
struct Outcome {
    faster: f64,
    slower: f64,
    sequential: f64,
    gpu_ms: f64,
}

fn trials(noise: Noise, ratio: f64, count: u32) -> Outcome {
    let settings = Settings::default();
    let share = 1.0 / f64::from(count);
    let mut outcome = Outcome::default();
    for seed in 0..u64::from(count) {
        let truth = vec![INCUMBENT_US * ratio, INCUMBENT_US];
        let mut clock = SyntheticClock::new(noise, truth.clone(), seed);
        let runner = |subject| Runner {
            subject: Subject(subject),
            launches: settings.launches(INCUMBENT_US),
        };
        let mut duel = PairedComparison::new(settings, runner(0), runner(1));
        if executor::run(&mut duel, &mut clock, CacheMode::Warm).is_err() {
            continue;
        }
        outcome.gpu_ms += clock.spent_us() * 1e-3 * share;
        match duel.result().map(|result| result.decision) {
            Some(Decision::Faster) => outcome.faster += share,
            Some(Decision::Slower) => outcome.slower += share,
            Some(Decision::Tie) | None => {}
        }
        let mut clock = SyntheticClock::new(noise, truth, seed ^ 0x5eed);
        if let Ok([challenger, incumbent]) =
            sequential_means(&mut clock, [Subject(0), Subject(1)], RUNS)
            && challenger < incumbent
        {
            outcome.sequential += share;
        }
    }
    outcome
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() {
    let count = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1000);
    println!("{count} trials a cell; true ratio = challenger / incumbent ({INCUMBENT_US} µs)");
    println!(
        "{:<11} {:>10} {:>8} {:>8} {:>8} {:>8} | {:>20}",
        "clock", "true ratio", "faster", "tie", "slower", "GPU ms", "mean of 7: faster"
    );
    for (name, noise) in CLOCKS {
        for ratio in [1.0, 0.995, 0.99, 0.985, 0.98, 0.97, 0.95, 1.005, 1.01, 1.02] {
            let outcome = trials(noise, ratio, count);
            println!(
                "{name:<11} {ratio:>10.3} {:>7.1}% {:>7.1}% {:>7.1}% {:>8.0} | {:>19.1}%",
                100.0 * outcome.faster,
                100.0 * (1.0 - outcome.faster - outcome.slower).max(0.0),
                100.0 * outcome.slower,
                outcome.gpu_ms,
                100.0 * outcome.sequential
            );
        }
    }
}
