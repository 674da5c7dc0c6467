//! Device interface of the engine.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::{
    Compared, Compilation, ConfigValues, DeviceKind, Measurement, ProofEffect, Verdict,
};
use tuner_core::units::{ContentHash, Micros};
use tuner_device::DeviceFacts;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_search::CompileStats;
use tuner_space::Config;

/// Any error of a device; the run ends with it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A device with all steps from a configuration to a judged candidate.
///
/// A candidate that fails is a [`Judged`] with its verdict. An `Err` means that the tuner itself
/// cannot continue (device lost, compiler missing) and ends the run.
pub trait Evaluator: Send + Sync + 'static {
    /// A candidate ready for the device: machine code, launch plan, inputs.
    type Work: Send + 'static;

    /// Returns the facts of the device.
    fn facts(&self) -> &DeviceFacts;

    /// Returns the order in which results are reported to the search.
    fn order(&self) -> Order {
        match self.facts().kind {
            DeviceKind::Replay | DeviceKind::Vgpu => Order::Fixed,
            DeviceKind::Cuda => Order::Arrival,
        }
    }

    /// Returns the clock of a time budget.
    fn clock(&self) -> Clock {
        Clock::for_device(self.facts().kind)
    }

    /// Reports whether evaluating is nearly free, so that a thread hand-off would cost more.
    fn instant(&self) -> bool {
        false
    }

    /// Reports whether a launch may crash the tuner. If so, a verdict of `timeout` is stored before
    /// the launch and replaced by the result, so that a restart does not pay again.
    fn may_hang(&self) -> bool {
        false
    }

    /// Reports whether a prepared candidate may be judged before its turn in the search, because the order
    /// of launches does not affect results.
    fn judges_early(&self) -> bool {
        false
    }

    /// Returns the number of devices that share the work: the limit of concurrent judgements.
    fn devices(&self) -> usize {
        1
    }

    /// Returns the number of concurrent preparations if `asked` were requested.
    fn jobs(&self, asked: usize) -> usize {
        asked
    }

    /// Reports whether work on a device continues without this process, so that an interrupted run
    /// need not wait for it.
    fn outlives(&self) -> bool {
        false
    }

    /// Updates a result before it is reported to the search and stored. Called in the order of reports,
    /// independent of the order of judging.
    fn told(&self, _judged: &mut Judged) {}

    /// Notifies that the result of a configuration is stored: its transaction is committed.
    fn stored(&self, _task: usize, _config: &ConfigValues) {}

    /// Returns the identity of the candidate of a configuration without compiling it; `None` if
    /// results of earlier runs do not answer for this device.
    fn identity(&self, _task: usize, _config: &Config) -> Option<ContentHash> {
        None
    }

    /// Prepares a candidate of the task for the device. Called from several threads concurrently.
    ///
    /// # Errors
    /// The tuner cannot continue.
    fn prepare(&self, task: usize, config: &Config) -> Result<Preparation<Self::Work>, BoxError>;

    /// Judges a prepared candidate on a device. At most [`Evaluator::devices`] calls run
    /// concurrently.
    ///
    /// # Errors
    /// The tuner cannot continue.
    fn evaluate(&self, task: usize, config: &Config, work: Self::Work) -> Result<Judged, BoxError>;

    /// Judges a prepared candidate like [`Evaluator::evaluate`]; `None` if it was stopped because it
    /// took longer than `limit`. A device whose work cannot be stopped ignores the limit.
    ///
    /// # Errors
    /// The tuner cannot continue.
    fn evaluate_within(
        &self,
        task: usize,
        config: &Config,
        work: Self::Work,
        _limit: Option<Duration>,
    ) -> Result<Option<Judged>, BoxError> {
        self.evaluate(task, config, work).map(Some)
    }

    /// Runs the deferred checks like [`Evaluator::prove`], within the limit of
    /// [`Evaluator::evaluate_within`].
    ///
    /// # Errors
    /// The tuner cannot continue.
    fn prove_within(
        &self,
        task: usize,
        config: &Config,
        judged: Judged,
        _limit: Option<Duration>,
    ) -> Result<Option<Judged>, BoxError> {
        self.prove(task, config, judged).map(Some)
    }

    /// Runs the deferred checks of a candidate that may win ([`Judged::put_off`]). Called
    /// concurrently with [`Evaluator::evaluate`], for one candidate at a time.
    ///
    /// # Errors
    /// The tuner cannot continue.
    fn prove(&self, _task: usize, _config: &Config, judged: Judged) -> Result<Judged, BoxError> {
        Ok(judged.proven(Judgement::ok(None)))
    }

    /// Returns the lane instructions that a proof may take ([`Evaluator::prove_whole`]); `None`:
    /// candidates are not proven.
    fn proof_limit(&self) -> Option<u64> {
        None
    }

    /// Runs the timed problem of a candidate whole, if that takes at most
    /// [`Evaluator::proof_limit`], and compares it. Called like [`Evaluator::prove`], for a
    /// candidate that is about to become the best of its task.
    ///
    /// # Errors
    /// The tuner cannot continue.
    fn prove_whole(
        &self,
        _task: usize,
        _config: &Config,
        judged: Judged,
    ) -> Result<Judged, BoxError> {
        Ok(judged)
    }
}

