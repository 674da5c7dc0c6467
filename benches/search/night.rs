//! A night over recorded spaces: the sum of gains by the rule that distributes the budget.

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tuner_core::units::{Micros, Seed};
use tuner_device::replay::Recording;
use tuner_engine::Allocation;
use tuner_engine::night::{NightTask, simulate};

/// Budgets, minutes of recorded time.
const BUDGETS_MIN: [u32; 3] = [10, 30, 120];

const RULES: [(Allocation, &str); 3] = [
    (Allocation::ExpectedGain, "expected gain"),
    (Allocation::EqualShares, "equal shares"),
    (Allocation::RoundRobin, "round robin"),
];

/// Median of the recorded times of a file, which stands for its default.
fn median_us(recording: &Recording) -> f64 {
    let configs = recording.configs().into_iter();
    let times = configs.filter_map(|config| recording.lookup(config).time());
    let mut times: Vec<f64> = times.map(Micros::get).collect();
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Figures of one rule and budget, summed over seeds.
#[derive(Default, Clone, Copy)]
struct Sums {
    logs: f64,
    speedups: f64,
    scores: f64,
    untried: u64,
    trials: u64,
}

impl Sums {
    fn add(&mut self, task: &NightTask, default_us: f64, best_us: f64) {
        self.trials += task.trials;
        self.untried += u64::from(task.trials == 0);
        let Some(found) = task.best_us else { return };
        let gain = default_us / found.min(default_us);
        self.logs += gain.ln();
        self.speedups += gain - 1.0;
        self.scores += best_us / found;
    }
}

/// Prints the gains of every rule at every budget.
pub(super) fn compare(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let mut arguments = arguments.to_vec();
    let mut budgets = BUDGETS_MIN.to_vec();
    if let Some(at) = arguments
        .iter()
        .position(|argument| argument == "--minutes")
    {
        let given: Vec<String> = arguments.drain(at..arguments.len().min(at + 2)).collect();
        budgets = vec![given.get(1).ok_or("--minutes needs a number")?.parse()?];
    }
    let (files, seeds) = super::recordings(&arguments)?;
    let files = &files;
    let facts: Vec<(f64, f64)> = files
        .iter()
        .map(|file| {
            (
                median_us(file),
                file.optimum().map_or(f64::NAN, Micros::get),
            )
        })
        .collect();
    println!(
        "{} tasks, {seeds} seeds; sums over the tasks, means over the seeds",
        files.len()
    );
    println!("minutes  rule           ln(gain)  gain - 1  score  trials  untried");
    for minutes in budgets {
        for (rule, name) in RULES {
            let sums = Mutex::new(Sums::default());
            let next = AtomicU64::new(1);
            std::thread::scope(|scope| {
                for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                    scope.spawn(|| {
                        loop {
                            let seed = next.fetch_add(1, Ordering::Relaxed);
                            if seed > seeds {
                                break;
                            }
                            let budget = f64::from(minutes) * 60.0;
                            let Ok(tasks) = simulate(files, rule, budget, Seed(seed)) else {
                                break;
                            };
                            let mut own = Sums::default();
                            for (task, (default, best)) in tasks.iter().zip(&facts) {
                                own.add(task, *default, *best);
                            }
                            if let Ok(mut all) = sums.lock() {
                                all.logs += own.logs;
                                all.speedups += own.speedups;
                                all.scores += own.scores;
                                all.trials += own.trials;
                                all.untried += own.untried;
                            }
                        }
                    });
                }
            });
            let all = sums.into_inner().map_err(|_| "a thread panicked")?;
            let mean = |sum: f64| sum / seeds as f64;
            println!(
                "{minutes:7}  {name:14} {:8.3} {:9.3} {:6.3} {:7.1} {:8.2}",
                mean(all.logs),
                mean(all.speedups),
                mean(all.scores),
                mean(all.trials as f64),
                mean(all.untried as f64),
            );
        }
    }
    Ok(())
}
