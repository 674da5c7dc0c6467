//! Content and order of a report.

use super::analysis::{self, ablation, effects, failures};
use super::bottleneck::{main_three, parameter};
use super::document::{Block, code, plain};
use super::knowledge;
use super::model::{Input, Subject, WinnerProfile};
use super::origin::{differences, provenance, reproduce};
use super::overview::{self, shape, speedup, us, versus};
use super::pareto;
use super::winners::{config_text, top_rows};
use super::{costs, family, plots, roofline};
use tuner_core::record::{DeviceKind, LeaderboardRow, value_of};
use tuner_core::units::counted;
use vgpu::arch::by_device_name;

/// Subjects that are shown unfolded.
const UNFOLDED_SUBJECTS: usize = 3;
/// Maximum rows of the tables of failures and of changes.
const MAX_TABLE_ROWS: usize = 8;

/// Builds the whole report.
pub(super) fn document(input: &Input) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(1, "Tuning report".to_owned()),
        Block::text(format!(
            "Of {}, by tuner {}.",
            code(&input.database),
            env!("CARGO_PKG_VERSION")
        )),
    ];
    blocks.push(Block::Heading(2, "Problems".to_owned()));
    blocks.extend(overview::blocks(input));
    for subject in &input.subjects {
        blocks.extend(warnings(subject));
    }
    let mut kernel = None;
    for (number, subject) in input.subjects.iter().enumerate() {
        if kernel != Some(&subject.board.key.kernel) {
            kernel = Some(&subject.board.key.kernel);
            blocks.push(Block::Heading(2, code(&subject.board.key.kernel)));
            if let Some(facts) = subject
                .kernel
                .as_ref()
                .filter(|facts| !facts.summary.is_empty())
            {
                blocks.push(Block::text(plain(&facts.summary)));
            }
        }
        blocks.push(Block::Folded {
            summary: format!(
                "{} on {}, {}",
                shape(subject),
                plain(&subject.board.key.device),
                subject.label()
            ),
            open: number < UNFOLDED_SUBJECTS,
            blocks: build_section(input, subject, number),
        });
    }
    blocks.extend(input.families.iter().flat_map(family::blocks));
    blocks.extend(costs::blocks(input));
    blocks.extend(provenance(input));
    blocks
}

fn warnings(subject: &Subject) -> Vec<Block> {
    let name = format!(
        "{} {} on {}",
        code(&subject.board.key.kernel),
        plain(&subject.board.key.problem),
        plain(&subject.board.key.device)
    );
    let mut blocks: Vec<Block> = subject
        .warnings
        .iter()
        .map(|warning| Block::Warning(format!("{name}: {}", plain(warning))))
        .collect();
    let best = subject.best();
    if best.is_some_and(|best| best.stale == Some(true)) {
        blocks.push(Block::Warning(format!(
            "{name}: stale: the template was edited since these results; tune again."
        )));
    }
    if best.is_some_and(|best| best.dirty == Some(true)) {
        let diff = best
            .and_then(|best| best.diff_hash.as_deref())
            .unwrap_or("unknown");
        blocks.push(Block::Warning(format!(
            "{name}: measured on a dirty tree; SHA-256 of the difference: {}.",
            code(diff)
        )));
    }
    blocks
}

/// Builds the section of one problem.
fn build_section(input: &Input, subject: &Subject, number: usize) -> Vec<Block> {
    let Some(best) = subject.best() else {
        return Vec::new();
    };
    // Several kernels and devices may have problems of one name, but file names must be unique.
    let plot = format!(
        "{number:02}-{}",
        crate::export::target_name(&subject.board.key.problem)
    );
    let mut blocks = vec![tiles(subject, best)];
    let mut section = |title: &str, content: Vec<Block>| {
        if !content.is_empty() {
            blocks.push(Block::Heading(3, title.to_owned()));
            blocks.extend(content);
        }
    };
    section("Best configurations", top_rows(subject));
    section("Convergence", convergence(subject, &plot));
    section("Two objectives", pareto::blocks(subject, &plot));
    section("What the search knew", knowledge::blocks(subject));
    section("Roofline", roofline::blocks(subject, &plot));
    section(
        "Effects of the parameters",
        parameter_effects(subject, best, &plot),
    );
    section(
        "Ablation: what each choice of the winner buys",
        ablation_blocks(subject, &plot),
    );
    section("Hazards and failures met", failure_blocks(subject));
    section("What limits the winner", bottleneck_blocks(subject));
    section("The winner against the default", differences(subject, best));
    section("How to reproduce", reproduce(input, subject, best));
    blocks
}

