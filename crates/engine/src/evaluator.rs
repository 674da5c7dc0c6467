//! What the engine needs of a device.

use serde::{Deserialize, Serialize};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, Compilation, ConfigValues, DeviceKind, Measurement, Verdict};
use tuner_core::units::{ContentHash, Micros};
use tuner_device::DeviceFacts;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_search::CompileStats;
use tuner_space::Config;

/// Any error of a device; the run ends with it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A device with everything that leads to a judged candidate on it.
///
/// A candidate that fails is a [`Judged`] with its verdict. An `Err` says that the tuner itself
/// cannot go on (device lost, compiler gone) and ends the run.
pub trait Evaluator: Send + Sync + 'static {
    /// A candidate ready for the device: machine code, launch plan, inputs.
    type Work: Send + 'static;

    /// What device it is.
    fn facts(&self) -> &DeviceFacts;

    /// In which order results are told to the search.
    fn order(&self) -> Order {
        match self.facts().kind {
            DeviceKind::Replay | DeviceKind::Vgpu => Order::Fixed,
            DeviceKind::Cuda => Order::Arrival,
        }
    }

    /// What a time budget is counted on.
    fn clock(&self) -> Clock {
        Clock::of(self.facts().kind)
    }

    /// Whether evaluating costs next to nothing, so that handing it to threads would cost more.
    fn instant(&self) -> bool {
        false
    }

    /// Whether a launch may take the tuner down with it. If so, a verdict of `timeout` is stored
    /// before the launch and replaced by the result, so that a restart does not pay again.
    fn may_hang(&self) -> bool {
        false
    }

    /// Whether a prepared candidate may be judged before the search's turn for it comes, as the order of
    /// launches changes nothing.
    fn judges_early(&self) -> bool {
        false
    }

    /// How many devices share the work now: so many candidates are judged at once.
    fn devices(&self) -> usize {
        1
    }

    /// How many candidates are prepared at once, where that many were asked for.
    fn jobs(&self, asked: usize) -> usize {
        asked
    }

    /// Whether what a device has in hand goes on without this process, so that an interrupted run
    /// need not wait for it.
    fn outlives(&self) -> bool {
        false
    }

    /// A result is told to the search and stored next; here in the order in which that happens,
    /// whatever the order in which the candidates were judged.
    fn told(&self, _judged: &mut Judged) {}

    /// The result of a configuration is stored: its transaction is committed.
    fn stored(&self, _task: usize, _config: &ConfigValues) {}

    /// Makes a candidate of the task ready for the device. Called from several threads at once.
    ///
    /// # Errors
    /// The tuner cannot go on.
    fn prepare(&self, task: usize, config: &Config) -> Result<Preparation<Self::Work>, BoxError>;

    /// Judges a prepared candidate on a device. Never called more often at the same time than there
    /// are [`Evaluator::devices`].
    ///
    /// # Errors
    /// The tuner cannot go on.
    fn evaluate(&self, task: usize, config: &Config, work: Self::Work) -> Result<Judged, BoxError>;

    /// Judges what was put off of a candidate that may win ([`Judged::put_off`]). Called beside
    /// [`Evaluator::evaluate`], for one candidate at a time.
    ///
    /// # Errors
    /// The tuner cannot go on.
    fn prove(&self, _task: usize, _config: &Config, judged: Judged) -> Result<Judged, BoxError> {
        Ok(judged.proven(Judgement::ok(None)))
    }

    /// Lane instructions that a proof may take ([`Evaluator::prove_whole`]); `None`: no candidate is
    /// proven.
    fn proof_limit(&self) -> Option<u64> {
        None
    }

    /// Runs the timed problem of a candidate whole, where that takes no more than
    /// [`Evaluator::proof_limit`], and compares it. Called as [`Evaluator::prove`] is, for a candidate
    /// that is about to become the best of its task.
    ///
    /// # Errors
    /// The tuner cannot go on.
    fn prove_whole(
        &self,
        _task: usize,
        _config: &Config,
        judged: Judged,
    ) -> Result<Judged, BoxError> {
        Ok(judged)
    }
}

/// In which order results are told to the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One candidate after another, as the search chooses among [`super::WINDOW`] in flight: the
    /// same on every machine.
    Fixed,
    /// As they come.
    Arrival,
}

/// What a time budget is counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The time that passes here.
    Wall,
    /// The sum of [`Judged::charged_us`]: recorded compile and benchmark time.
    Charged,
}

impl Clock {
    /// That of a kind of device.
    pub(super) fn of(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Replay => Self::Charged,
            DeviceKind::Vgpu | DeviceKind::Cuda => Self::Wall,
        }
    }
}

