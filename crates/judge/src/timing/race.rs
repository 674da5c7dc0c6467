//! Race of one candidate against the fixed reference: warmed up, then timed between samples of the
//! reference. It is dropped early if it is clearly slower than the incumbent, else timed until its ratio to
//! the reference is precise enough.

use super::blocks::{Block, Blocks, ExpectedReference, RetryStats};
use super::plan::{Plan, Runner, Settings, Step};
use super::reference::Reference;
use super::summary::{Conditions, SampleSummary};
use crate::stopwatch::{Sample, Subject};
use tuner_core::cache_mode::CacheMode;
use tuner_core::evidence::{Measured, Proof};
use tuner_core::record::OtherMode;
use tuner_core::statistics::{bimodal, interval_of_median, median, quantile_of};
use tuner_core::units::ContentHash;

/// Name of this protocol, stored with each time.
pub const PROTOCOL: &str = "interleaved with a fixed reference, version 1";

/// Stage of a race.
#[derive(Debug, Clone)]
enum Stage {
    /// The first launch loads code and fills caches; it determines the launches of the warm-up.
    First,
    /// Warm-up; determines the launches per sample.
    Warm(u32),
    /// Interleaved blocks.
    Blocks(Box<Blocks>),
}

/// A race in progress.
#[derive(Debug, Clone)]
pub struct Race {
    settings: Settings,
    candidate: Subject,
    reference: Reference,
    /// The incumbent's ratio to the reference.
    incumbent: Option<f64>,
    stage: Stage,
    launches: u32,
    blocks: Vec<Block>,
    raced: bool,
    done: bool,
}

impl Race {
    /// Starts a race against the incumbent's ratio to the reference, if there is an incumbent.
    #[must_use]
    pub fn new(
        settings: Settings,
        candidate: Subject,
        reference: Reference,
        incumbent: Option<f64>,
    ) -> Self {
        Self {
            settings,
            candidate,
            reference,
            incumbent,
            stage: Stage::First,
            launches: 1,
            blocks: Vec::new(),
            raced: false,
            done: false,
        }
    }

    /// Returns the candidate with its launches per sample.
    #[must_use]
    pub fn runner(&self) -> Runner {
        Runner {
            subject: self.candidate,
            launches: self.launches,
        }
    }

    /// Returns the finished blocks: the reference outside, the candidate inside.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Reports whether it was dropped as clearly slower.
    #[must_use]
    pub fn raced(&self) -> bool {
        self.raced
    }

    /// Returns the ratios to the reference, one for each block.
    #[must_use]
    pub fn ratios(&self) -> Vec<f64> {
        self.blocks.iter().map(Block::ratio).collect()
    }

