//! What the engine needs of a device.

use serde::{Deserialize, Serialize};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compilation, ConfigValues, DeviceKind, Measurement, Verdict};
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
