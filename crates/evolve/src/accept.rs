//! Decision about a change that passed the gate, by the user's rule.
//!
//! A change is compared with the nearest ancestor that was accepted or predicted better, else with the
//! shipped template. A predicted time alone never leads to acceptance: the gain must exceed the model's
//! resolution, and the change is `predicted better` until it is measured. A time that the model marks as
//! unreliable is not resolved at all.

use crate::outcome::Outcome;
use tuner_core::statistics::{PREDICTION_RESOLUTION, ratio_of_medians};
use tuner_report::accept::{Clause, Figures, Finding, Gain, Rules};

/// Returns the rules without options: 3 % on two problems.
#[must_use]
pub fn default_rules() -> Rules {
    let gain = Gain {
        percent: 3.0,
        problems: Some(2),
    };
    Rules(vec![Clause::Gain(gain)])
}

/// Median with its 95 % interval, microseconds; a predicted time has no interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time {
    /// Median.
    pub us: f64,
    /// Interval of a measured median.
    pub ci95_us: Option<[f64; 2]>,
    /// Spilled bytes a thread.
    pub spill_bytes: Option<u64>,
    /// Registers a thread.
    pub registers: Option<u32>,
}

/// Times of a problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Name of the problem.
    pub problem: String,
    /// Best time of the incumbent.
    pub incumbent: Time,
    /// Best time of the change.
    pub change: Time,
    /// Reasons why one of two predicted times is not reliable; empty if both are, or are measured.
    pub doubts: Vec<String>,
}

/// Decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Outcome, from [`Outcome::NotBetter`] on.
    pub outcome: Outcome,
    /// Result of each clause of the rule.
    pub findings: Vec<Finding>,
    /// Reasons why predicted times are not reliable, with their problems.
    pub doubts: Vec<String>,
}

impl Decision {
    /// Returns doubts and findings in one line.
    #[must_use]
    pub fn detail(&self) -> String {
        let one = |finding: &Finding| format!("{} ({})", finding.clause, finding.because);
        let doubts = self
            .doubts
            .iter()
            .map(|doubt| format!("prediction not reliable: {doubt}"));
        let all: Vec<String> = doubts.chain(self.findings.iter().map(one)).collect();
        all.join("; ")
    }
}

/// Decides about a change by its times on all problems.
#[must_use]
pub fn decide(rules: &Rules, predicted: bool, all: &[Comparison]) -> Decision {
    let figures = |resolved: bool| -> Vec<(String, Figures)> {
        let figures = all.iter().map(|one| {
            let figures = compare(one, predicted, resolved);
            (one.problem.clone(), figures)
        });
        figures.collect()
    };
    let findings = rules.judge(&figures(false));
    let holds = |findings: &[Finding]| findings.iter().all(|finding| finding.holds);
    let better = holds(&findings);
    if !predicted {
        let outcome = if better {
            Outcome::Accepted
        } else {
            Outcome::NotBetter
        };
        return Decision {
            outcome,
            findings,
            doubts: Vec::new(),
        };
    }
    let doubts = all.iter().flat_map(|one| {
        let problem = &one.problem;
        one.doubts
            .iter()
            .map(move |doubt| format!("{problem}: {doubt}"))
    });
    let doubts: Vec<String> = doubts.collect();
    // One doubtful problem suffices: the same code produces the times of the others.
    let resolved = doubts.is_empty() && holds(&rules.judge(&figures(true)));
    let outcome = match (better, resolved) {
        (false, _) => Outcome::NotBetter,
        (true, false) => Outcome::WithinResolution,
        (true, true) => Outcome::PredictedBetter,
    };
    Decision {
        outcome,
        findings,
        doubts,
    }
}

/// Compares two times. With `resolved`, a predicted gain counts from the model's resolution on.
fn compare(one: &Comparison, predicted: bool, resolved: bool) -> Figures {
    let gain = one.incumbent.us / one.change.us;
    let interval = |time: &Time| {
        let [low, high] = time.ci95_us.unwrap_or([time.us; 2]);
        (time.us, low, high)
    };
    let gain_low = match (predicted, resolved) {
        (true, true) => gain / PREDICTION_RESOLUTION,
        (true, false) => gain,
        (false, _) => ratio_of_medians(interval(&one.incumbent), interval(&one.change))[1],
    };
    Figures {
        gain,
        gain_low,
        p90_ratio: None,
        spill_bytes: one.change.spill_bytes,
        registers: one.change.registers,
        sm_busy: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(us: f64, ci95_us: Option<[f64; 2]>) -> Time {
        Time {
            us,
            ci95_us,
            spill_bytes: Some(0),
            registers: Some(32),
        }
    }

    fn outcome(predicted: bool, pairs: &[[f64; 2]], half_width: f64) -> Outcome {
        let interval =
            |us: f64| (!predicted).then_some([us * (1.0 - half_width), us * (1.0 + half_width)]);
        let all = pairs
            .iter()
            .enumerate()
            .map(|(index, [incumbent, change])| Comparison {
                problem: format!("p{index}"),
                incumbent: time(*incumbent, interval(*incumbent)),
                change: time(*change, interval(*change)),
                doubts: Vec::new(),
            });
        let all: Vec<Comparison> = all.collect();
        decide(&default_rules(), predicted, &all).outcome
    }

    #[test]
    fn a_doubtful_prediction_is_never_predicted_better() {
        let one = |problem: &str, doubts: &[&str]| Comparison {
            problem: problem.to_owned(),
            incumbent: time(300.0, None),
            change: time(100.0, None),
            doubts: doubts.iter().map(ToString::to_string).collect(),
        };
        let all = [one("p1", &[]), one("p2", &[]), one("p3", &["a branch"])];
        let decision = decide(&default_rules(), true, &all);
        assert_eq!(decision.outcome, Outcome::WithinResolution);
        let detail = decision.detail();
        assert!(
            detail.starts_with("prediction not reliable: p3: a branch; "),
            "{detail}"
        );
    }

    #[test]
    fn a_predicted_gain_is_never_accepted() {
        assert_eq!(
            outcome(true, &[[200.0, 100.0], [200.0, 100.0]], 0.0),
            Outcome::PredictedBetter
        );
    }

    #[test]
    fn a_predicted_gain_must_exceed_the_resolution_on_as_many_problems() {
        assert_eq!(
            outcome(true, &[[110.0, 100.0], [200.0, 100.0]], 0.0),
            Outcome::WithinResolution
        );
        assert_eq!(
            outcome(true, &[[113.9, 100.0], [113.9, 100.0]], 0.0),
            Outcome::WithinResolution
        );
        assert_eq!(
            outcome(true, &[[114.1, 100.0], [114.1, 100.0]], 0.0),
            Outcome::PredictedBetter
        );
        assert_eq!(
            outcome(true, &[[102.0, 100.0], [200.0, 100.0]], 0.0),
            Outcome::NotBetter
        );
    }

    #[test]
    fn a_measured_gain_must_be_significant() {
        assert_eq!(
            outcome(false, &[[110.0, 100.0], [110.0, 100.0]], 0.01),
            Outcome::Accepted
        );
        assert_eq!(
            outcome(false, &[[110.0, 100.0], [110.0, 100.0]], 0.2),
            Outcome::NotBetter
        );
        assert_eq!(
            outcome(false, &[[110.0, 100.0], [100.0, 100.0]], 0.01),
            Outcome::NotBetter
        );
    }
}
