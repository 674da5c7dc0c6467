//! Acceptance rules for promoting a new winner, in a small language for CI configuration.
//!
//! ```text
//! rules  = clause { "," clause }
//! clause = gain | "p90 no worse" [ "within" percent ] | "no problem slower" [ "within" percent ]
//!        | "no spills" | "SM busy" cmp percent | "registers" cmp number
//! gain   = cmp percent "on" problems
//! problems = cmp number "problem(s)" | number "problem(s)" | "all problems" | "every problem"
//!          | "a" ordinal [ "problem" ] | "another" [ "problem" ]
//! cmp    = "≥" | ">=" | ">" | "≤" | "<=" | "<"          (a gain takes ≥ and > only)
//! percent = number "%"         ordinal = "second" | "third" | "fourth" | "fifth" | 2nd | 3rd | …
//! ```
//!
//! A gain of 10 % on a problem means that the old time over the new is at least 1.10, and that its
//! 95 % interval, if there is one, is above 1. `a third` counts the problems of the clauses
//! before: `≥ 10 % on ≥ 2 problems, ≥ 5 % on a third` requires three problems with at least 5 %, of
//! which two have at least 10 %. The other clauses hold on every problem. An unknown figure
//! (such as `SM busy` without a profile) fails its clause. Letter case and spaces are ignored; `;`
//! and line ends separate clauses too.

mod parse;

use serde::Serialize;
use tuner_core::units::counted;
use tuner_space::Diagnostics;

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cmp {
    /// ≥
    AtLeast,
    /// >
    MoreThan,
    /// ≤
    AtMost,
    /// <
    LessThan,
}

impl Cmp {
    /// Reports whether `value cmp bound` holds, with a small tolerance below the bound: computed
    /// figures are not exact.
    #[must_use]
    pub fn holds(self, value: f64, bound: f64) -> bool {
        let hair = 1e-9 * bound.abs().max(1.0);
        match self {
            Self::AtLeast => value >= bound - hair,
            Self::MoreThan => value > bound,
            Self::AtMost => value <= bound + hair,
            Self::LessThan => value < bound,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => "≥",
            Self::MoreThan => ">",
            Self::AtMost => "≤",
            Self::LessThan => "<",
        }
    }
}

/// Number of problems with a required gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// At least this many.
    AtLeast(u32),
    /// All.
    All,
}

/// One clause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clause {
    /// Faster by this percentage.
    Gain {
        /// `≥` or `>`.
        cmp: Cmp,
        /// Percentage.
        percent: f64,
        /// Number of problems.
        on: Count,
    },
    /// The 90th percentile is worse by at most this percentage.
    P90NoWorse(f64),
    /// The median is worse by at most this percentage.
    NoProblemSlower(f64),
    /// No register is spilled.
    NoSpills,
    /// Share of the time in which multiprocessors are busy, per cent.
    SmBusy(Cmp, f64),
    /// Registers per thread.
    Registers(Cmp, f64),
}

impl std::fmt::Display for Clause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let within = |percent: f64| match percent > 0.0 {
            true => format!(" within {percent} %"),
            false => String::new(),
        };
        match self {
            Self::Gain { cmp, percent, on } => {
                write!(f, "{} {percent} % on ", cmp.sign())?;
                match on {
                    Count::AtLeast(count) => write!(f, "≥ {}", counted(count, "problem")),
                    Count::All => f.write_str("all problems"),
                }
            }
            Self::P90NoWorse(percent) => write!(f, "p90 no worse{}", within(*percent)),
            Self::NoProblemSlower(percent) => write!(f, "no problem slower{}", within(*percent)),
            Self::NoSpills => f.write_str("no spills"),
            Self::SmBusy(cmp, percent) => write!(f, "SM busy {} {percent} %", cmp.sign()),
            Self::Registers(cmp, count) => write!(f, "registers {} {count}", cmp.sign()),
        }
    }
}

/// Acceptance rules; all clauses must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules(Vec<Clause>);

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
    /// Per cent of the time in which multiprocessors are busy.
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
    /// Parses rules; `source` names them in messages.
    ///
    /// # Errors
    /// The syntax error, with a caret below it and the expected words.
    pub fn parse(text: &str, source: &str) -> Result<Self, Diagnostics> {
        parse::rules(text, source).map(Self)
    }

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
        let holds = Cmp::AtMost.holds(ratio, 1.0 + within / 100.0);
        Some((holds, format!("{ratio:.3}x")))
    };
    let (holds, because) = match clause {
        Clause::Gain { cmp, percent, on } => gain(cmp, percent, on, problems),
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
        Clause::SmBusy(cmp, percent) => every(problems, "SM busy", |figures| {
            let busy = figures.sm_busy?;
            Some((cmp.holds(busy, percent), format!("{busy:.1} %")))
        }),
        Clause::Registers(cmp, count) => every(problems, "registers", |figures| {
            let registers = f64::from(figures.registers?);
            Some((cmp.holds(registers, count), format!("{registers}")))
        }),
    };
    Finding {
        clause: clause.to_string(),
        holds,
        because,
    }
}

fn gain(cmp: Cmp, percent: f64, on: Count, problems: &[(String, Figures)]) -> (bool, String) {
    let reached: Vec<String> = problems
        .iter()
        // A permitted slowdown needs no demonstrated gain.
        .filter(|(_, figures)| percent <= 0.0 || figures.gain_low > 1.0)
        .filter(|(_, figures)| cmp.holds((figures.gain - 1.0) * 100.0, percent))
        .map(|(name, figures)| format!("{name} {:+.1} %", (figures.gain - 1.0) * 100.0))
        .collect();
    let wanted = match on {
        Count::AtLeast(count) => count as usize,
        Count::All => problems.len().max(1),
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

/// Reports that a clause holds on every problem with a known figure, or the first problem where it
/// does not.
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
        !problems.is_empty(),
        format!("on {} problems", problems.len()),
    )
}

#[cfg(test)]
mod tests;
