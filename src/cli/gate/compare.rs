//! Judges and times the shipped configuration against the best.

use super::sources::{GateData, ShippedConfig};
use super::{Args, Comparison, Line, Outcome};
use crate::cli::CliError;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, ConfigValues, LeaderboardRow, Measurement, Verdict};
use tuner_core::statistics::ratio_of_medians;
use tuner_engine::job::Prepared;
use tuner_engine::{Judged, Rounds, Task};
use tuner_report::accept::Figures;
use tuner_space::{Config, Space};

/// Figures by problem.
type Named = Vec<(String, Figures)>;

/// Compares every problem of the plan, and returns figures of best and shipped for the rules.
pub(super) fn compare_problems(
    args: &Args,
    prepared: &Prepared,
    known: &GateData,
) -> Result<(Vec<Line>, Named), CliError> {
    let mut lines = Vec::new();
    let mut figures = Vec::new();
    for (index, task) in prepared.plan().tasks.iter().enumerate() {
        let now = prepared
            .plan()
            .start
            .tasks
            .get(index)
            .and_then(|start| start.template_hash.as_ref());
        let gate = Gate {
            args,
            prepared,
            known,
            index,
            task,
            template: now.map(ToString::to_string),
        };
        let (line, of_best) = gate.problem()?;
        if let Some(of_best) = of_best {
            figures.push((line.problem.clone(), of_best));
        }
        lines.push(line);
    }
    Ok((lines, figures))
}

/// State of one problem.
struct Gate<'a> {
    args: &'a Args,
    prepared: &'a Prepared,
    known: &'a GateData,
    index: usize,
    task: &'a Task,
    /// Hash of the current template.
    template: Option<String>,
}

impl Gate<'_> {
    fn problem(&self) -> Result<(Line, Option<Figures>), CliError> {
        let space = &self.task.space;
        let mut line = Line {
            kernel: self.task.key.kernel.clone(),
            problem: self.task.key.problem.clone(),
            device: self.task.key.device.clone(),
            ..Line::default()
        };
        let best = self.known.best.get(&self.task.key.problem);
        let Some(found) = self
            .known
            .shipped(self.args, &self.task.key.problem, space)?
        else {
            "the shipped file has no entry for this problem".clone_into(&mut line.detail);
            return Ok((line, None));
        };
        if best.is_none() && found.shipped_us.is_none() {
            line.detail = format!(
                "{} has no result of problem {}; `tuner run` makes some",
                self.args.db.display(),
                self.task.key.problem
            );
            return Ok((line, None));
        }
        line.shipped = Some(found.config.clone());
        line.shipped_from.clone_from(&found.from);
        let config = match in_space(space, &found.config) {
            Ok(config) => config,
            Err(why) => {
                line.outcome = Outcome::Wrong;
                line.verdict = Some(Verdict::Rejected);
                line.detail = format!("the shipped configuration is no longer in the space: {why}");
                return Ok((line, None));
            }
        };
        // The best may belong to an earlier space; then its stored time is compared.
        let best_config = best.and_then(|row| in_space(space, &row.config).ok());
        let best_config = best_config.as_ref();
        let most = self.args.rounds;
        let rounds = Rounds::judge(self.prepared, self.index, &config, best_config, most)?;
        let busy = self.known.sm_busy.get(&self.task.key.problem);
        let figures = figures(&rounds, busy.copied());
        self.fill(&mut line, &found, best, &rounds);
        Ok((line, figures))
    }

    fn fill(
        &self,
        line: &mut Line,
        found: &ShippedConfig,
        best: Option<&LeaderboardRow>,
        rounds: &Rounds,
    ) {
        let shipped = &rounds.shipped;
        line.verdict = Some(shipped.verdict());
        line.max_error = shipped.found.judgement.max_error;
        line.compared = shipped.found.judgement.compared;
        line.unproven = missing_proof(&shipped.found.judgement);
        // A file of an earlier version has no hash, which would be reported as changed code.
        let record = found
            .record
            .as_ref()
            .filter(|record| record.cubin_hash.is_some());
        let built = shipped.compilation.as_ref();
        line.changes = record
            .zip(built)
            .map(|(record, built)| record.code_changes(built));
        if let Some(row) = best {
            line.best = Some(row.config.clone());
            line.best_us_p50 = Some(row.time_us_p50);
            line.best_run_id = Some(row.run_id.clone());
            line.best_commit.clone_from(&row.commit);
        }
        let Some(own) = shipped.time().filter(|_| shipped.verdict() == Verdict::Ok) else {
            line.outcome = Outcome::Wrong;
            line.detail = format!(
                "{}: {}",
                shipped.verdict(),
                shipped
                    .found
                    .judgement
                    .detail
                    .lines()
                    .next()
                    .unwrap_or_default()
            );
            return;
        };
        line.timing = Some(own.kind);
        line.shipped_us_p50 = Some(own.p50.get());
        line.shipped_us_p90 = Some(own.p90.get());
        line.comparisons = self.comparisons(own, found, best, rounds);
        let Some(worst) = line.worst().cloned() else {
            "there is nothing of the same kind of time to compare with"
                .clone_into(&mut line.detail);
            return;
        };
        line.ratio = Some(worst.ratio);
        line.ci95 = Some(worst.ci95);
        // Noise alone must not fail a CI run: the interval has to exclude 1, too.
        let slower = worst.ratio > 1.0 + self.args.max_regression / 100.0 && worst.ci95[0] > 1.0;
        line.outcome = if slower {
            Outcome::Regression
        } else {
            Outcome::Passed
        };
        if slower {
            line.detail = format!(
                "{:+.2} % against {}, more than {} %",
                100.0 * (worst.ratio - 1.0),
                worst.against,
                self.args.max_regression
            );
        }
    }

    /// Compares with the best, timed now; with its stored time if the template was edited since or the best
    /// no longer runs; with the shipped time if neither is available.
    fn comparisons(
        &self,
        own: &Measurement,
        found: &ShippedConfig,
        best: Option<&LeaderboardRow>,
        rounds: &Rounds,
    ) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        let now = rounds.best.as_ref().and_then(Judged::time);
        if let (Some(now), Some([ratio, low, high])) = (now, rounds.ratio()) {
            comparisons.push(Comparison {
                against: "the leaderboard's best, timed now",
                us: now.p50.get(),
                ratio,
                ci95: [low, high],
            });
        }
        if let Some(row) = best.filter(|row| row.timing == own.kind) {
            let edited = row.template_hash.is_some() && row.template_hash != self.template;
            if edited || now.is_none() {
                let [low, high] = row.sampled_interval_us();
                let stored = [row.time_us_p50, low, high];
                let against = match edited {
                    true => "the leaderboard's best as stored, before the template was edited",
                    false => "the leaderboard's best as stored, which does not run now",
                };
                comparisons.push(stored_comparison(against, own, stored));
            }
        }
        // A measured time is never compared with a predicted one.
        let same_kind = found.shipped_timing.is_none_or(|timing| timing == own.kind);
        if let (true, Some(us)) = (comparisons.is_empty() && same_kind, found.shipped_us) {
            comparisons.push(stored_comparison(
                "the time it was shipped with",
                own,
                // A shipped file has a median without an interval.
                [us; 3],
            ));
        }
        comparisons
    }
}

