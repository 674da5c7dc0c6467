//! Search quality: recorded spaces, many seeds, the score by number of evaluations or recorded
//! time.

use super::parallel::in_order;
use super::window::Window;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Normal};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tuner_core::recorded::Outcome;
use tuner_core::units::{Micros, Seed};
use tuner_device::replay::Recording;
use tuner_search::{Observation, Proposal, Ready, Strategy};

/// Parameters of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Strategies by name.
    pub strategies: Vec<String>,
    /// Minimum unique evaluations of a run.
    pub evals: usize,
    /// Minimum recorded time of a run, microseconds; ignored for a file without costs.
    pub recorded_us: u64,
    /// Seeds 1 to this.
    pub seeds: u64,
    /// Candidates in flight: with 1 every result is reported before the next proposal.
    pub in_flight: usize,
    /// Standard deviation of the noise on recorded times, relative. A run is scored by the recorded
    /// time of its apparently fastest configuration.
    pub noise: f64,
    /// Threshold of the remaining gain at which a run would end ([`Run::converged`]).
    pub converged: Option<f64>,
}

/// A better configuration was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Unique evaluations until then, inclusive.
    pub evals: usize,
    /// Recorded time until then, microseconds.
    pub charged_us: u64,
    /// Optimum time / its time.
    pub score: f64,
}

/// One run of one strategy on one file: its score as a staircase.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Changes of the score, in order.
    pub steps: Vec<Step>,
    /// Unique evaluations made.
    pub evals: usize,
    /// Recorded time spent, microseconds.
    pub charged_us: u64,
    /// Mean overhead of an evaluation (ask, look up, tell), microseconds.
    pub overhead_us: f64,
    /// Unique evaluations until the search first estimated the remaining gain below the study's
    /// threshold.
    pub converged: Option<usize>,
}

impl Run {
    /// Returns the score after `evals` evaluations; 0 before the first success.
    #[must_use]
    pub fn after(&self, evals: usize) -> f64 {
        self.last(|step| step.evals <= evals)
    }

    /// Returns the score within `charged_us` of recorded time, microseconds.
    #[must_use]
    pub fn within(&self, charged_us: u64) -> f64 {
        self.last(|step| step.charged_us <= charged_us)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "recordings, strategies and steps are numbered by the study itself"
    )]
    fn last(&self, reached: impl Fn(&Step) -> bool) -> f64 {
        let place = self.steps.partition_point(reached);
        place.checked_sub(1).map_or(0.0, |at| self.steps[at].score)
    }
}

/// All runs of one strategy on one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Index of the recording.
    pub file: usize,
    /// The strategy.
    pub strategy: String,
    /// One run for each seed.
    pub runs: Vec<Run>,
}

impl Series {
    /// Returns the scores after `evals` evaluations, one for each seed.
    #[must_use]
    pub fn after(&self, evals: usize) -> Scores {
        Scores(self.runs.iter().map(|run| run.after(evals)).collect())
    }

    /// Returns the scores within `charged_us` of recorded time, microseconds.
    #[must_use]
    pub fn within(&self, charged_us: u64) -> Scores {
        Scores(self.runs.iter().map(|run| run.within(charged_us)).collect())
    }

    /// Returns the mean overhead of an evaluation, microseconds.
    #[must_use]
    pub fn overhead_us_per_eval(&self) -> f64 {
        mean(self.runs.iter().map(|run| run.overhead_us))
    }
}

/// Scores of many runs: optimum time / best found time, 0 without a success.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores(pub Vec<f64>);

impl Scores {
    /// Returns the mean score.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean(self.0.iter().copied())
    }

    /// Returns the standard error of the mean; 0 for one run.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        let (count, mean) = (self.0.len() as f64, self.mean());
        if count < 2.0 {
            return 0.0;
        }
        let squares: f64 = self.0.iter().map(|score| (score - mean).powi(2)).sum();
        (squares / (count - 1.0) / count).sqrt()
    }

    /// Returns the score that this share of the runs stays below, interpolated.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let place = share.clamp(0.0, 1.0) * sorted.len().saturating_sub(1) as f64;
        let low = place as usize;
        match (sorted.get(low), sorted.get(low + 1)) {
            (Some(low), Some(high)) => low + (high - low) * place.fract(),
            (Some(only), None) => *only,
            _ => 0.0,
        }
    }

    /// Returns the median score.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the worst run's score.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(1.0, f64::min)
    }

    /// Returns the share of runs with a score of at least 0.95.
    #[must_use]
    pub fn hit95(&self) -> f64 {
        mean(
            self.0
                .iter()
                .map(|&score| f64::from(u8::from(score >= 0.95))),
        )
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

/// Runs every strategy on every recording with every seed, on all cores. `make` creates a strategy
/// by name for the recording of that index; `progress` receives the number of finished runs. Series
/// are ordered by file, then strategy; only the overhead depends on the number of cores.
///
/// # Errors
/// Errors of `make`.
#[expect(
    clippy::indexing_slicing,
    reason = "recordings, strategies and steps are numbered by the study itself"
)]
pub fn measure<E: Send>(
    recordings: &[Recording],
    study: &Study,
    make: impl Fn(&str, usize, Seed) -> Result<Box<dyn Strategy>, E> + Sync,
    progress: impl Fn(usize) + Sync,
) -> Result<Vec<Series>, E> {
    let seeds = usize::try_from(study.seeds).unwrap_or(usize::MAX);
    let pairs = recordings.len() * study.strategies.len();
    let done = AtomicUsize::new(0);
    let of_pair = |pair: usize| (pair / study.strategies.len(), pair % study.strategies.len());
    let run = |at: &usize, (): &mut ()| {
        let (file, strategy) = of_pair(at / seeds);
        let seed = Seed(1 + (at % seeds) as u64);
        let search = make(&study.strategies[strategy], file, seed)?;
        let run = run_search(&recordings[file], search, seed, study);
        progress(1 + done.fetch_add(1, Ordering::Relaxed));
        Ok(run)
    };
    let places: Vec<usize> = (0..pairs * seeds).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut runs = in_order(&places, threads, || (), run)?.into_iter();
    let series = |pair| {
        let (file, strategy) = of_pair(pair);
        Series {
            file,
            strategy: study.strategies[strategy].clone(),
            runs: runs.by_ref().take(seeds).collect(),
        }
    };
    Ok((0..pairs).map(series).collect())
}

