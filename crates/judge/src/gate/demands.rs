//! What the gate asks of a candidate.

use super::level::Level;
use tuner_core::plan::{Plan, PlanArgument};

tuner_core::with_defaults! {
    /// What the gate does for one candidate on one problem.
    #[derive(Debug, Clone)]
    pub struct Demands {
        /// The level that asks for all this.
        pub level: Level = Level::Screening,
        /// Seeds of the input data; each is a run of its own.
        pub seeds: Vec<u64> = vec![0x5eed],
        /// Extra runs with randomised warp order, on the first seed.
        pub schedules: u32 = 0,
        /// Lane instructions up to which a problem is run whole; larger ones are sampled where the
        /// device can leave blocks out.
        pub whole_limit: u64 = 200_000_000,
        /// The same for problems of which a sample could not be compared: those of several launches or
        /// with atomics, whose blocks work on one another's results.
        pub uncomparable_limit: u64 = 200_000_000,
        /// Lane instructions a sample may cost.
        pub sample_limit: u64 = 50_000_000,
        /// Runs on the first seed that must agree bit for bit, where `schedules` asks for no more.
        pub runs: u32 = 2,
        /// Lane instructions that adversarial inputs and runs beyond the second may cost; 0: none of
        /// either. A device that does not count spends nothing.
        pub extra_limit: u64 = 0,
        /// Warp instructions that one block of a sample may execute: what takes longer is left where it
        /// is, for one block may hold the work of a whole problem.
        pub block_limit: u64 = 1 << 24,
        /// Warp instructions that one block of the reference may execute at least: it runs once for
        /// all candidates, and one block may compute a whole row.
        pub reference_block_limit: u64 = 1 << 25,
        /// Lane instructions that a whole run for a proof may take, of the candidate and of its
        /// reference each; `None`: this is no proof.
        pub proof_limit: Option<u64> = None,
    }
}

impl Demands {
    /// What a level asks for, with these seeds (none: the level's own) and extra schedules.
    #[must_use]
    pub fn of(level: Level, seeds: &[u64], schedules: u32) -> Self {
        let plain = Self::default();
        let first = seeds.first().or(plain.seeds.first()).copied();
        Self {
            level,
            seeds: if seeds.len() > 1 {
                seeds.to_vec()
            } else {
                level.seeds(first.unwrap_or(0))
            },
            schedules,
            runs: level.runs(),
            extra_limit: level.extra_limit(),
            whole_limit: level.share_of(plain.whole_limit),
            sample_limit: level.share_of(plain.sample_limit),
            ..plain
        }
    }

    /// Demands of a proof: the problem is run whole once where that takes at most `limit` lane
    /// instructions, and every output is compared at a million
    /// elements or all of them.
    #[must_use]
    pub fn proof(seeds: &[u64], limit: u64) -> Self {
        let plain = Self::of(Level::First, seeds, 0);
        Self {
            whole_limit: limit,
            uncomparable_limit: limit,
            // One block may hold the work of the whole problem.
            block_limit: plain.block_limit.max(limit / WARP_LANES),
            proof_limit: Some(limit),
            ..plain
        }
    }

    /// Lane instructions up to which a reference kernel is run whole.
    pub(super) fn reference_limit(&self, sampled: bool) -> u64 {
        let factor = if sampled { 1 } else { REFERENCE_LIMIT_FACTOR };
        let usual = self.whole_limit.saturating_mul(factor);
        self.proof_limit.unwrap_or(usual)
    }

    /// Lane instructions that the blocks of a reference kernel may take that is not run whole.
    pub(super) fn reference_sample_limit(&self) -> u64 {
        let usual = self.sample_limit.saturating_mul(2);
        self.proof_limit.unwrap_or(usual)
    }

    /// Whether a problem is small enough to be run whole without looking at the cost of a block:
    /// few threads with little data and little to compute.
    pub(super) fn surely_whole(&self, plan: &Plan) -> bool {
        let data = plan.arguments.iter().map(PlanArgument::count);
        let data = data.fold(0, u64::saturating_add) <= SMALL_ELEMENTS;
        let work = plan.flops.unwrap_or(0.0) <= (self.whole_limit >> 2) as f64;
        let threads = plan
            .launches
            .iter()
            .map(|l| l.blocks().saturating_mul(l.threads()));
        data && work && threads.fold(0, u64::saturating_add) <= self.whole_limit >> 12
    }
}

/// Where a candidate ran whole, so does its reference up to this multiple of its limit: it does so
/// once for all of them.
const REFERENCE_LIMIT_FACTOR: u64 = 3;

/// Lanes of a warp.
const WARP_LANES: u64 = 32;

/// Elements of all arguments up to which a few threads cannot have much to do.
const SMALL_ELEMENTS: u64 = 1 << 16;