    /// Returns the samples of the candidate.
    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.blocks.iter().flat_map(|block| &block.inner)
    }

    /// Returns each sample scaled to the reference's session median: its time at the device's usual state.
    fn corrected(&self) -> Vec<f64> {
        let scaled = |block: &Block| {
            // The reference of the same block shares its clock and temperature, which cancel in the
            // factor.
            let factor = self.reference.session_us / block.outer_us();
            let scale = move |sample: &Sample| sample.micros * factor;
            block.inner.iter().map(scale).collect::<Vec<f64>>()
        };
        self.blocks.iter().flat_map(scaled).collect()
    }

    fn trouble(&self) -> RetryStats {
        match &self.stage {
            Stage::Blocks(blocks) => blocks.trouble(),
            _ => RetryStats::default(),
        }
    }

    /// Summarizes the samples.
    fn summarize(&self) -> Option<SampleSummary> {
        let unit = self.reference.session_us;
        let p90 = quantile_of(&self.corrected(), 0.9)?;
        SampleSummary::new(self.ratios(), unit, p90, self.samples().copied().collect())
    }

    /// Returns the time, as ratio to the reference times the reference's session median, with all
    /// evidence. `None` before the first block.
    #[must_use]
    pub fn measured(&self, proof: &dyn Proof, cache: CacheMode) -> Option<Measured> {
        let trouble = self.trouble();
        let flags = [
            (self.two_modes(), "bimodal"),
            (trouble.unsteady, "unsteady"),
            (trouble.slowed, "throttled"),
            (trouble.late, "late"),
            (self.raced, "raced"),
        ];
        let conditions = Conditions {
            protocol: PROTOCOL,
            cache,
            launches: self.launches,
            reference: &self.reference,
        };
        Some(self.summarize()?.measured(proof, conditions, &flags))
    }

    /// Returns the time as that of a mode that does not rank.
    #[must_use]
    pub(crate) fn other_mode(&self, cache: CacheMode) -> Option<OtherMode> {
        let summary = self.summarize()?;
        Some(OtherMode {
            cache,
            p50: summary.p50,
            p90: summary.p90,
            ci95: summary.ci95,
            samples: summary.samples.iter().map(|sample| sample.micros).collect(),
        })
    }

    /// Reports whether the samples are bimodal. Cycles are preferred, since clock drift does not
    /// affect them.
    fn two_modes(&self) -> bool {
        let cycles: Option<Vec<f64>> = self.samples().map(|sample| sample.cycles).collect();
        bimodal(&cycles.unwrap_or_else(|| self.corrected()))
    }

    fn begin(&mut self, micros: f64) {
        self.launches = self.settings.launches(micros);
        // Three samples of the candidate decide whether it continues.
        let expected = ExpectedReference {
            micros: Some(self.reference.session_us),
            clock_mhz: self.reference.clock_mhz,
        };
        let (outer, inner) = (self.reference.runner, self.runner());
        let blocks = Blocks::new(self.settings, outer, inner, 3, expected);
        self.stage = Stage::Blocks(Box::new(blocks));
    }

    fn keep(&mut self, block: Block) {
        if let (true, Some(incumbent)) = (self.blocks.is_empty(), self.incumbent) {
            // The best sample favours the candidate: a race drops only clear losers, never a
            // possible winner.
            let best = block.inner.iter().map(|sample| sample.micros);
            let best = best.fold(f64::INFINITY, f64::min) / block.outer_us();
            self.raced = best > self.settings.race_factor * incumbent;
        }
        self.blocks.push(block);
        let runner = self.runner();
        if let Stage::Blocks(blocks) = &mut self.stage {
            // After the first decision two samples for two of the reference are the cheapest
            // balanced block.
            blocks.reshape(self.reference.runner, runner, 2);
        }
        self.done = self.raced || self.enough();
    }

    /// Returns the GPU time of the counted blocks, microseconds.
    fn spent_us(&self) -> f64 {
        let inner = self.samples().map(|sample| sample.micros).sum::<f64>();
        let outer = self.blocks.iter().map(|block| 2.0 * block.outer_us());
        // Samples are times per launch; the limit is on the time of all launches in them.
        inner * f64::from(self.launches)
            + outer.sum::<f64>() * f64::from(self.reference.runner.launches)
    }

    fn enough(&self) -> bool {
        let samples = self.samples().count();
        // A slow kernel gets few samples instead of a long race; an interval needs at least two blocks.
        if self.spent_us() > self.settings.race_us && self.blocks.len() >= 2 {
            return true;
        }
        if samples < self.settings.samples_min {
            return false;
        }
        // The interval of a median is misleadingly narrow while the samples alternate between two
        // modes.
        let two_modes = self.two_modes();
        let most = self.settings.samples_max * if two_modes { 2 } else { 1 };
        let ratios = self.ratios();
        let narrow = median(&ratios).zip(interval_of_median(&ratios));
        let narrow = narrow.is_some_and(|(middle, [low, high])| {
            high - low < 2.0 * self.settings.half_width * middle
        });
        samples >= most || (narrow && !two_modes)
    }
}

