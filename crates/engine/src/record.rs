//! Conversion of a candidate to the search's observation and to the stored record.

use super::evaluator::Judged;
use tuner_core::evidence::Measured;
use tuner_core::objective::Objectives;
use tuner_core::record::{
    Compilation, ConfigValues, Measurement, TimingKind, TrialRecord, Verdict,
};
use tuner_core::units::Micros;
use tuner_search::{CompileStats, Observation};

/// Half the width of a 95 % interval, in standard errors.
const DEVIATIONS_95: f64 = 1.96;

/// Returns the compiler's statistics with a predicted time.
pub(super) fn stats(compilation: &Compilation, predicted: Option<Micros>) -> CompileStats {
    CompileStats {
        registers: compilation.registers,
        spill_bytes: compilation.spill_bytes,
        shared_bytes: compilation.shared_bytes,
        predicted,
        other: None,
    }
}

/// Converts a candidate to the search's observation; `objectives`: objectives in addition to the
/// time.
pub(super) fn observation<T: AsRef<Measurement>>(
    trial: &TrialRecord<T>,
    objectives: Option<Objectives>,
) -> Observation {
    let judgement = &trial.judgement;
    match trial.measurement.as_ref().map(AsRef::as_ref) {
        Some(measurement) if judgement.is_ok() => Observation::Time {
            time: measurement.p50,
            error: error(measurement),
            other: objectives.and_then(|both| {
                both.other
                    .value_for(measurement, trial.compilation.as_ref())
            }),
        },
        _ if judgement.verdict == Verdict::NotJudged => Observation::Unknown,
        _ => Observation::Failed(judgement.verdict),
    }
}

/// Returns the standard error of a measured time, relative. Zero for recorded and predicted times:
/// measuring again would return the same.
fn error(measurement: &Measurement) -> f64 {
    let [low, high] = measurement.ci95.map(Micros::get);
    match measurement.kind {
        TimingKind::Measured => (high - low) / (2.0 * DEVIATIONS_95) / measurement.p50.get(),
        TimingKind::Predicted | TimingKind::Recorded => 0.0,
    }
}

/// Reports whether a launch was refused before a compile.
pub(super) fn needed_no_compile<T>(trial: &TrialRecord<T>) -> bool {
    trial.judgement.verdict == Verdict::LaunchFailed && trial.compilation.is_none()
}

/// Builds the stored record of a judged candidate.
pub fn record(
    judged: Judged,
    sequence: u64,
    config: ConfigValues,
    origin: &str,
) -> TrialRecord<Measured> {
    let explanation = judged.found.explanation.as_ref();
    let right = judged.found.judgement.is_ok();
    TrialRecord {
        sequence,
        config,
        candidate_hash: judged.candidate,
        counters: explanation.and_then(|counts| serde_json::to_value(counts).ok()),
        judgement: judged.found.judgement,
        compilation: judged.compilation,
        // A worker's answer could contain both, but a wrong candidate must not rank.
        measurement: judged.found.measured.filter(|_| right),
        charged_us: judged.charged_us,
        origin: origin.to_owned(),
    }
}

/// Returns the judgement of a stored announcement.
pub(super) fn judged(trial: TrialRecord) -> Judged {
    Judged {
        compilation: trial.compilation,
        charged_us: trial.charged_us,
        ..Judged::without_device(trial.candidate_hash, trial.judgement)
    }
}
