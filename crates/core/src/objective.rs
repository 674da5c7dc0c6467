//! Objectives of a search in addition to the time.

use crate::named::named;
use crate::record::{Compilation, LeaderboardRow, Measurement};
use std::fmt;
use std::str::FromStr;

named! {
    /// A quantity to minimise.
    pub enum Objective {
        /// Median time, µs.
        Time,
        /// 90th percentile of the times, µs.
        P90,
        /// Registers per thread.
        Registers,
        /// Length of the machine code, bytes.
        CodeSize,
        /// Energy of a launch sequence, mJ.
        Energy,
    }
}

impl Objective {
    /// Returns the name with its unit, for axes and headings.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Time => "median time, µs",
            Self::P90 => "90th percentile, µs",
            Self::Registers => "registers a thread",
            Self::CodeSize => "code size, bytes",
            Self::Energy => "energy a launch, mJ",
        }
    }

    /// Reports whether the compiler determines it, so that a recorded file lacks it.
    #[must_use]
    pub fn compiled(self) -> bool {
        matches!(self, Self::Registers | Self::CodeSize)
    }

    /// Returns the value for a judged candidate; `None` if unknown.
    #[must_use]
    pub fn value_for(self, measured: &Measurement, compiled: Option<&Compilation>) -> Option<f64> {
        let known = match self {
            Self::Time => Some(measured.p50.get()),
            Self::P90 => Some(measured.p90.get()),
            Self::Registers => compiled.map(|facts| f64::from(facts.registers)),
            Self::CodeSize => compiled.map(|facts| facts.sass_bytes as f64),
            Self::Energy => {
                let evidence = measured.evidence.as_ref();
                evidence.and_then(|found| Some(found.energy.as_ref()?.launch_mj))
            }
        };
        known.filter(|value| *value > 0.0)
    }

    /// Returns the value for a row of the leaderboard; `None` if unknown.
    #[must_use]
    pub fn of_row(self, row: &LeaderboardRow) -> Option<f64> {
        let known = match self {
            Self::Time => Some(row.time_us_p50),
            Self::P90 => Some(row.time_us_p90),
            Self::Registers => row.registers.map(f64::from),
            Self::CodeSize => row.code_bytes.map(|bytes| bytes as f64),
            Self::Energy => row.energy_mj,
        };
        known.filter(|value| *value > 0.0)
    }
}

/// Two objectives, one of them the time: `time,registers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objectives {
    /// The objective other than the time.
    pub other: Objective,
}

impl Objectives {
    /// Reports whether the other objective is the energy.
    #[must_use]
    pub fn measures_energy(self) -> bool {
        self.other == Objective::Energy
    }

    /// Returns time and the other.
    #[must_use]
    pub fn both(self) -> [Objective; 2] {
        [Objective::Time, self.other]
    }
}

impl fmt::Display for Objectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", Objective::Time, self.other)
    }
}

/// Invalid objectives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no two objectives; type time and one of p90, registers, code_size and energy, such \
     as time,registers"
)]
pub struct ObjectivesError(String);

impl FromStr for Objectives {
    type Err = ObjectivesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = text.split(',').map(|name| name.trim().parse());
        let found: Result<Vec<Objective>, _> = found.collect();
        match found.as_deref() {
            Ok([Objective::Time, other] | [other, Objective::Time])
                if *other != Objective::Time =>
            {
                Ok(Self { other: *other })
            }
            _ => Err(ObjectivesError(text.to_owned())),
        }
    }
}

/// Returns the indices of the non-dominated points: no other is at most as large in both and
/// smaller in one. The first of equal ones. Ordered by the first number.
#[must_use]
pub fn front(points: &[[f64; 2]]) -> Vec<usize> {
    let mut order: Vec<(usize, [f64; 2])> = points.iter().copied().enumerate().collect();
    order.sort_by(|(at, a), (to, b)| {
        let by_value = a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]));
        by_value.then(at.cmp(to))
    });
    let mut least = f64::INFINITY;
    order.retain(|(_, [_, second])| {
        let better = *second < least;
        least = least.min(*second);
        better
    });
    order.into_iter().map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests;