fn run_search(
    recording: &Recording,
    mut search: Box<dyn Strategy>,
    seed: Seed,
    study: &Study,
) -> Run {
    let began = Instant::now();
    let mut noise = Noise::new(study.noise, seed);
    let wanted_us = if recording.has_costs() {
        study.recorded_us
    } else {
        0
    };
    let optimum = recording.optimum().map_or(0.0, Micros::get);
    let mut run = Run {
        steps: Vec::new(),
        evals: 0,
        charged_us: 0,
        overhead_us: 0.0,
        converged: None,
    };
    let mut flights = ProposalsInFlight::new(study.in_flight);
    let mut fastest = f64::INFINITY;
    loop {
        if run.evals >= study.evals && run.charged_us >= wanted_us {
            break;
        }
        let Some(proposal) = flights.next(run.evals as u64, &mut *search) else {
            break;
        };
        let recorded = recording.lookup(&proposal.config);
        run.evals += 1;
        run.charged_us += recorded.charged_us();
        let told = match recorded.outcome {
            Outcome::Timed { time, .. } => {
                let seen = noise.on(time);
                if seen.get() < fastest {
                    fastest = seen.get();
                    run.steps.push(Step {
                        evals: run.evals,
                        charged_us: run.charged_us,
                        score: optimum / time.get(),
                    });
                }
                Observation::Time {
                    time: seen,
                    error: study.noise,
                    other: None,
                }
            }
            Outcome::Failed { verdict, .. } => Observation::Failed(verdict),
        };
        search.tell(proposal.id, told);
        let left = search.remaining_gain().unwrap_or(f64::INFINITY);
        if run.converged.is_none() && study.converged.is_some_and(|share| left <= share) {
            run.converged = Some(run.evals);
        }
    }
    run.overhead_us = began.elapsed().as_secs_f64() * 1e6 / run.evals.max(1) as f64;
    run
}

/// A proposal, and the number of results after which its turn may come.
struct ProposalInFlight {
    proposal: Proposal,
    earliest_turn: u64,
}

/// Proposals in flight, with the rules of a pool that compiles ahead.
struct ProposalsInFlight {
    window: Window,
    list: Vec<ProposalInFlight>,
    /// Number of proposals that may be requested.
    allowance: usize,
}

impl ProposalsInFlight {
    fn new(in_flight: usize) -> Self {
        let window = Window::pool(in_flight);
        Self {
            window,
            list: Vec::new(),
            allowance: window.compiling,
        }
    }

    /// Requests proposals up to the window after `told` results, and removes the one that the
    /// search chooses among those that are due.
    fn next(&mut self, told: u64, search: &mut dyn Strategy) -> Option<Proposal> {
        while self.allowance > 0 && self.has_room(told, search) {
            let Some(proposal) = search.ask() else { break };
            let earliest_turn = self.window.earliest_turn(told, self.list.len());
            self.list.push(ProposalInFlight {
                proposal,
                earliest_turn,
            });
            self.allowance -= 1;
        }
        let more = self.allowance + self.window.per_result;
        self.allowance = more.min(self.window.compiling);
        let first = self.list.iter().map(|each| each.earliest_turn).min()?;
        let (places, ready) = self.due(first.max(told));
        let place = search.choose(&ready);
        Some(self.list.remove(*places.get(place)?).proposal)
    }

    /// Reports whether another proposal fits, after the search has dropped one if necessary.
    fn has_room(&mut self, told: u64, search: &mut dyn Strategy) -> bool {
        let compiling = self.list.iter().filter(|each| each.earliest_turn > told);
        if compiling.count() >= self.window.compiling {
            return false;
        }
        if self.list.len() < self.window.most {
            return true;
        }
        let (places, ready) = self.due(told);
        let given_up = search.withdraw(&ready).and_then(|place| places.get(place));
        given_up.is_some_and(|place| {
            self.list.remove(*place);
            true
        })
    }

    /// Returns the proposals whose turn may come.
    fn due(&self, told: u64) -> (Vec<usize>, Vec<Ready>) {
        let due = self.list.iter().enumerate();
        due.filter(|(_, each)| each.earliest_turn <= told)
            .map(|(place, each)| {
                let (id, facts) = (each.proposal.id, None);
                (place, Ready { id, facts })
            })
            .unzip()
    }
}

/// Multiplies times by log-normal noise.
struct Noise {
    spread: Option<Normal<f64>>,
    rng: ChaCha8Rng,
}

impl Noise {
    fn new(share: f64, seed: Seed) -> Self {
        Self {
            spread: (share > 0.0)
                .then(|| Normal::new(0.0, share).ok())
                .flatten(),
            // A different stream from the search's.
            rng: ChaCha8Rng::seed_from_u64(!seed.0),
        }
    }

    fn on(&mut self, time: Micros) -> Micros {
        self.spread
            .and_then(|spread| Micros::new(time.get() * spread.sample(&mut self.rng).exp()))
            .unwrap_or(time)
    }
}
