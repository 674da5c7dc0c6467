//! Driver of the plans: takes a step from the plan, executes it on the stopwatch, and returns the result to
//! the plan.

use super::calibration::{Calibration, NeededWork};
use super::finale::FinalComparison;
use super::paired::{Decision, PairedComparison, PairedResult};
use super::plan::{Plan, Runner, Settings, Step};
use super::race::{Race, WarmUp};
use super::reference::Reference;
use crate::stopwatch::{Sample, Stopwatch, Subject};
use std::collections::VecDeque;
use tuner_core::cache_mode::CacheMode;
use tuner_core::evidence::{Measured, Proof};
use tuner_core::judgement::Judgement;
use tuner_core::record::{OtherMode, Verdict};
use tuner_core::statistics;
use tuner_core::units::ContentHash;

/// Runs a plan to its end.
///
/// # Errors
/// A launch failed, or the clock returned an invalid time (`implausible`).
pub fn run(
    plan: &mut dyn Plan,
    watch: &mut dyn Stopwatch,
    cache: CacheMode,
) -> Result<(), Judgement> {
    loop {
        match plan.next() {
            Step::Done => return Ok(()),
            Step::Pause(how_long) => {
                watch.pause(how_long);
                plan.tell(None);
            }
            Step::Sample { subject, launches } => {
                let sample = watch.sample(subject, cache, launches)?;
                plan.tell(Some(sound(sample)?));
            }
        }
    }
}

/// Rejects a time that is zero, negative or NaN: the launch did not happen or the clock is broken.
fn sound(sample: Sample) -> Result<Sample, Judgement> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if positive(sample.micros) {
        return Ok(Sample {
            // Invalid cycles only lose the check of the clock; the time is still valid.
            cycles: sample.cycles.filter(|cycles| positive(*cycles)),
            ..sample
        });
    }
    Err(Judgement::new(
        Verdict::Implausible,
        format!("the device gave a time of {} µs", sample.micros),
    ))
}

/// The best candidate of the session so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Incumbent {
    /// The candidate with its launches per sample.
    pub runner: Runner,
    /// Warm time over that of the reference.
    pub ratio: f64,
}

/// Times the candidates of one kernel and problem on one device in sequence.
#[derive(Debug, Clone)]
pub struct TimingSession {
    settings: Settings,
    calibration: Option<Calibration>,
    /// The reference of the headline mode.
    pub warm: Reference,
    cold: Option<Reference>,
    /// The candidate that challengers must beat; `None` if the device no longer has it. After a
    /// [`TimingResult`] that replaces the incumbent, its [`TimingResult::as_incumbent`].
    pub incumbent: Option<Incumbent>,
    /// Latest samples of the reference between candidates: time and clock.
    latest: VecDeque<Sample>,
}

/// Number of latest reference samples whose median is the current reference time.
const LATEST_SAMPLES: usize = 64;

/// The headline mode, used for ranking.
pub const HEADLINE: CacheMode = CacheMode::Warm;

impl TimingSession {
    /// Warms the device up with the reference, for more than a second.
    ///
    /// # Errors
    /// The reference cannot be launched.
    pub fn begin(
        watch: &mut dyn Stopwatch,
        reference: Subject,
        identity: Option<ContentHash>,
        calibration: Option<Calibration>,
        settings: Settings,
    ) -> Result<Self, Judgement> {
        let warm = warm_up(watch, reference, identity, HEADLINE, settings)?;
        Ok(Self {
            settings,
            calibration,
            warm,
            cold: None,
            incumbent: None,
            latest: VecDeque::new(),
        })
    }

    /// Tracks the device: heat and power limits change its clock permanently, and the reference's
    /// time with it.
    fn follow(&mut self, race: &Race) {
        for block in race.blocks() {
            self.latest.extend(block.outer);
        }
        let surplus = self.latest.len().saturating_sub(LATEST_SAMPLES);
        self.latest.drain(..surplus);
        let of = |field: fn(&Sample) -> Option<f64>| -> Vec<f64> {
            self.latest.iter().filter_map(field).collect()
        };
        let (times, clocks) = (
            of(|sample| Some(sample.micros)),
            of(|sample| sample.clock_mhz),
        );
        // Too few samples would replace the warm-up's median by noise.
        if let (true, Some(now)) = (
            times.len() >= LATEST_SAMPLES / 4,
            statistics::median(&times),
        ) {
            self.warm.session_us = now;
            self.warm.clock_mhz = statistics::median(&clocks).or(self.warm.clock_mhz);
        }
    }

    /// Returns the cold reference, warmed up on first use.
    fn cold(&mut self, watch: &mut dyn Stopwatch) -> Result<Reference, Judgement> {
        if let Some(cold) = &self.cold {
            return Ok(cold.clone());
        }
        let brief = Settings {
            // The warm session and a race have already settled heat and clocks.
            warm_up_us: self.settings.warm_up_us / 5.0,
            ..self.settings
        };
        let identity = self.warm.identity.clone();
        let subject = self.warm.runner.subject;
        let cold = warm_up(watch, subject, identity, CacheMode::Cold, brief)?;
        self.cold = Some(cold.clone());
        Ok(cold)
    }
}

