//! Options with the rules for promoting the leaderboard's best.

use super::percent;
use tuner_report::accept::{Clause, Gain, Rules};

/// Rules for promoting the leaderboard's best; none given: it is not judged.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PromotionArgs {
    /// Promote if it is faster by this percentage on this number of problems [default: all]; may be
    /// repeated
    #[arg(long, value_name = "PERCENT[:PROBLEMS]", value_parser = gain)]
    min_gain: Vec<Gain>,

    /// Promote if no 90th percentile is worse, or worse by at most this percentage
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "0%", value_parser = percent)]
    p90_no_worse: Option<f64>,

    /// Promote if no problem is slower, or slower by at most this percentage
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "0%", value_parser = percent)]
    none_slower: Option<f64>,

    /// Promote if it spills no registers
    #[arg(long)]
    no_spills: bool,

    /// Promote if multiprocessors are busy for at least this share of the time
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_sm_busy: Option<f64>,

    /// Promote if a thread has at most this many registers
    #[arg(long, value_name = "N")]
    max_registers: Option<u32>,
}

impl PromotionArgs {
    /// Returns the rules; `None` without an option.
    pub(in crate::cli) fn rules(&self) -> Option<Rules> {
        let gains = self.min_gain.iter().copied().map(Clause::Gain);
        let clauses: Vec<Clause> = gains
            .chain(self.p90_no_worse.map(Clause::P90NoWorse))
            .chain(self.none_slower.map(Clause::NoProblemSlower))
            .chain(self.no_spills.then_some(Clause::NoSpills))
            .chain(self.min_sm_busy.map(Clause::SmBusy))
            .chain(self.max_registers.map(Clause::Registers))
            .collect();
        (!clauses.is_empty()).then_some(Rules(clauses))
    }
}

/// Parses a required gain, such as `10%` or `10%:2`.
fn gain(text: &str) -> Result<Gain, String> {
    let (share, problems) = match text.split_once(':') {
        None => (text, None),
        Some((share, count)) => {
            let count = count.trim().parse().ok().filter(|count| *count > 0);
            let wrong = || format!("`{text}` names no number of problems; type 10%:2");
            (share, Some(count.ok_or_else(wrong)?))
        }
    };
    Ok(Gain {
        percent: percent(share)?,
        problems,
    })
}
