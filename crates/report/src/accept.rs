//! Acceptance rules for promoting a new winner.
//!
//! A gain of 10 % on a problem means that the old time over the new is at least 1.10, and that its
//! 95 % interval, if there is one, is above 1. The other rules hold on every problem. An unknown
//! figure (such as `SM busy` without a profile) fails its rule.

use serde::Serialize;
use tuner_core::units::counted;

/// Relative tolerance of a bound: computed figures are not exact.
const TOLERANCE: f64 = 1e-9;

/// Reports whether a value reaches a bound.
fn reaches(value: f64, bound: f64) -> bool {
    value >= bound - TOLERANCE * bound.abs().max(1.0)
}

/// A required gain, as `10%:2` (on at least two problems) or `10%` (on all).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Percentage.
    pub percent: f64,
    /// Number of problems; `None`: all.
    pub problems: Option<u32>,
}

/// One clause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clause {
    /// Faster by at least this percentage.
    Gain(Gain),
    /// The 90th percentile is worse by at most this percentage.
    P90NoWorse(f64),
    /// The median is worse by at most this percentage.
    NoProblemSlower(f64),
    /// No register is spilled.
    NoSpills,
    /// Minimum share of the time in which multiprocessors are busy, per cent.
    SmBusy(f64),
    /// Maximum number of registers per thread.
    Registers(u32),
}

impl std::fmt::Display for Clause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let within = |percent: f64| match percent > 0.0 {
            true => format!(" within {percent} %"),
            false => String::new(),
        };
        match self {
            Self::Gain(Gain { percent, problems }) => {
                write!(f, "≥ {percent} % on ")?;
                match problems {
                    Some(count) => write!(f, "≥ {}", counted(count, "problem")),
                    None => f.write_str("all problems"),
                }
            }
            Self::P90NoWorse(percent) => write!(f, "p90 no worse{}", within(*percent)),
            Self::NoProblemSlower(percent) => write!(f, "no problem slower{}", within(*percent)),
            Self::NoSpills => f.write_str("no spills"),
            Self::SmBusy(percent) => write!(f, "SM busy ≥ {percent} %"),
            Self::Registers(count) => write!(f, "registers ≤ {count}"),
        }
    }
}

/// Acceptance rules; all clauses must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules(pub Vec<Clause>);

/// Figures of a challenger against the incumbent on one problem.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Old median over new: 1.1 is 10 % faster.
    pub gain: f64,
    /// Lower end of its 95 % interval; equal to `gain` without one.
    pub gain_low: f64,
    /// New 90th percentile over the old.
    pub p90_ratio: Option<f64>,
    /// Spilled bytes of the challenger.
    pub spill_bytes: Option<u64>,
    /// Registers per thread of the challenger.
    pub registers: Option<u32>,
    /// Share of the time in which multiprocessors are busy, per cent.
    pub sm_busy: Option<f64>,
}

/// Result of a clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The clause as text.
    pub clause: String,
    /// The clause holds.
    pub holds: bool,
    /// The figures that decide it.
    pub because: String,
}

impl Rules {
    /// Judges a challenger by its figures on every named problem. A promotion requires all findings
    /// to hold.
    #[must_use]
    pub fn judge(&self, problems: &[(String, Figures)]) -> Vec<Finding> {
        self.0
            .iter()
            .map(|clause| judge(*clause, problems))
            .collect()
    }
}

impl std::fmt::Display for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, clause) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            clause.fmt(f)?;
        }
        Ok(())
    }
}

fn judge(clause: Clause, problems: &[(String, Figures)]) -> Finding {
    let no_more = |ratio: f64, within: f64| {
        let holds = reaches(1.0 + within / 100.0, ratio);
        Some((holds, format!("{ratio:.3}x")))
    };
    let (holds, because) = match clause {
        Clause::Gain(wanted) => gain(wanted, problems),
        Clause::P90NoWorse(within) => every(problems, "p90", |figures| {
            no_more(figures.p90_ratio?, within)
        }),
        Clause::NoProblemSlower(within) => every(problems, "median", |figures| {
            no_more(1.0 / figures.gain, within)
        }),
        Clause::NoSpills => every(problems, "spills", |figures| {
            let bytes = figures.spill_bytes?;
            Some((bytes == 0, format!("{bytes} bytes")))
        }),
        Clause::SmBusy(percent) => every(problems, "SM busy", |figures| {
            let busy = figures.sm_busy?;
            Some((reaches(busy, percent), format!("{busy:.1} %")))
        }),
        Clause::Registers(most) => every(problems, "registers", |figures| {
            let registers = figures.registers?;
            Some((registers <= most, registers.to_string()))
        }),
    };
    Finding {
        clause: clause.to_string(),
        holds,
        because,
    }
}

fn gain(wanted: Gain, problems: &[(String, Figures)]) -> (bool, String) {
    let percent = wanted.percent;
    let reached: Vec<String> = problems
        .iter()
        // A permitted slowdown needs no demonstrated gain.
        .filter(|(_, figures)| percent <= 0.0 || figures.gain_low > 1.0)
        .filter(|(_, figures)| reaches((figures.gain - 1.0) * 100.0, percent))
        .map(|(name, figures)| format!("{name} {:+.1} %", (figures.gain - 1.0) * 100.0))
        .collect();
    let wanted = match wanted.problems {
        Some(count) => count as usize,
        // Results without a problem must not promote.
        None => problems.len().max(1),
    };
    let names = if reached.is_empty() {
        String::new()
    } else {
        format!(": {}", reached.join(", "))
    };
    (
        reached.len() >= wanted,
        format!("{} of {} problems{names}", reached.len(), problems.len()),
    )
}

/// Reports that a clause holds on every problem with a known figure, or the first problem on which it does
/// not.
fn every(
    problems: &[(String, Figures)],
    what: &str,
    judge: impl Fn(&Figures) -> Option<(bool, String)>,
) -> (bool, String) {
    for (name, figures) in problems {
        match judge(figures) {
            None => {
                let hint = if what == "SM busy" {
                    "; `tuner profile` tells"
                } else {
                    ""
                };
                return (false, format!("{what} of {name} is not known{hint}"));
            }
            Some((false, figure)) => return (false, format!("{what} of {name}: {figure}")),
            Some((true, _)) => {}
        }
    }
    (
        // A clause that was never compared must not promote.
        !problems.is_empty(),
        format!("on {} problems", problems.len()),
    )
}

#[cfg(test)]
mod tests;