impl Plan for Race {
    fn next(&self) -> Step {
        if self.done {
            return Step::Done;
        }
        let sample = |launches| Step::Sample {
            subject: self.candidate,
            launches,
        };
        match &self.stage {
            Stage::First => sample(1),
            Stage::Warm(launches) => sample(*launches),
            Stage::Blocks(blocks) => blocks.next(),
        }
    }

    fn tell(&mut self, sample: Option<Sample>) {
        match (&mut self.stage, sample) {
            (Stage::First, Some(sample)) => {
                let wanted = self
                    .settings
                    .launches_for(self.settings.candidate_warm_us, sample.micros);
                // The first launch overestimates the time, so the minimum of three launches is
                // needed.
                self.stage = Stage::Warm(wanted.clamp(3, self.settings.launches_max));
            }
            (Stage::Warm(_), Some(sample)) => self.begin(sample.micros),
            (Stage::Blocks(blocks), sample) => {
                if let Some(block) = blocks.tell(sample) {
                    self.keep(block);
                }
            }
            // Only blocks request pauses, so an earlier stage never receives an empty step.
            (_, None) => {}
        }
    }
}

/// Warm-up of a session: the reference runs until heat and clocks have settled, and its time
/// becomes the unit of the session.
#[derive(Debug, Clone)]
pub(crate) struct WarmUp {
    settings: Settings,
    subject: Subject,
    launches: Option<u32>,
    taken: usize,
    spent_us: f64,
    times: Vec<f64>,
    clocks: Vec<f64>,
}

/// Last warm-up samples whose median is the reference's time.
const UNIT_SAMPLES: usize = 15;
/// Minimum of these samples for a slow reference.
const UNIT_SAMPLES_MIN: usize = 5;
/// Multiple of the warm-up after which a device that still throttles is accepted.
const THROTTLED_TOO_LONG: f64 = 4.0;

impl WarmUp {
    /// Starts a warm-up of `subject`.
    #[must_use]
    pub(crate) fn new(settings: Settings, subject: Subject) -> Self {
        Self {
            settings,
            subject,
            launches: None,
            taken: 0,
            spent_us: 0.0,
            times: Vec::new(),
            clocks: Vec::new(),
        }
    }

    /// Returns the warmed-up reference; `None` before the end.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "where the last session began is a former length of the same list"
    )]
    pub(crate) fn reference(&self, identity: Option<ContentHash>) -> Option<Reference> {
        let last = self.times.len().saturating_sub(UNIT_SAMPLES);
        let clocks = self.clocks.len().saturating_sub(UNIT_SAMPLES);
        Some(Reference {
            runner: Runner {
                subject: self.subject,
                launches: self.launches?,
            },
            identity,
            // Only the last samples: during the first ones clocks and heat had not settled.
            session_us: median(&self.times[last..])?,
            clock_mhz: median(&self.clocks[clocks..]),
        })
    }
}

impl Plan for WarmUp {
    fn next(&self) -> Step {
        let enough =
            self.spent_us >= self.settings.warm_up_us && self.times.len() >= UNIT_SAMPLES_MIN;
        if enough {
            return Step::Done;
        }
        Step::Sample {
            subject: self.subject,
            launches: self.launches.unwrap_or(1),
        }
    }

    fn tell(&mut self, sample: Option<Sample>) {
        let Some(sample) = sample else {
            return;
        };
        // Throttled samples count as well, so that a device which always throttles reaches the
        // limit below.
        self.spent_us += sample.micros * f64::from(self.launches.unwrap_or(1));
        // The first launch is slower than the others; the second sample is the first useful one.
        let settled = self.taken > 1;
        self.taken += 1;
        if !settled {
            self.launches = Some(self.settings.launches(sample.micros));
            return;
        }
        // Throttled samples become the unit only if there are no others.
        let throttled_max = THROTTLED_TOO_LONG * self.settings.warm_up_us;
        if !sample.throttled || self.spent_us > throttled_max {
            self.times.push(sample.micros);
            self.clocks.extend(sample.clock_mhz);
        }
    }
}