/// Order in which results are reported to the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Sequential, as the search chooses among [`super::WINDOW`] in flight: the same on every
    /// machine.
    Fixed,
    /// In order of arrival.
    Arrival,
}

/// Clock of a time budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Wall-clock time.
    Wall,
    /// The sum of [`Judged::charged_us`]: recorded compile and benchmark time.
    Charged,
}

impl Clock {
    /// Returns the clock of a kind of device.
    pub(super) fn for_device(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Replay => Self::Charged,
            DeviceKind::Vgpu | DeviceKind::Cuda => Self::Wall,
        }
    }
}

/// Result of preparing a candidate.
#[derive(Debug)]
pub enum Preparation<W> {
    /// It can be launched.
    Ready {
        /// Identity of the candidate.
        candidate: ContentHash,
        /// Facts that the search may use before evaluation.
        facts: Option<CompileStats>,
        /// Input of the device.
        work: W,
    },
    /// It is judged without the device, for example because it does not compile.
    Judged(Box<Judged>),
}

/// A judged candidate, correct or wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Identity of the candidate: hash of rendered source, options, compiler and target; for
    /// recorded data, hash of the file and the configuration.
    pub candidate: ContentHash,
    /// The finding, with the time if the verdict is `ok`.
    #[serde(deserialize_with = "TimedJudgement::received")]
    pub found: TimedJudgement,
    /// Result of the compiler.
    pub compilation: Option<Compilation>,
    /// Cost on the virtual clock, microseconds: compile and benchmark.
    pub charged_us: u64,
    /// Expensive checks are deferred until the candidate may win. A compile for a fleet defers
    /// none.
    #[serde(skip)]
    pub put_off: bool,
    /// The timed problem was run whole, or a whole run was found to be impossible.
    #[serde(skip)]
    pub whole_tried: bool,
}

/// Start of the detail of a candidate that passed without a proof.
pub(super) const NOT_PROVEN: &str = "not proven: ";
/// Reason of a missing proof that a later run may make.
pub(super) const OUT_OF_BUDGET: &str =
    "the run's budget ended before the timed problem was run whole";

/// Factor of the best time within which a candidate may win, predicted or measured.
pub(super) const CONTENDER_FACTOR: f64 = 1.15;

impl Judged {
    /// Builds a candidate that was judged without a device, at no cost.
    #[must_use]
    pub fn without_device(candidate: ContentHash, judgement: Judgement) -> Self {
        Self {
            candidate,
            found: judgement.into(),
            compilation: None,
            charged_us: 0,
            put_off: false,
            whole_tried: false,
        }
    }

