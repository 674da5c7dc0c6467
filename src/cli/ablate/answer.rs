//! Result rows of `tuner ablate` and their output.

use crate::cli::output;
use crate::cli::output::Format;
use serde::Serialize;
use tuner_core::record::{ConfigValues, Verdict, config_as_object};
use tuner_core::units::Micros;
use tuner_engine::Judged;
use tuner_engine::ablation::{Change, Outcome};
use tuner_space::Space;

/// A result row.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) kernel: String,
    pub(super) problem: String,
    pub(super) device: String,
    /// `predicted` or `measured`.
    pub(super) timing: &'static str,
    /// `base`, `parameter` or `inversion`.
    pub(super) change: &'static str,
    /// The parameter changed, or the pathology; empty for the base.
    pub(super) parameter: String,
    /// Base values of the changed parameters.
    pub(super) from: String,
    /// New values.
    pub(super) to: String,
    #[serde(with = "config_as_object")]
    pub(super) config: ConfigValues,
    pub(super) verdict: Verdict,
    pub(super) detail: String,
    /// Median, microseconds.
    pub(super) time_us: Option<f64>,
    /// Ratio of the time to that of the base; null if either is missing.
    pub(super) cost: Option<f64>,
    /// 95 % interval of a measured cost; that of the base is the base timed against itself.
    pub(super) cost_low: Option<f64>,
    pub(super) cost_high: Option<f64>,
    /// The interval contains 1, or overlaps that of the base: no significant difference. Null for the base
    /// and without a measurement.
    pub(super) same: Option<bool>,
    pub(super) bound: Option<String>,
    pub(super) occupancy: Option<f64>,
    pub(super) registers: Option<u32>,
    pub(super) spill_bytes: Option<u64>,
    pub(super) shared_bytes: Option<u64>,
    pub(super) bank_conflicts: Option<f64>,
    /// Warnings about a measured time: `bimodal`, `unsteady`, `throttled`.
    pub(super) flags: Vec<String>,
}

impl Answer {
    /// Creates the row of a change without results. An empty change is the base.
    pub(super) fn new(
        [kernel, problem, device]: [&str; 3],
        timing: &'static str,
        change: &Change,
        config: ConfigValues,
        inversion: bool,
    ) -> Self {
        Self {
            kernel: kernel.to_owned(),
            problem: problem.to_owned(),
            device: device.to_owned(),
            timing,
            change: match (change.what.as_str(), inversion) {
                ("", _) => "base",
                (_, true) => "inversion",
                (_, false) => "parameter",
            },
            parameter: change.what.clone(),
            from: change.from.clone(),
            to: change.to.clone(),
            config,
            verdict: Verdict::Ok,
            detail: String::new(),
            time_us: None,
            cost: None,
            cost_low: None,
            cost_high: None,
            same: None,
            bound: None,
            occupancy: None,
            registers: None,
            spill_bytes: None,
            shared_bytes: None,
            bank_conflicts: None,
            flags: Vec::new(),
        }
    }

    /// Adds a GPU's measurement.
    pub(super) fn measured(&mut self, outcome: Outcome) {
        self.found(outcome.judged);
        self.occupancy = outcome.occupancy;
        self.time_us = outcome.time_us;
        self.same = outcome.same;
        if let Some(cost) = outcome.cost {
            self.cost = Some(cost.ratio);
            [self.cost_low, self.cost_high] = cost.interval.map(Some);
            self.flags = cost.flags;
        }
    }

    /// Adds the verdict and the compiler's figures.
    pub(super) fn found(&mut self, judged: Judged) {
        self.verdict = judged.verdict();
        self.detail = judged.found.judgement.detail;
        let Some(facts) = &judged.compilation else {
            return;
        };
        self.registers = Some(facts.registers);
        self.spill_bytes = Some(facts.spill_bytes);
        self.shared_bytes = Some(facts.shared_bytes);
    }
}

