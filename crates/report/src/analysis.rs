//! Analysis of judged candidates: effects of parameters, costs of choices, causes of failure.
//! Pure functions.

use super::model::{Change, Subject, number};
use std::collections::BTreeMap;
use tuner_core::entry::StoredTrial;
use tuner_core::record::{ConfigValues, TrialRecord, Verdict, value_of};
use tuner_core::value::Value;

/// Effect of a parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueEffect {
    pub(super) value: String,
    /// Candidates with it, and those of them that passed.
    pub(super) judged: usize,
    pub(super) passed: usize,
    /// Best time, µs; `None` if none passed.
    pub(super) best_us: Option<f64>,
}

/// Effect of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effect {
    pub(super) parameter: String,
    /// Share of the variance of the logarithm of time between its values (η²), 0 to 1.
    pub(super) share: f64,
    pub(super) values: Vec<ValueEffect>,
}

/// Returns a candidate's median, µs.
pub(super) fn time(trial: &TrialRecord) -> Option<f64> {
    let time = trial.measurement.as_ref()?;
    (trial.judgement.verdict == Verdict::Ok).then(|| time.p50.get())
}

/// Returns the effects of every parameter with a choice, the strongest first.
pub(super) fn effects(subject: &Subject) -> Vec<Effect> {
    let mut effects: Vec<Effect> = subject
        .board
        .definition
        .parameters
        .iter()
        .filter(|parameter| parameter.values.len() > 1)
        .map(|parameter| Effect {
            share: share(&subject.candidates, &parameter.name, |trial| {
                // The logarithm prevents the slowest candidates from dominating the share.
                time(trial).map(f64::ln)
            }),
            values: parameter
                .values
                .iter()
                .map(|wanted| value_effect(&subject.candidates, &parameter.name, wanted))
                .filter(|effect| effect.judged > 0)
                .collect(),
            parameter: parameter.name.clone(),
        })
        .filter(|effect| effect.values.len() > 1)
        .collect();
    effects.sort_by(|a, b| {
        b.share
            .total_cmp(&a.share)
            .then_with(|| a.parameter.cmp(&b.parameter))
    });
    effects
}

fn value_effect(candidates: &[StoredTrial], name: &str, wanted: &Value) -> ValueEffect {
    let of_value: Vec<&TrialRecord> = candidates
        .iter()
        .map(|judged| &judged.trial)
        .filter(|trial| value_of(&trial.config, name) == Some(wanted))
        .collect();
    let times: Vec<f64> = of_value.iter().filter_map(|trial| time(trial)).collect();
    ValueEffect {
        value: wanted.to_string(),
        judged: of_value.len(),
        passed: times.len(),
        best_us: times.into_iter().reduce(f64::min),
    }
}

/// Returns the share of the variance of a figure between the values of a parameter: the correlation
/// ratio η² (Fisher). Zero if nothing varies, or fewer than four candidates have the figure.
pub(super) fn share(
    candidates: &[StoredTrial],
    name: &str,
    figure: impl Fn(&TrialRecord) -> Option<f64>,
) -> f64 {
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for judged in candidates {
        let at = value_of(&judged.trial.config, name);
        if let (Some(at), Some(figure)) = (at, figure(&judged.trial)) {
            groups.entry(at.to_string()).or_default().push(figure);
        }
    }
    let all: Vec<f64> = groups.values().flatten().copied().collect();
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    // With so few, nearly every group is a single candidate, which would explain the whole variance.
    if all.len() < 4 {
        return 0.0;
    }
    let middle = mean(&all);
    let total: f64 = all.iter().map(|figure| (figure - middle).powi(2)).sum();
    let between: f64 = groups
        .values()
        .map(|group| group.len() as f64 * (mean(group) - middle).powi(2))
        .sum();
    // Rounding leaves a little variance in equal figures.
    if total <= 1e-12 * middle.abs().max(1e-12) {
        0.0
    } else {
        (between / total).clamp(0.0, 1.0)
    }
}

