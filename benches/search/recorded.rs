//! Recorded spaces made harder: with knowledge that misleads, and with most configurations failing.

use super::scores::{Counted, Problem, Table, sum};
use std::collections::HashMap;
use std::error::Error;
use std::hash::{DefaultHasher, Hasher as _};
use tuner_core::units::{Micros, Seed};
use tuner_device::replay::Recording;
use tuner_search::{Experience, Knowledge, Settings, evolve_with, evolve_with_knowledge};
use tuner_space::{Config, Space};

/// A recording as a problem.
fn problem(recording: &Recording) -> Problem<'_> {
    Problem {
        name: recording
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("?"),
        space: &recording.space,
        time: Box::new(|config| recording.lookup(config).time()),
        best: recording.optimum().map_or(f64::NAN, Micros::get),
    }
}

/// A number in 0 to 1 that is always the same for the same words.
fn chance(words: impl std::hash::Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish() as f64 / u64::MAX as f64
}

/// The recorded times, changed.
fn source(name: &str, recording: &Recording, change: impl Fn(&Config, f64) -> f64) -> Knowledge {
    let rows = recording.configs().into_iter().map(|config| {
        let time = recording.lookup(config).time();
        let changed = time.and_then(|time| Micros::new(change(config, time.get())));
        (recording.space.values(config), changed)
    });
    let told = Experience {
        name: name.to_owned(),
        rows: rows.collect(),
    };
    Knowledge::new(&recording.space, &[told])
}

/// One source for each other kernel: its first file's times, laid over this one's configurations in their
/// order, as regular as times are and about something else. (A single one may order them by chance.)
fn unrelated(recording: &Recording, files: &[Recording]) -> Vec<Knowledge> {
    let mut kernels = vec![&recording.kernel];
    let mut others: Vec<&Recording> = Vec::new();
    for file in files {
        if !kernels.contains(&&file.kernel) {
            kernels.push(&file.kernel);
            others.push(file);
        }
    }
    others
        .into_iter()
        .map(|other| laid_over(recording, other))
        .collect()
}

fn laid_over(recording: &Recording, other: &Recording) -> Knowledge {
    let times: Vec<f64> = other
        .configs()
        .into_iter()
        .filter_map(|config| Some(other.lookup(config).time()?.get()))
        .collect();
    let configs = recording.configs();
    let places: HashMap<&Config, usize> = configs.iter().copied().zip(0..).collect();
    source("unrelated", recording, |config, us| {
        let place = places
            .get(config)
            .map(|at| at * times.len() / configs.len());
        place.and_then(|at| times.get(at)).copied().unwrap_or(us)
    })
}

/// Mean scores without knowledge, and with one source that is random, the reverse of the truth, or of an
/// unrelated kernel (the mean over several).
pub(super) fn misled(files: &[Recording], seeds: u64) {
    let ways = ["nothing known", "random", "inverted", "unrelated"];
    let mut table = Table::new(ways.map(str::to_owned));
    for recording in files {
        let problem = problem(recording);
        table.add(problem.name, |way| {
            let known = match way {
                "random" => vec![source(way, recording, |config, _| {
                    1.0 + 100.0 * chance(config.choices())
                })],
                "unrelated" => unrelated(recording, files),
                "inverted" => vec![source(way, recording, |_, us| 1e6 / us)],
                _ => vec![Knowledge::default()],
            };
            let each = known.iter().map(|known| {
                problem.mean(seeds, Counted::All, |seed| {
                    evolve_with_knowledge(problem.space, seed, &[], Settings::default(), known)
                })
            });
            let sums = each.fold([0.0; 6], sum);
            sums.map(|sum| sum / known.len() as f64)
        });
    }
    table.finish();
}

/// Which seven in ten configurations fail beside those recorded: a resource that four parameters use
/// up, with weights drawn from the file's name.
fn spared<'a>(recording: &'a Recording) -> impl Fn(&Config) -> bool + 'a {
    let parameters = recording.space.parameters();
    let free: Vec<usize> = (0..parameters.len())
        .filter(|at| parameters[*at].values.len() > 1)
        .collect();
    let name = recording.path.file_name().map(std::ffi::OsStr::to_owned);
    let mut order = free;
    order.sort_by(|a, b| chance((&name, *a)).total_cmp(&chance((&name, *b))));
    order.truncate(4);
    let used = move |config: &Config| -> f64 {
        let each = order.iter().map(|at| {
            let last = (parameters[*at].values.len() - 1) as f64;
            f64::from(config.choices()[*at]) / last * (0.5 + chance((&name, at, "weight")))
        });
        each.sum()
    };
    let mut all: Vec<f64> = recording.configs().into_iter().map(&used).collect();
    all.sort_by(f64::total_cmp);
    let limit = all[all.len() * 3 / 10];
    move |config| used(config) <= limit
}

/// Mean scores by the number of configurations that worked, where seven in ten of those recorded
/// fail: of `evolve`, of `evolve` that predicts no failures, and of one that is told beforehand
/// what fails.
pub(super) fn failing(files: &[Recording], seeds: u64) -> Result<(), Box<dyn Error>> {
    let ways = ["evolve", "failures not predicted", "told what fails"];
    let mut table = Table::new(ways.map(str::to_owned));
    for recording in files {
        let spared = spared(recording);
        let time = |config: &Config| recording.lookup(config).time().filter(|_| spared(config));
        let working: Vec<Config> = recording
            .configs()
            .into_iter()
            .filter(|config| time(config).is_some())
            .cloned()
            .collect();
        let told = Space::from_rows(
            &recording.kernel,
            recording.space.parameters().to_vec(),
            &working,
        )?;
        let best = working
            .iter()
            .filter_map(time)
            .min()
            .map_or(f64::NAN, Micros::get);
        let problem = Problem {
            best,
            time: Box::new(time),
            ..problem(recording)
        };
        table.add(problem.name, |way| {
            problem.mean(seeds, Counted::Working, |seed: Seed| match way {
                "told what fails" => evolve_with(&told, seed, &[], Settings::default()),
                "evolve" => evolve_with(problem.space, seed, &[], Settings::default()),
                _ => {
                    let settings = Settings {
                        failures: false,
                        ..Settings::default()
                    };
                    evolve_with(problem.space, seed, &[], settings)
                }
            })
        });
    }
    table.finish();
    Ok(())
}
