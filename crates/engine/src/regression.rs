//! Regression check: the shipped and the best configuration of one problem, judged and timed in
//! turn.

use super::evaluator::Judged;
use super::job::{JobError, Prepared};
use tuner_core::record::{Measurement, TimingKind, Verdict};
use tuner_core::statistics::{interval_of_median, median, ratio_of_medians};
use tuner_space::Config;

/// Results of both, judged in turn.
#[derive(Debug)]
pub struct Rounds {
    /// The shipped configuration.
    pub shipped: Judged,
    /// The best, if there is one and the shipped one is correct.
    pub best: Option<Judged>,
    /// Shipped over best, one ratio for each round.
    pub ratios: Vec<f64>,
}

impl Rounds {
    /// Judges and times both in turn on a task: once on a deterministic device, up to `most` times
    /// on a real GPU. The order alternates between rounds, so that heating and drift favour
    /// neither.
    ///
    /// # Errors
    /// The tuner itself failed.
    pub fn judge(
        prepared: &Prepared,
        task: usize,
        shipped: &Config,
        best: Option<&Config>,
        most: u32,
    ) -> Result<Self, JobError> {
        let judge = |config: &Config| {
            let judged = prepared.judge(task, config)?;
            match judged.verdict() {
                Verdict::NotJudged => {
                    let why = judged.found.judgement.detail;
                    Err(JobError::Failed(anyhow::anyhow!("{why}")))
                }
                _ => Ok(judged),
            }
        };
        let mut rounds = Self {
            shipped: judge(shipped)?,
            best: None,
            ratios: Vec::new(),
        };
        let Some(best) = best.filter(|_| rounds.shipped.found.judgement.is_ok()) else {
            return Ok(rounds);
        };
        if best == shipped {
            // The same code: the ratio is 1.
            rounds.best = Some(rounds.shipped.clone());
            rounds.ratios.push(1.0);
            return Ok(rounds);
        }
        let first = judge(best)?;
        rounds.ratios.extend(ratio(&rounds.shipped, &first));
        let measured = |time: &Measurement| time.kind == TimingKind::Measured;
        let varies = first.time().is_some_and(measured);
        let right = first.found.judgement.is_ok();
        rounds.best = Some(first);
        if right && let Some(duel) = prepared.duel(task, [shipped, best])? {
            // Interleaved by sample: less drift than between whole measurements.
            rounds.ratios = duel.ratios;
            return Ok(rounds);
        }
        for round in 1..if varies { most } else { 1 } {
            let (shipped, best) = if round % 2 == 0 {
                let shipped = judge(shipped)?;
                (shipped, judge(best)?)
            } else {
                let best = judge(best)?;
                (judge(shipped)?, best)
            };
            // A reused time is not further evidence.
            let again = |judged: &Judged| judged.time().is_none_or(|time| time.reused);
            if again(&shipped) || again(&best) {
                break;
            }
            rounds.ratios.extend(ratio(&shipped, &best));
        }
        Ok(rounds)
    }

    /// Returns shipped over best, with the ends of its 95 % interval; `None` unless both have a time.
    #[must_use]
    pub fn ratio(&self) -> Option<[f64; 3]> {
        let (own, best) = (self.shipped.time()?, self.best.as_ref()?.time()?);
        let middle = median(&self.ratios)?;
        if self.ratios.len() == 1 {
            // With one round, the samples provide the noise.
            return Some(between(own, best));
        }
        let [low, high] = interval_of_median(&self.ratios).unwrap_or([middle; 2]);
        Some([middle, low, high])
    }
}

fn ratio(shipped: &Judged, best: &Judged) -> Option<f64> {
    Some(shipped.time()?.p50.get() / best.time()?.p50.get())
}

/// Returns the ratio of two times of one session with its interval. If both were timed with the fixed
/// reference, their ratios to it are used, which removes clock drift; else the medians.
fn between(own: &Measurement, other: &Measurement) -> [f64; 3] {
    let related = |time: &Measurement| {
        let evidence = time.evidence.as_ref()?;
        let ratios = &evidence.reference_ratios;
        let [low, high] = interval_of_median(ratios)?;
        Some((evidence.reference.clone()?, (median(ratios)?, low, high)))
    };
    match (related(own), related(other)) {
        (Some((a, own)), Some((b, other))) if a == b => ratio_of_medians(own, other),
        _ => {
            let plain =
                |time: &Measurement| (time.p50.get(), time.ci95[0].get(), time.ci95[1].get());
            ratio_of_medians(plain(own), plain(other))
        }
    }
}