/// Builds the rows of judged changes in their order.
pub(super) fn predicted(
    names: [&str; 3],
    space: &Space,
    changes: &[Change],
    judged: Vec<Judged>,
    inversion: bool,
) -> Vec<Answer> {
    let time = |judged: &Judged| judged.predicted().map(Micros::get);
    let base = judged.first().and_then(time);
    let answer = |(change, judged): (&Change, Judged)| {
        let config = space.values(&change.config);
        let time_us = time(&judged);
        let explanation = judged.found.explanation.as_ref();
        let mut answer = Answer {
            time_us,
            cost: time_us.zip(base).map(|(time, base)| time / base),
            bound: explanation.map(|e| e.bound.clone()),
            occupancy: explanation.map(|e| e.occupancy),
            bank_conflicts: explanation.map(|e| e.bank_conflicts),
            ..Answer::new(names, "predicted", change, config, inversion)
        };
        answer.found(judged);
        answer
    };
    changes.iter().zip(judged).map(answer).collect()
}

type Column = output::Column<Answer>;

fn number(value: Option<f64>, digits: usize) -> String {
    output::number("", value, digits)
}

fn count(value: Option<impl ToString>) -> String {
    output::or("", value)
}

const CHANGE: Column = ("change", |answer| match answer.change {
    "base" => "(none)".to_owned(),
    _ => answer.parameter.clone(),
});
const FROM: Column = ("from", |answer| answer.from.clone());
const TO: Column = ("to", |answer| answer.to.clone());
const VERDICT: Column = ("verdict", |answer| answer.verdict.to_string());
const TIME: Column = ("time_us", |answer| number(answer.time_us, 3));
const COST: Column = ("cost", |answer| number(answer.cost, 3));
const COST_LOW: Column = ("cost_low", |answer| number(answer.cost_low, 4));
const COST_HIGH: Column = ("cost_high", |answer| number(answer.cost_high, 4));
const BOUND: Column = ("bound", |answer| count(answer.bound.as_ref()));
const OCCUPANCY: Column = ("occupancy", |answer| number(answer.occupancy, 3));
const REGISTERS: Column = ("registers", |answer| count(answer.registers));
const SPILLS: Column = ("spill_bytes", |answer| count(answer.spill_bytes));
const SHARED: Column = ("shared_bytes", |answer| count(answer.shared_bytes));
const CONFLICTS: Column = ("bank_conflicts", |answer| number(answer.bank_conflicts, 0));
const TIMING: Column = ("timing", |answer| answer.timing.to_owned());
/// For tables: a word that marks a change without a significant difference.
const SAME: Column = ("same", |answer| match answer.same {
    Some(true) => "same".to_owned(),
    _ => String::new(),
});
const DETAIL: Column = ("detail", |answer| {
    let first = answer.detail.lines().next().unwrap_or_default();
    let texts = [first, &answer.flags.join(", ")];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join("; ")
});
/// For programs.
const SAME_PLAIN: Column = ("same", |answer| count(answer.same));
const DETAIL_WHOLE: Column = ("detail", |answer| answer.detail.clone());
const FLAGS: Column = ("flags", |answer| answer.flags.join(" "));

/// Columns of predictions, for tables.
const PREDICTED: [Column; 13] = [
    CHANGE, FROM, TO, VERDICT, TIME, COST, BOUND, OCCUPANCY, REGISTERS, SPILLS, CONFLICTS, TIMING,
    DETAIL,
];
/// Columns of measurements, for tables.
const MEASURED: [Column; 15] = [
    CHANGE, FROM, TO, VERDICT, TIME, COST, COST_LOW, COST_HIGH, SAME, OCCUPANCY, REGISTERS, SPILLS,
    SHARED, TIMING, DETAIL,
];
/// For machine-readable formats: the same columns for every device. New columns are appended.
const ALL: [Column; 18] = [
    CHANGE,
    FROM,
    TO,
    VERDICT,
    TIME,
    COST,
    BOUND,
    OCCUPANCY,
    REGISTERS,
    SPILLS,
    CONFLICTS,
    TIMING,
    DETAIL_WHOLE,
    COST_LOW,
    COST_HIGH,
    SAME_PLAIN,
    SHARED,
    FLAGS,
];

/// Formats the rows.
pub(super) fn format_answers(
    format: Format,
    answers: &[Answer],
) -> Result<String, serde_json::Error> {
    let measured = answers.iter().any(|answer| answer.timing == "measured");
    let columns: &[Column] = match (format, measured) {
        (Format::Csv, _) => &ALL,
        (_, true) => &MEASURED,
        (_, false) => &PREDICTED,
    };
    output::values(format, columns, answers)
}

#[cfg(test)]
mod tests;