/// What preparing a candidate came to.
#[derive(Debug)]
pub enum Preparation<W> {
    /// It can be launched.
    Ready {
        /// Identity of the candidate.
        candidate: ContentHash,
        /// What the search may know of it before it is evaluated.
        facts: Option<CompileStats>,
        /// What the device needs.
        work: W,
    },
    /// It is judged without the device, for example because it does not compile.
    Judged(Box<Judged>),
}

/// A judged candidate, right or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Identity of the candidate: hash of rendered source, options, compiler and target; for
    /// recorded data of the file and the configuration.
    pub candidate: ContentHash,
    /// What was found, with the time where the verdict is `ok`.
    #[serde(deserialize_with = "TimedJudgement::received")]
    pub found: TimedJudgement,
    /// What the compiler made.
    pub compilation: Option<Compilation>,
    /// What the candidate costs on the virtual clock, microseconds: compile and benchmark.
    pub charged_us: u64,
    /// Some checks are put off: those that cost much are run once it may win. Whoever compiles for a
    /// fleet puts nothing off.
    #[serde(skip)]
    pub put_off: bool,
    /// The timed problem was run whole, or it was found out that it cannot be.
    #[serde(skip)]
    pub whole_tried: bool,
}

/// Times of the best with which a candidate may win: a predicted or measured time within 15 % of it.
pub(super) const CONTENDER: f64 = 1.15;

impl Judged {
    /// A candidate that was judged without a device, and cost nothing.
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

    /// With what was found on the problems that had been put off. A fault there is the candidate's.
    #[must_use]
    pub fn proven(mut self, found: Judgement) -> Self {
        self.put_off = false;
        match found.verdict {
            // Nothing could be compared on these; the timed problem was.
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

    /// Whether it has a time, and was not yet run whole on the timed problem.
    pub(super) fn lacks_proof(&self) -> bool {
        let compared = self.found.judgement.compared;
        let partly = compared.is_some_and(|compared| compared != Compared::Whole);
        self.time().is_some() && partly && !self.whole_tried
    }

    /// With the result of a proof. What the proof found wrong has no time; one that could not be made
    /// leaves the state as it was, and says why.
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

    /// As it is stored where the run ends before its proof.
    pub(super) fn out_of_budget(mut self) -> Self {
        let why = "not proven: the run's budget ended before the timed problem was run whole";
        self.found.judgement.add_detail(why);
        self.whole_tried = true;
        self
    }

    /// As it is stored where it may not win: what was put off stays so, which its time says.
    pub(super) fn unproven(mut self) -> Self {
        if self.put_off {
            let time = self.found.measured.take();
            self.found.measured = time.map(|time| time.put_off(Level::First.name()));
        }
        self
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.found.judgement.verdict
    }

    /// What it takes, whether its results were compared or not.
    #[must_use]
    pub fn predicted(&self) -> Option<Micros> {
        let proven = self.found.measured.as_ref().map(Measured::p50);
        proven.or(self.found.unproven)
    }

    /// Its time, where the verdict is `ok`.
    #[must_use]
    pub fn time(&self) -> Option<&Measurement> {
        self.found.measured.as_ref().map(Measured::record)
    }
}

/// A proof outside of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Identity of the candidate that was proven.
    pub candidate: ContentHash,
    /// What was found.
    pub judgement: Judgement,
    /// What follows.
    pub outcome: ProofOutcome,
}

/// What a proof came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofOutcome {
    /// The timed problem ran whole and is right.
    Whole,
    /// The candidate is wrong.
    Wrong,
    /// The problem could not be run whole or compared, for this reason.
    NotMade(String),
}

impl ProofOutcome {
    /// What the judgement of a proof says. A run that was too long, too large or lost says nothing of
    /// the candidate, which had passed.
    #[must_use]
    pub fn from_judgement(proof: &Judgement) -> Self {
        let why = match proof.verdict {
            Verdict::Ok => match proof.compared {
                Some(Compared::Whole) => return Self::Whole,
                _ => proof.detail.clone(),
            },
            // A launch that hangs is a hazard; everything else is a limit of this host.
            Verdict::Timeout | Verdict::Crashed if proof.hazards.is_empty() => proof.detail.clone(),
            Verdict::OutOfMemory
            | Verdict::LaunchFailed
            | Verdict::Unsupported
            | Verdict::Unchecked
            | Verdict::NotJudged => proof.detail.clone(),
            _ => return Self::Wrong,
        };
        Self::NotMade(format!("not proven: {why}"))
    }
}

#[cfg(test)]
mod tests;
