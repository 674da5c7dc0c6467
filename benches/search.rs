//! What a proposal of `evolve` costs, by size of the space and number of results, and what each
//! part of it brings.
//!
//! `cargo bench --bench search`: microseconds a proposal on made-up spaces from 10^4 to 10^15
//! configurations. `cargo bench --bench search -- --ablation [--seeds N] FILE…`: mean scores on
//! recorded spaces with single parts switched off. `cargo bench --bench search -- --rough [--seeds N]
//! [STRATEGY…]`: mean scores on made-up rough spaces of 10^5 to 10^6 configurations. `--misled FILE…`:
//! with knowledge that is random, the reverse of the truth, or of an unrelated kernel. `--failing FILE…`: where seven in ten
//! configurations fail. `--night [--seeds N] [--minutes N] FILE…`: gains of a run over all files, by the rule that
//! distributes its budget.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "search/night.rs"]
mod night;
#[path = "search/recorded.rs"]
mod recorded;
#[path = "search/rough.rs"]
mod rough;
#[path = "search/scores.rs"]
mod scores;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use scores::{Counted, Problem, Table};
use std::convert::Infallible;
use std::time::Instant;
use tuner_core::units::{Micros, Seed};
use tuner_core::value::Value;
use tuner_device::replay::Recording;
use tuner_engine::quality::{Series, Study, measure};
use tuner_search::{
    Experience, Knowledge, Observation, Settings, Strategy, StrategyName, UnknownStrategy,
    evolve_with, evolve_with_knowledge,
};
use tuner_space::{Config, Constraint, Environment, Expr, Parameter, Space};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "--ablation" => ablation(rest),
        Some((first, rest)) if first == "--rough" => on_rough_spaces(rest),
        Some((first, rest)) if first == "--misled" => {
            let (files, seeds) = recordings(rest)?;
            recorded::misled(&files, seeds);
            Ok(())
        }
        Some((first, rest)) if first == "--failing" => {
            let (files, seeds) = recordings(rest)?;
            recorded::failing(&files, seeds)
        }
        Some((first, rest)) if first == "--night" => night::compare(rest),
        _ => cost(),
    }
}

/// The files named, and how many seeds.
fn recordings(arguments: &[String]) -> Result<(Vec<Recording>, u64), Box<dyn std::error::Error>> {
    let (mut files, mut seeds) = (Vec::new(), 30);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--seeds" {
            seeds = arguments.next().map_or(Ok(seeds), |text| text.parse())?;
        } else {
            files.push(Recording::load(argument.as_ref()).map_err(|error| error.to_string())?);
        }
    }
    Ok((files, seeds))
}

/// Mean scores on rough spaces, of the strategies named or of all.
fn on_rough_spaces(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let (mut seeds, mut strategies) = (30, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => seeds = arguments.next().map_or(Ok(seeds), |text| text.parse())?,
            strategy => strategies.push(strategy.to_owned()),
        }
    }
    if strategies.is_empty() {
        // `exhaustive` learns nothing and draws like `random`.
        let all = StrategyName::ALL.iter();
        let compared = all.filter(|strategy| **strategy != StrategyName::Exhaustive);
        strategies = compared
            .map(|strategy| strategy.name().to_owned())
            .collect();
    }
    let spaces = rough::all()?;
    for strategy in &strategies {
        searching(strategy, &spaces[0].space, Seed(0))?;
    }
    let mut table = Table::new(strategies);
    for made in &spaces {
        let problem = Problem {
            name: &made.name,
            space: &made.space,
            time: Box::new(|config| made.time(config).and_then(Micros::new)),
            best: made.best,
        };
        table.add(&made.name, |strategy| {
            problem.mean(seeds, Counted::All, |seed| {
                // All names were looked up above.
                let found = searching(strategy, &made.space, seed);
                found.unwrap_or_else(|_| evolve_with(&made.space, seed, &[], Settings::default()))
            })
        });
    }
    table.finish();
    Ok(())
}

/// A strategy by its name, or `evolve` with a part off by that of [`variants`].
fn searching(name: &str, space: &Space, seed: Seed) -> Result<Box<dyn Strategy>, UnknownStrategy> {
    if let Some((_, settings)) = variants().into_iter().find(|(known, _)| *known == name) {
        return Ok(evolve_with(space, seed, &[], settings));
    }
    tuner_search::strategy(name, space, seed, &[])
}

/// Parameters of eight sizes each, constrained as kernels are.
fn space(parameters: usize) -> Result<Space, Box<dyn std::error::Error>> {
    let sizes: Vec<Value> = [1, 2, 4, 8, 16, 32, 64, 128].map(Value::Int).to_vec();
    let named = (0..parameters).map(|at| Parameter::new(format!("p{at}"), sizes.clone()));
    let rules = (0..parameters / 2).map(|at| {
        Ok(Constraint {
            rule: Expr::parse(&format!("p{} * p{} <= 1024", 2 * at, 2 * at + 1))?,
            why: None,
        })
    });
    let rules = rules.collect::<Result<Vec<_>, tuner_space::ExprError>>()?;
    Ok(Space::build(
        "made up",
        named.collect(),
        &rules,
        &Environment::default(),
    )?)
}