    /// Merges the result of the deferred problems. A fault there is the candidate's.
    #[must_use]
    pub fn proven(mut self, found: Judgement) -> Self {
        self.put_off = false;
        match found.verdict {
            // Nothing could be compared on the deferred problems; the timed problem was compared.
            Verdict::Unchecked => {}
            Verdict::Ok => {
                let own = &mut self.found.judgement.max_error;
                *own = match (*own, found.max_error) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    (a, b) => a.or(b),
                };
            }
            _ => self.found = found.into(),
        }
        self
    }

    /// Reports whether it has a time but was not yet run whole on the timed problem.
    pub(super) fn lacks_proof(&self) -> bool {
        let compared = self.found.judgement.compared;
        // Recorded times were never compared, so there is nothing to prove.
        let partly = compared.is_some_and(|compared| compared != Compared::Whole);
        self.time().is_some() && partly && !self.whole_tried
    }

    /// Merges the result of a proof. A candidate found wrong loses its time; a proof that could not
    /// be made leaves the state unchanged and records the reason.
    #[must_use]
    pub(super) fn proven_whole(mut self, proof: Judgement) -> Self {
        self.whole_tried = true;
        let own = &mut self.found.judgement;
        match ProofOutcome::from_judgement(&proof) {
            ProofOutcome::Whole => {
                own.compared = proof.compared;
                own.detail = proof.detail;
                own.max_error = match (own.max_error, proof.max_error) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    (a, b) => a.or(b),
                };
            }
            ProofOutcome::Wrong => self.found = proof.into(),
            ProofOutcome::NotMade(why) => own.add_detail(&why),
        }
        self
    }

    /// Converts to the stored form of a run that ends before the proof.
    pub(super) fn out_of_budget(mut self) -> Self {
        self.found
            .judgement
            .add_detail(&format!("{NOT_PROVEN}{OUT_OF_BUDGET}"));
        self.whole_tried = true;
        self
    }

    /// Converts to the stored form of a candidate that may not win: deferred checks stay undone, as
    /// its time records.
    pub(super) fn unproven(mut self) -> Self {
        if self.put_off {
            let time = self.found.measured.take();
            self.found.measured = time.map(|time| time.put_off(Level::First.name()));
        }
        self
    }

    /// Returns the verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.found.judgement.verdict
    }

    /// Returns its time, whether its results were compared or not.
    #[must_use]
    pub fn predicted(&self) -> Option<Micros> {
        let proven = self.found.measured.as_ref().map(Measured::p50);
        proven.or(self.found.unproven)
    }

    /// Returns its time if the verdict is `ok`.
    #[must_use]
    pub fn time(&self) -> Option<&Measurement> {
        self.found.measured.as_ref().map(Measured::record)
    }
}

/// A proof outside of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Identity of the proven candidate.
    pub candidate: ContentHash,
    /// The finding.
    pub judgement: Judgement,
    /// The outcome.
    pub outcome: ProofOutcome,
}

/// Outcome of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofOutcome {
    /// The timed problem ran whole and is correct.
    Whole,
    /// The candidate is wrong.
    Wrong,
    /// The problem could not be run whole or compared, with the reason.
    NotMade(String),
}

impl ProofOutcome {
    /// Interprets the judgement of a proof. A run that was too long, too large or lost does not
    /// count against the candidate, which had passed.
    #[must_use]
    pub fn from_judgement(proof: &Judgement) -> Self {
        // A launch that hangs is a hazard; without a hazard the host's limits ended the run.
        let decides = match proof.verdict.facts().proof {
            ProofEffect::Decides => true,
            ProofEffect::DecidesWithHazard => !proof.hazards.is_empty(),
            ProofEffect::NotMade => false,
        };
        if decides && !proof.is_ok() {
            return Self::Wrong;
        }
        if decides && proof.compared == Some(Compared::Whole) {
            return Self::Whole;
        }
        let why = match proof.detail.as_str() {
            // A sample that passed needs no detail.
            "" => "a whole run of the timed problem takes more than the budget of a proof",
            detail => detail,
        };
        Self::NotMade(format!("{NOT_PROVEN}{why}"))
    }
}

#[cfg(test)]
mod tests;