fn warm_up(
    watch: &mut dyn Stopwatch,
    subject: Subject,
    identity: Option<ContentHash>,
    cache: CacheMode,
    settings: Settings,
) -> Result<Reference, Judgement> {
    let mut plan = WarmUp::new(settings, subject);
    run(&mut plan, watch, cache)?;
    plan.reference(identity)
        .ok_or_else(|| Judgement::new(Verdict::Crashed, "the reference gave no time"))
}

/// A candidate's time and its consequences for the search.
#[derive(Debug, Clone, PartialEq)]
pub struct TimingResult {
    /// The time.
    pub measured: Measured,
    /// The candidate with its launches per sample.
    pub runner: Runner,
    /// Time over that of the reference.
    pub ratio: f64,
    /// The paired comparison with the incumbent, if one was made.
    pub duel: Option<PairedResult>,
    /// It is the incumbent from now on: the first one, or the winner of a paired comparison.
    pub replaces_incumbent: bool,
}

impl TimingResult {
    /// Converts it to the incumbent of later candidates.
    #[must_use]
    pub fn as_incumbent(&self) -> Incumbent {
        Incumbent {
            runner: self.runner,
            ratio: self.ratio,
        }
    }
}

/// Judges the outputs that the timed launches of a subject left.
pub type Recheck<'a> = dyn FnMut(&mut dyn Stopwatch, Subject) -> Result<(), Judgement> + 'a;

/// A candidate after its race, before any decision.
#[derive(Debug, Clone)]
pub struct RaceResult {
    race: Race,
    ratio: f64,
    incumbent: Option<Incumbent>,
    settings: Settings,
    /// The launches drove buffers that they update in place to non-finite values.
    overflowed: bool,
}

impl RaceResult {
    /// Reports whether it may win: no incumbent, or within the race's factor of it.
    #[must_use]
    pub fn is_contender(&self) -> bool {
        let near = |incumbent: &Incumbent| {
            !self.race.raced() && self.ratio <= self.settings.race_factor * incumbent.ratio
        };
        self.incumbent.as_ref().is_none_or(near)
    }
}

/// Begins to time one candidate: the race with the reference, and re-validation of its outputs.
/// [`settle`] continues.
///
/// # Errors
/// The device failed, or its outputs are wrong after all.
pub fn race_candidate(
    watch: &mut dyn Stopwatch,
    session: &mut TimingSession,
    candidate: Subject,
    recheck: &mut Recheck<'_>,
) -> Result<RaceResult, Judgement> {
    // The outputs of the gate's runs are correct and would hide launches that write nothing.
    watch.poison(candidate)?;
    let incumbent = session.incumbent.clone();
    let mut race = Race::new(
        session.settings,
        candidate,
        session.warm.clone(),
        incumbent.as_ref().map(|incumbent| incumbent.ratio),
    );
    run(&mut race, watch, HEADLINE)?;
    // Before the outputs are judged: the reference's samples hold even if the candidate is wrong.
    session.follow(&race);
    // Before `recheck`, which repeats the launches from the initial state of buffers updated in
    // place.
    let overflowed = watch.overflowed(candidate)?;
    // The outputs of the timed launches must be correct before anything depends on their time.
    recheck(watch, candidate)?;
    recheck_next_launch(watch, candidate, recheck)?;
    let Some(ratio) = statistics::median(&race.ratios()) else {
        return Err(Judgement::new(
            Verdict::Crashed,
            "the race ended without a block of samples",
        ));
    };
    Ok(RaceResult {
        race,
        ratio,
        incumbent,
        settings: session.settings,
        overflowed,
    })
}

/// Judges one more launch after the timed ones: a kernel that counts its launches may have stopped
/// working.
fn recheck_next_launch(
    watch: &mut dyn Stopwatch,
    candidate: Subject,
    recheck: &mut Recheck<'_>,
) -> Result<(), Judgement> {
    // Outputs of the samples would hide a launch that writes nothing.
    watch.poison(candidate)?;
    watch.sample(candidate, HEADLINE, 1)?;
    recheck(watch, candidate)
}