fn time(config: &Config) -> Observation {
    let far: u32 = config
        .choices()
        .iter()
        .map(|choice| choice.abs_diff(5))
        .sum();
    Micros::new(10.0 + f64::from(far)).map_or(
        Observation::Failed(tuner_core::record::Verdict::Crashed),
        Observation::exactly,
    )
}

/// Time this thread spent on a processor, microseconds: on a shared machine the wall clock also
/// counts what others do.
fn processor_us() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e3)
}

fn cost() -> Result<(), Box<dyn std::error::Error>> {
    for parameters in [4, 7, 10, 17] {
        let space = space(parameters)?;
        for sources in [0, 10] {
            cost_of(&space, sources);
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("peak memory: {}", line.trim_start_matches("VmHWM:").trim());
    }
    Ok(())
}

/// So many sources of 300 results each, all different.
fn knowledge(space: &Space, sources: u64) -> Knowledge {
    let of = |source: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(source);
        let configs = (0..300).filter_map(|_| space.draw(&mut rng));
        let rows = configs.enumerate().map(|(at, config)| {
            let far = config.choices().iter().sum::<u32>();
            let time = 10.0 + f64::from(far) + ((at as u64 * 7 + source) % 5) as f64;
            (space.values(&config), Micros::new(time))
        });
        Experience {
            name: format!("source {source}"),
            rows: rows.collect(),
        }
    };
    let all: Vec<Experience> = (0..sources).map(of).collect();
    Knowledge::new(space, &all)
}

fn cost_of(space: &Space, sources: u64) {
    let known = knowledge(space, sources);
    let mut search = evolve_with_knowledge(space, Seed(1), &[], Settings::default(), &known);
    println!(
        "{:.1e} configurations, {sources} sources:",
        space.count() as f64
    );
    let mut done = 0;
    for evals in [100, 400, 1000, 4000] {
        let (began, worked) = (Instant::now(), processor_us());
        for _ in done..evals {
            let Some(proposal) = search.ask() else { break };
            search.tell(proposal.id, time(&proposal.config));
        }
        let each = f64::from(evals - done);
        let us = began.elapsed().as_secs_f64() * 1e6 / each;
        let processor = worked
            .zip(processor_us())
            .map_or_else(String::new, |(from, to)| {
                format!(", {:.0} us of processor time", (to - from) / each)
            });
        println!("  proposals {done} to {evals}: {us:.0} us each{processor}");
        done = evals;
    }
}

/// A name, and the settings with that part off.
fn variants() -> Vec<(&'static str, Settings)> {
    let all = Settings::default;
    vec![
        ("everything", all()),
        (
            "no alignment coordinate",
            Settings {
                alignment: false,
                ..all()
            },
        ),
        (
            "values not told apart",
            Settings {
                apart: false,
                ..all()
            },
        ),
        (
            "scales not fitted",
            Settings {
                fit_steps: 0,
                ..all()
            },
        ),
        (
            "no failure prediction",
            Settings {
                failures: false,
                ..all()
            },
        ),
        (
            "opening not spread",
            Settings {
                opening_draws: 1,
                ..all()
            },
        ),
        (
            "slow ones told apart",
            Settings {
                slack: 1.0,
                ..all()
            },
        ),
        (
            "no neighbours, no children",
            Settings {
                near_elites: 0,
                near_each: 0,
                pool_bred: 0,
                join_bred: 0,
                ..all()
            },
        ),
        (
            "no uniform candidates",
            Settings {
                pool_uniform: 0,
                join_uniform: 0,
                ..all()
            },
        ),
        (
            "no uniform proposals",
            Settings {
                explore: 0.0,
                ..all()
            },
        ),
        (
            "luck of a configuration not counted",
            Settings { luck: 0.0, ..all() },
        ),
        (
            "no second search",
            Settings {
                second_after: usize::MAX,
                ..all()
            },
        ),
        (
            "opening of extremes only",
            Settings {
                typical: 0,
                ..all()
            },
        ),
        (
            "lower bound from 25 on",
            Settings {
                bound_from: 25,
                ..all()
            },
        ),
    ]
}

fn ablation(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let (files, seeds) = recordings(arguments)?;
    let variants = variants();
    let study = Study {
        strategies: variants
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        evals: 400,
        recorded_us: 0,
        seeds,
        in_flight: 1,
        noise: 0.0,
        converged: None,
    };
    let make = |wanted: &str, file: usize, seed| {
        let found = variants.iter().find(|(name, _)| *name == wanted);
        let settings = found
            .map(|(_, settings)| settings.clone())
            .unwrap_or_default();
        Ok::<_, Infallible>(evolve_with(&files[file].space, seed, &[], settings))
    };
    let series = measure(&files, &study, make, |_| ())?;
    println!("| part | @25 | @50 | @100 | @200 | @400 |\n|---|--:|--:|--:|--:|--:|");
    for (name, _) in &variants {
        let of: Vec<&Series> = series
            .iter()
            .filter(|each| each.strategy == *name)
            .collect();
        let cells = [25, 50, 100, 200, 400].map(|evals| {
            let sum: f64 = of.iter().map(|each| each.after(evals).mean()).sum();
            format!("{:.3}", sum / of.len() as f64)
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
    Ok(())
}
