//! Origin of the winner: differences from the default, commands to reproduce it, and provenance.

use super::document::{Block, code, plain};
use super::model::{Input, Subject};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tuner_core::escape::{line, shell as quoted};
use tuner_core::record::{DeviceKind, LeaderboardRow, TimingKind, assignments};
use tuner_core::settings::RunSettings;

/// Lists the winner's changes in its configuration and in the source.
pub(super) fn differences(subject: &Subject, best: &LeaderboardRow) -> Vec<Block> {
    let mut blocks = Vec::new();
    match &subject.board.default_config {
        Some(default) if *default == best.config => {
            blocks.push(Block::text(
                "The default configuration is the best that was found.",
            ));
        }
        Some(default) => {
            let rows: Vec<Vec<String>> = best
                .config
                .iter()
                .zip(default)
                .filter(|((_, ours), (_, theirs))| ours != theirs)
                .map(|((name, ours), (_, theirs))| {
                    let doc = subject
                        .board
                        .definition
                        .parameters
                        .iter()
                        .find(|p| p.name == *name);
                    let doc = doc.map_or("", |p| p.doc.as_str());
                    vec![
                        code(name),
                        plain(&theirs.to_string()),
                        plain(&ours.to_string()),
                        plain(doc),
                    ]
                })
                .collect();
            blocks.push(Block::table(
                &["parameter", "default", "winner", "meaning"],
                9,
                rows,
            ));
        }
        None => blocks.push(Block::table(
            &["parameter", "winner"],
            9,
            best.config
                .iter()
                .map(|(name, value)| vec![code(name), plain(&value.to_string())])
                .collect(),
        )),
    }
    match subject.kernel.as_ref().map(|kernel| &kernel.sources) {
        Some(Ok([default, winner])) => {
            let text = unified("default", "winner", default, winner);
            if !text.is_empty() {
                blocks.push(Block::Folded {
                    summary: "The generated source against the default's".to_owned(),
                    open: true,
                    blocks: vec![Block::Code("diff", text)],
                });
            }
        }
        Some(Err(why)) => blocks.push(Block::text(format!("No source to show: {}.", plain(why)))),
        None if subject.board.device_kind == DeviceKind::Replay => {
            blocks.push(Block::text("No source to show: a recorded file has none."));
        }
        None => blocks.push(Block::text(
            "No source to show: the kernel's search space is not at hand here.",
        )),
    }
    blocks
}

/// Returns the difference of two texts in the form of `diff -u`; empty for equal texts.
fn unified(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    similar::TextDiff::from_lines(old, new)
        .unified_diff()
        .header(old_name, new_name)
        .missing_newline_hint(false)
        .to_string()
}

/// Describes the tree on which the winner was measured.
fn checkout(best: &LeaderboardRow) -> String {
    let mut script = String::new();
    if let Some(commit) = &best.commit {
        let _ = writeln!(script, "git checkout {}", quoted(commit));
        if let Some(hash) = &best.diff_hash {
            let _ = writeln!(
                script,
                "# then apply the changes whose `git diff --binary HEAD` has the SHA-256 {}",
                line(hash)
            );
        }
    }
    script
}

/// Returns a kernel's name for the command line: the file from which it was tuned if available, because a
/// variant of a space shares its kernel's name.
fn typed<'i>(input: &'i Input, kernel: &'i str) -> &'i str {
    let of_kernel = |subject: &&Subject| subject.board.key.kernel == kernel;
    let facts = input
        .subjects
        .iter()
        .filter(of_kernel)
        .find_map(|one| one.kernel.as_ref());
    match facts {
        Some(facts) if facts.path != format!("search_spaces/{kernel}.yaml") => &facts.path,
        _ => kernel,
    }
}

/// Returns the options for limits and objectives.
fn limits(settings: &RunSettings) -> String {
    // Each field is named, so that a new one is not omitted by mistake.
    let RunSettings {
        evals,
        budget_s,
        until_converged,
        arch,
        objective,
        jobs: _,
        window: _,
        prove_budget: _,
        knowledge: _,
    } = settings;
    let mut text = String::new();
    if let Some(evals) = evals {
        let _ = write!(text, " --evals {evals}");
    }
    if let Some(seconds) = budget_s {
        let _ = write!(text, " --budget {seconds:.0}s");
    }
    if let Some(share) = until_converged {
        let _ = write!(text, " --until-converged={share}");
    }
    if let Some(arch) = arch {
        let _ = write!(text, " --arch {}", quoted(arch));
    }
    if let Some(objectives) = objective {
        let _ = write!(text, " --objective {}", quoted(objectives));
    }
    text
}