fn tiles(subject: &Subject, best: &LeaderboardRow) -> Block {
    let mut tiles = vec![(
        format!("{} µs", us(best.time_us_p50)),
        format!("best p50, {}", subject.label()),
    )];
    // The 90th percentile of one sample would repeat the median.
    if best.samples > 1 {
        tiles.push((
            format!("{} µs", us(best.time_us_p90)),
            "best p90".to_owned(),
        ));
    }
    if let Some(versus) = versus(subject) {
        tiles.push((
            speedup(versus.ratio),
            format!("over {}", plain(&versus.name)),
        ));
    }
    let passed = subject
        .candidates
        .iter()
        .filter(|c| analysis::time(&c.trial).is_some())
        .count();
    tiles.push((
        format!("{passed} of {}", subject.candidates.len()),
        "candidates passed".to_owned(),
    ));
    if let Some(error) = best.max_error {
        tiles.push((
            format!("{error:.3}"),
            "largest error over its tolerance".to_owned(),
        ));
    }
    if let Some(compared) = best.compared {
        tiles.push((
            compared.name().replace('_', " "),
            compared.describe().to_owned(),
        ));
    }
    Block::Tiles(tiles)
}

fn convergence(subject: &Subject, plot: &str) -> Vec<Block> {
    let default = subject
        .board
        .default_config
        .as_ref()
        .and_then(|config| subject.candidate(config))
        .and_then(|judged| analysis::time(&judged.trial));
    let Some(svg) = plots::convergence(&subject.runs, default) else {
        return Vec::new();
    };
    let runs: Vec<String> = subject
        .runs
        .iter()
        .map(|line| {
            let run = &line.run;
            let found = line
                .steps
                .iter()
                .filter_map(|step| step.p50_us)
                .fold(f64::INFINITY, f64::min);
            let best = match line.final_us {
                Some(best) => format!("best {} µs in the final comparison", us(best)),
                None if found.is_finite() => format!("best {} µs", us(found)),
                None => "nothing passed".to_owned(),
            };
            format!(
                "{}: {}, seed {}, {}, {best}{}, {}",
                code(&run.name),
                plain(&run.strategy),
                plain(&run.seed),
                counted(line.steps.len(), "candidate"),
                knowledge::left(subject, line),
                plain(&run.state)
            )
        })
        .collect();
    vec![
        Block::Plot {
            name: format!("{plot}-convergence"),
            svg,
            caption: format!("Best {} time so far, a curve a run.", subject.label()),
        },
        Block::List(runs),
    ]
}

fn parameter_effects(subject: &Subject, best: &LeaderboardRow, plot: &str) -> Vec<Block> {
    let effects = effects(subject);
    if effects.is_empty() {
        return Vec::new();
    }
    let rows: Vec<Vec<String>> = effects
        .iter()
        .map(|effect| {
            let chosen = value_of(&best.config, &effect.parameter)
                .map_or(String::new(), ToString::to_string);
            let values: Vec<String> = effect
                .values
                .iter()
                .map(|value| match value.best_us {
                    Some(time) => format!(
                        "{} {:.2}x ({}/{})",
                        value.value,
                        time / best.search_time_us(),
                        value.passed,
                        value.judged
                    ),
                    None => format!("{} none (0/{})", value.value, value.judged),
                })
                .collect();
            vec![
                code(&effect.parameter),
                format!("{:.0} %", 100.0 * effect.share),
                plain(&chosen),
                plain(&values.join(", ")),
            ]
        })
        .collect();
    vec![
        Block::Plot {
            name: format!("{plot}-effects"),
            svg: plots::effects(&effects, best.search_time_us()),
            caption: "The best time with each value over the best of all; in brackets the share of the variance of log time that the parameter explains among the candidates judged. ✕: nothing passed.".to_owned(),
        },
        Block::table(
            &["parameter", "explains", "winner has", "best with each value (passed / judged)"],
            9,
            rows,
        ),
    ]
}