/// Returns candidates that differ from the winner in one parameter, in the order of the space;
/// predictions for the report fill the gaps.
#[expect(
    clippy::indexing_slicing,
    reason = "parameters are numbered by their own list"
)]
pub(super) fn ablation(subject: &Subject) -> Vec<Change> {
    let Some(best) = subject.best() else {
        return Vec::new();
    };
    let mut changes: Vec<Change> = subject
        .candidates
        .iter()
        // Other candidates only have times of the search, so the winner's search time is used too.
        .filter_map(|judged| one_change(&best.config, best.search_time_us(), &judged.trial))
        .collect();
    for change in &subject.predicted_changes {
        let known = |other: &Change| other.parameter == change.parameter && other.to == change.to;
        if !changes.iter().any(known) {
            changes.push(change.clone());
        }
    }
    let place = |change: &Change| {
        let parameters = &subject.board.definition.parameters;
        let parameter = parameters.iter().position(|p| p.name == change.parameter);
        let value = parameter.and_then(|at| {
            let values = &parameters[at].values;
            values
                .iter()
                .position(|value| value.to_string() == change.to)
        });
        (parameter, value)
    };
    changes.sort_by_key(place);
    changes
}

fn one_change(best: &ConfigValues, best_us: f64, trial: &TrialRecord) -> Option<Change> {
    let mut differing = best
        .iter()
        .zip(&trial.config)
        .filter(|((name, value), (other_name, other))| name != other_name || value != other);
    let ((name, from), (other_name, to)) = differing.next()?;
    // The pairs end with the shorter configuration, so the lengths are compared as well.
    if differing.next().is_some() || name != other_name || best.len() != trial.config.len() {
        return None;
    }
    let p50_us = time(trial);
    Some(Change {
        parameter: name.clone(),
        from: from.to_string(),
        to: to.to_string(),
        verdict: trial.judgement.verdict,
        p50_us,
        cost: p50_us.map(|us| us / best_us),
        predicted: false,
    })
}

/// A cause of failures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) verdict: Verdict,
    /// Source position such as `kernel.cu:12`, if the checks name one.
    pub(super) place: String,
    pub(super) count: usize,
    /// First sentence of the first failure.
    pub(super) example: String,
    pub(super) config: ConfigValues,
}

/// Groups hazards and other failures by kind and position, the most frequent first.
pub(super) fn failures(subject: &Subject) -> Vec<Failure> {
    let mut found: BTreeMap<(Verdict, String), Failure> = BTreeMap::new();
    for judged in &subject.candidates {
        let trial = &judged.trial;
        if trial.judgement.verdict == Verdict::Ok {
            continue;
        }
        let mut seen: Vec<(Verdict, String, &str)> = Vec::new();
        for hazard in &trial.judgement.hazards {
            let place = match (&hazard.file, hazard.line) {
                (Some(file), Some(line)) => {
                    format!("{}:{line}", file.rsplit('/').next().unwrap_or(file))
                }
                _ => String::new(),
            };
            // A candidate counts once per position, independent of the number of reports.
            if !seen
                .iter()
                .any(|(kind, at, _)| *kind == hazard.kind && *at == place)
            {
                seen.push((hazard.kind, place, &hazard.detail));
            }
        }
        // Failures to compile and wrong results have no hazard.
        if seen.is_empty() {
            seen.push((
                trial.judgement.verdict,
                String::new(),
                &trial.judgement.detail,
            ));
        }
        for (verdict, place, detail) in seen {
            let entry = found
                .entry((verdict, place.clone()))
                .or_insert_with(|| Failure {
                    verdict,
                    place,
                    count: 0,
                    example: first_line(detail),
                    config: trial.config.clone(),
                });
            entry.count += 1;
        }
    }
    let mut failures: Vec<Failure> = found.into_values().collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    failures
}

fn first_line(text: &str) -> String {
    const MOST: usize = 200;
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim();
    if line.chars().count() <= MOST {
        line.to_owned()
    } else {
        let cut: String = line.chars().take(MOST).collect();
        format!("{cut}…")
    }
}

/// Returns a counter of a candidate by name.
pub(super) fn counter(trial: &TrialRecord, key: &str) -> Option<f64> {
    number(trial.counters.as_ref()?.as_object()?, key)
}
