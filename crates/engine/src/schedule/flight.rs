//! A candidate in flight and its result.

use crate::evaluator::Judged;
use crate::lanes::{Job, Ticket};
use crate::record::needed_no_compile;
use tuner_core::evidence::Measured;
use tuner_core::record::{TrialRecord, Verdict};
use tuner_core::units::ContentHash;
use tuner_search::CompileStats;
use tuner_space::Config;
use tuner_store::KnownTrial;

/// A candidate between proposal and report.
pub(in super::super) struct Flight<W> {
    pub(in super::super) ticket: Ticket,
    pub(in super::super) task: usize,
    pub(in super::super) proposal: u64,
    pub(in super::super) config: Config,
    pub(in super::super) origin: &'static str,
    pub(in super::super) state: State<W>,
    /// Facts from the compiler and the prior, once it is prepared.
    pub(super) facts: Option<CompileStats>,
    /// The number of results after which its turn may come.
    pub(super) earliest_turn: u64,
    /// Time that its steps took so far, seconds; `None` on devices with a virtual clock.
    pub(in super::super) spent: Option<f64>,
    /// The search chose it.
    pub(super) had_turn: bool,
    /// It was parked, and continues.
    pub(super) resumed: bool,
}

impl<W> Flight<W> {
    /// Returns the candidate as a lane job without a limit.
    pub(in super::super) fn job(&self) -> Job {
        Job {
            limit: None,
            ticket: self.ticket,
            task: self.task,
            config: self.config.clone(),
        }
    }
}

/// Progress of a candidate.
pub(in super::super) enum State<W> {
    Preparing,
    Prepared(ContentHash, W),
    OnDevice,
    /// Its judgement was stopped, and begins anew after the other tasks.
    Stopped,
    /// It may win, and its deferred checks are running.
    Proving,
    /// It is about to be the best, and the timed problem is run whole. Holds the earlier judgement.
    ProvingWhole(Box<Judged>),
    Judged(Finished),
}

/// A result that was reported to the search.
pub(in super::super) enum ReportedResult {
    /// To be stored.
    New(Box<TrialRecord<Measured>>),
    /// Already in the database.
    Stored(Box<TrialRecord>),
    /// In the database as a trial of an earlier run.
    Known(Box<KnownTrial>),
}

/// A result, and whether it is already in the database.
pub(in super::super) enum Finished {
    New(Box<Judged>),
    Stored(Box<TrialRecord>),
    Known(Box<KnownTrial>),
}

impl Finished {
    /// Reports whether a launch was refused before a compile.
    pub(super) fn needed_no_compile(&self) -> bool {
        match self {
            Self::New(judged) => {
                judged.verdict() == Verdict::LaunchFailed && judged.compilation.is_none()
            }
            Self::Stored(trial) => needed_no_compile(trial),
            Self::Known(known) => needed_no_compile(known.trial()),
        }
    }
}