fn ablation_blocks(subject: &Subject, plot: &str) -> Vec<Block> {
    let changes = ablation(subject);
    if changes.is_empty() {
        let advice = if subject.board.device_kind == DeviceKind::Replay {
            ""
        } else {
            "; `tuner report --ablate` or `tuner ablate` predicts them"
        };
        return vec![Block::text(format!(
            "No candidate that differs from the winner in one parameter was judged{advice}."
        ))];
    }
    let rows: Vec<Vec<String>> = changes
        .iter()
        .map(|change| {
            vec![
                code(&change.parameter),
                plain(&format!("{} → {}", change.from, change.to)),
                change.p50_us.map_or_else(|| change.verdict.to_string(), us),
                change.cost.map_or_else(
                    || "-".to_owned(),
                    |cost| format!("{:+.1} %", 100.0 * (cost - 1.0)),
                ),
                if change.predicted {
                    "predicted"
                } else {
                    subject.label()
                }
                .to_owned(),
            ]
        })
        .collect();
    let mut blocks = Vec::new();
    if let Some(svg) = plots::ablation(&changes) {
        blocks.push(Block::Plot {
            name: format!("{plot}-ablation"),
            svg,
            caption: "What the cheapest other value of each parameter would cost.".to_owned(),
        });
    }
    let head = ["parameter", "change", "p50, µs", "costs", "time"];
    blocks.push(Block::Folded {
        summary: format!("All {} changes of one parameter", changes.len()),
        open: changes.len() <= 12,
        blocks: vec![Block::table(&head, 2, rows)],
    });
    blocks
}

fn failure_blocks(subject: &Subject) -> Vec<Block> {
    let failures = failures(subject);
    if failures.is_empty() {
        return vec![Block::text("None: every candidate passed.")];
    }
    let rows = failures
        .iter()
        .take(MAX_TABLE_ROWS)
        .map(|failure| {
            vec![
                failure.verdict.to_string(),
                failure.count.to_string(),
                if failure.place.is_empty() {
                    "-".to_owned()
                } else {
                    code(&failure.place)
                },
                plain(&failure.example),
                config_text(subject, &failure.config),
            ]
        })
        .collect();
    let mut blocks = vec![Block::table(
        &[
            "verdict",
            "candidates",
            "place",
            "for example",
            "of the configuration",
        ],
        9,
        rows,
    )];
    if failures.len() > MAX_TABLE_ROWS {
        blocks.push(Block::text(format!(
            "And {} more kinds.",
            failures.len() - MAX_TABLE_ROWS
        )));
    }
    blocks
}

fn bottleneck_blocks(subject: &Subject) -> Vec<Block> {
    let Some(profile) = &subject.profile else {
        let strongest: Vec<String> = effects(subject)
            .iter()
            .take(3)
            .map(|effect| {
                format!(
                    "{} ({:.0} %)",
                    code(&effect.parameter),
                    100.0 * effect.share
                )
            })
            .collect();
        let strongest = if strongest.is_empty() {
            String::new()
        } else {
            format!(
                " What explains most of the differences in time: {}.",
                strongest.join(", ")
            )
        };
        let how = if subject.board.device_kind == DeviceKind::Replay {
            "recorded results carry no counters"
        } else {
            "no counters of the winner are stored; `tuner profile` takes them"
        };
        return vec![Block::text(format!("Not known: {how}.{strongest}"))];
    };
    let three = main_three(subject, by_device_name(&subject.board.key.device));
    if three.is_empty() {
        return vec![Block::text(format!(
            "The counters ({}) name no limit.",
            plain(&profile.source)
        ))];
    }
    let rows = three
        .iter()
        .map(|limit| {
            let (parameter, how) = match parameter(subject, limit) {
                Some((name, how)) => (code(&name), how),
                None => (
                    "none".to_owned(),
                    "no parameter of this space follows it".to_owned(),
                ),
            };
            let cells = [limit.name, &limit.evidence, &parameter, &how];
            cells.map(str::to_owned).to_vec()
        })
        .collect();
    let mut blocks = vec![
        Block::text(format!(
            "The three main bottlenecks, from {}:",
            plain(&profile.source)
        )),
        Block::table(
            &[
                "bottleneck",
                "evidence",
                "addressed by",
                "how that is known",
            ],
            9,
            rows,
        ),
    ];
    blocks.extend(key_metrics(profile));
    blocks
}

/// Returns the metrics of a profile in per cent: `tuner profile` stores such metrics, plain
/// counters have none.
fn key_metrics(profile: &WinnerProfile) -> Option<Block> {
    let percent = profile.metrics.iter().filter_map(|(name, value)| {
        let name = name.strip_suffix("_pct")?.replace('_', " ");
        Some(format!("{} {:.1} %", plain(&name), value.as_f64()?))
    });
    let metrics: Vec<String> = percent.collect();
    (!metrics.is_empty()).then(|| Block::text(format!("Profile: {}.", metrics.join(", "))))
}