fn stored_comparison(
    against: &'static str,
    own: &Measurement,
    [us, low, high]: [f64; 3],
) -> Comparison {
    let now = (own.p50.get(), own.ci95[0].get(), own.ci95[1].get());
    let [ratio, low, high] = ratio_of_medians(now, (us, low, high));
    Comparison {
        against,
        us,
        ratio,
        ci95: [low, high],
    }
}

fn in_space(space: &Space, values: &ConfigValues) -> Result<Config, String> {
    let config = space
        .config_from_values(values)
        .map_err(|error| error.to_string())?;
    match space.reject_reason(&config) {
        None => Ok(config),
        Some(why) => Err(why),
    }
}

/// Returns the figures of the best as a challenger of the shipped configuration.
fn figures(rounds: &Rounds, sm_busy: Option<f64>) -> Option<Figures> {
    let best = rounds.best.as_ref()?;
    let [gain, gain_low, _] = rounds.ratio()?;
    let p90 = |judged: &Judged| judged.time().map(|time| time.p90.get());
    Some(Figures {
        gain,
        gain_low,
        p90_ratio: p90(best)
            .zip(p90(&rounds.shipped))
            .map(|(best, shipped)| best / shipped),
        spill_bytes: best.compilation.as_ref().map(|facts| facts.spill_bytes),
        registers: best.compilation.as_ref().map(|facts| facts.registers),
        sm_busy,
    })
}

/// Returns the reason why results that passed were not compared on the whole timed problem.
fn missing_proof(judgement: &Judgement) -> Option<String> {
    let compared = judgement.compared?;
    if !judgement.is_ok() || compared == Compared::Whole {
        return None;
    }
    Some(match judgement.detail.as_str() {
        "" => compared.describe().to_owned(),
        detail => format!("{} ({detail})", compared.describe()),
    })
}