/// Completes [`race_candidate`]: lower bounds, the paired comparison with the incumbent if the candidate
/// may win, the cold mode if it won, and re-validation of those outputs. `proof` is the gate's current
/// result.
///
/// # Errors
/// The device failed, the outputs are wrong after all, or the time is `implausible`.
pub fn settle(
    proof: &dyn Proof,
    watch: &mut dyn Stopwatch,
    session: &mut TimingSession,
    raced: RaceResult,
    work: &NeededWork,
    recheck: &mut Recheck<'_>,
) -> Result<TimingResult, Judgement> {
    let contender = raced.is_contender();
    let RaceResult {
        race,
        ratio,
        incumbent,
        overflowed,
        ..
    } = raced;
    let candidate = race.runner().subject;
    let Some(mut measured) = race.measured(proof, HEADLINE) else {
        return Err(Judgement::new(Verdict::Crashed, "the race gave no time"));
    };
    if overflowed {
        measured.flag("inout_overflowed");
    }
    // Before the paired comparison: an impossible time must not become the incumbent.
    if let Some(detail) = below_floor(session, &measured, work, HEADLINE) {
        return Err(refused(detail));
    }
    let duel = match &incumbent {
        // The race's ratio and the incumbent's are from different moments: only direct alternation decides.
        Some(incumbent) if contender && may_win(&race, incumbent, session.settings) => {
            let mut duel = PairedComparison::new(session.settings, race.runner(), incumbent.runner);
            run(&mut duel, watch, HEADLINE)?;
            duel.result()
        }
        _ => None,
    };
    if duel.as_ref().is_some_and(|duel| duel.cycles_disagree) {
        measured.flag("cycles_disagree");
    }
    let won = |duel: &PairedResult| duel.decision == Decision::Faster;
    let replaces = incumbent.is_none() || duel.as_ref().is_some_and(won);
    // Cold times are recorded for new incumbents only, since they never rank.
    if replaces && let Some(other) = cold_mode(watch, session, candidate, work, recheck)? {
        measured = measured.with_other_mode(other);
    }
    Ok(TimingResult {
        measured,
        runner: race.runner(),
        ratio,
        duel,
        replaces_incumbent: replaces,
    })
}

fn refused(detail: impl Into<String>) -> Judgement {
    Judgement::new(Verdict::Implausible, detail)
}

fn below_floor(
    session: &TimingSession,
    measured: &Measured,
    work: &NeededWork,
    cache: CacheMode,
) -> Option<String> {
    let calibration = session.calibration.as_ref()?;
    calibration.implausible(measured.p50().get(), work, cache)
}

/// Reports whether the candidate may still be faster than the incumbent by the margin after the
/// race.
fn may_win(race: &Race, incumbent: &Incumbent, settings: Settings) -> bool {
    let low = statistics::interval_of_median(&race.ratios()).map(|[low, _]| low);
    low.is_some_and(|low| low < settings.win * incumbent.ratio)
}

/// Times a new incumbent with cold caches, for the record.
fn cold_mode(
    watch: &mut dyn Stopwatch,
    session: &mut TimingSession,
    candidate: Subject,
    work: &NeededWork,
    recheck: &mut Recheck<'_>,
) -> Result<Option<OtherMode>, Judgement> {
    let reference = session.cold(watch)?;
    watch.poison(candidate)?;
    // Without an incumbent the race is never cut short: ratios of warm runs do not apply to cold
    // caches.
    let mut race = Race::new(session.settings, candidate, reference, None);
    run(&mut race, watch, CacheMode::Cold)?;
    recheck(watch, candidate)?;
    let Some(other) = race.other_mode(CacheMode::Cold) else {
        return Ok(None);
    };
    let floor = session
        .calibration
        .and_then(|calibration| calibration.implausible(other.p50.get(), work, CacheMode::Cold));
    match floor {
        Some(detail) => Err(refused(detail)),
        None => Ok(Some(other)),
    }
}

/// Compares the best few: each is warmed up, and all are timed in shuffled rounds.
///
/// # Errors
/// The device failed.
pub fn finale(
    watch: &mut dyn Stopwatch,
    session: &TimingSession,
    finalists: &[Subject],
    seed: u64,
) -> Result<FinalComparison, Judgement> {
    let brief = Settings {
        warm_up_us: 4.0 * session.settings.candidate_warm_us,
        ..session.settings
    };
    let runners: Result<Vec<Runner>, Judgement> = finalists
        .iter()
        .map(|subject| {
            watch.poison(*subject)?;
            let warmed = warm_up(watch, *subject, None, HEADLINE, brief)?;
            // Only the launches per sample are used: times are compared within rounds.
            Ok(warmed.runner)
        })
        .collect();
    let mut finale = FinalComparison::new(session.settings, runners?, session.warm.clone(), seed);
    run(&mut finale, watch, HEADLINE)?;
    Ok(finale)
}

/// Compares two subjects, each warmed up first: the challenger over the incumbent. Used by null
/// tests, ablations and regression gates.
///
/// # Errors
/// The device failed.
pub fn duel(
    watch: &mut dyn Stopwatch,
    challenger: Subject,
    incumbent: Subject,
    cache: CacheMode,
    settings: Settings,
) -> Result<Option<PairedResult>, Judgement> {
    let brief = Settings {
        warm_up_us: 4.0 * settings.candidate_warm_us,
        ..settings
    };
    let runner = |watch: &mut dyn Stopwatch, subject| {
        warm_up(watch, subject, None, cache, brief).map(|reference| reference.runner)
    };
    let (challenger, incumbent) = (runner(watch, challenger)?, runner(watch, incumbent)?);
    let mut duel = PairedComparison::new(settings, challenger, incumbent);
    run(&mut duel, watch, cache)?;
    Ok(duel.result())
}