/// Returns the commands that reproduce the winner.
pub(super) fn reproduce(input: &Input, subject: &Subject, best: &LeaderboardRow) -> Vec<Block> {
    let Some(line) = subject
        .runs
        .iter()
        .find(|line| line.run.name == best.run_id)
    else {
        return Vec::new();
    };
    let run = &line.run;
    let mut script = checkout(best);
    let replay = subject.board.device_kind == DeviceKind::Replay;
    let list = |flag: &str, names: &[String]| -> String {
        // A recorded file determines its kernel and problem.
        let names = names.iter().filter(|_| !replay);
        names
            .map(|name| format!("{flag}{}", quoted(typed(input, name))))
            .collect()
    };
    let kernel = list(" ", &run.kernels);
    let problems = run.problems.iter().filter(|_| !replay);
    let problem: String = problems
        .map(|name| format!(" --problem {}", quoted(name)))
        .collect();
    let settings = RunSettings::from_stored(&run.settings);
    let limits = limits(&settings);
    if run.selector == "import" {
        let _ = writeln!(script, "tuner import FILE --db {}", quoted(&input.database));
    } else {
        let _ = writeln!(
            script,
            "tuner run{kernel} --device {}{problem} --strategy {} --seed {}{limits} --db reproduced.db",
            quoted(&run.selector),
            quoted(&run.strategy),
            quoted(&run.seed),
        );
    }
    if !replay {
        let device = if subject.board.timing == TimingKind::Predicted {
            format!(" --device {}", quoted(&run.selector))
        } else {
            String::new()
        };
        let _ = writeln!(
            script,
            "tuner check {} --problem {} --config {}{device}",
            quoted(typed(input, &subject.board.key.kernel)),
            quoted(&subject.board.key.problem),
            quoted(&assignments(&best.config, ",")),
        );
    }
    let mut blocks = vec![Block::Code("sh", script)];
    if settings.evals.is_none() || subject.board.timing == TimingKind::Measured {
        blocks.push(Block::text(
            "A run that is limited by time or measures on a real GPU visits other candidates each time; the configuration and its check are the same.",
        ));
    }
    blocks
}

/// Builds a table of the runs.
pub(super) fn provenance(input: &Input) -> Vec<Block> {
    let mut rows: BTreeSet<Vec<String>> = BTreeSet::new();
    for subject in &input.subjects {
        for line in &subject.runs {
            let run = &line.run;
            let ours = subject.board.device_kind != DeviceKind::Replay;
            let none = || "-".to_owned();
            let tree = match (&run.commit, run.dirty) {
                (Some(commit), false) => code(commit),
                (Some(commit), true) => format!(
                    "{} dirty, difference {}",
                    code(commit),
                    code(run.diff_hash.as_deref().unwrap_or("unknown"))
                ),
                (None, _) => "no commit".to_owned(),
            };
            let template = subject.best().filter(|best| best.run_id == run.name);
            rows.insert(vec![
                code(&run.name),
                code(&subject.board.key.kernel),
                if ours { tree } else { none() },
                template
                    .and_then(|best| best.template_hash.as_deref())
                    .map_or_else(none, |hash| code(hash.get(..12).unwrap_or(hash))),
                plain(&format!("tuner {} on {}", run.tuner_version, run.host)),
                plain(
                    &[
                        run.driver.as_ref().map(|driver| format!("driver {driver}")),
                        run.nvrtc_version
                            .as_ref()
                            .map(|nvrtc| format!("NVRTC {nvrtc}")),
                    ]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", "),
                ),
                plain(&run.started_at),
            ]);
        }
    }
    let head = [
        "run", "kernel", "commit", "template", "by", "with", "started",
    ];
    vec![
        Block::Heading(2, "Provenance".to_owned()),
        Block::table(&head, 9, rows.into_iter().collect()),
    ]
}

#[cfg(test)]
mod tests;
