//! Demands: the checks that the gate runs for a candidate.

use super::level::Level;
use std::path::PathBuf;
use tuner_core::plan::{Plan, PlanArgument, Role};

tuner_core::with_defaults! {
    /// Checks of one candidate on one problem.
    #[derive(Debug, Clone)]
    pub struct Demands {
        /// The level of these demands.
        pub level: Level = Level::Screening,
        /// Seeds of the input data; one run for each.
        pub seeds: Vec<u64> = vec![0x5eed],
        /// Extra runs with randomised warp order, on the first seed.
        pub schedules: u32 = 0,
        /// Lane instructions up to which a problem is run whole; larger ones are sampled if the
        /// device can omit blocks.
        pub whole_limit: u64 = 200_000_000,
        /// The same limit for problems whose sample cannot be compared: several launches or atomics, whose
        /// blocks use each other's results.
        pub uncomparable_limit: u64 = 200_000_000,
        /// Maximum lane instructions of a sample.
        pub sample_limit: u64 = 50_000_000,
        /// Runs on the first seed that must agree bit for bit, unless `schedules` requires more.
        pub runs: u32 = 2,
        /// Lane instructions for adversarial inputs and runs beyond the second; 0 disables both. On
        /// a device that does not count, they cost nothing.
        pub extra_limit: u64 = 0,
        /// Warp instructions after which a block of a sample is abandoned: one block may hold the
        /// work of a whole problem.
        pub block_limit: u64 = 1 << 24,
        /// Minimum warp instruction limit of one block of the reference: it runs once for all
        /// candidates, and one block may compute a whole row.
        pub reference_block_limit: u64 = 1 << 25,
        /// Maximum lane instructions of a whole run for a proof, for the candidate and for its reference
        /// each; `None` if this is not a proof.
        pub proof_limit: Option<u64> = None,
        /// Folder that receives the contents of the outputs after the first whole run.
        pub outputs: Option<PathBuf> = None,
    }
}

impl Demands {
    /// Returns the demands of a level with these seeds (empty: the level's own) and extra
    /// schedules.
    #[must_use]
    pub fn for_level(level: Level, seeds: &[u64], schedules: u32) -> Self {
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

    /// Returns the demands of a proof: one whole run if it takes at most `limit` lane instructions. At
    /// least a million elements of every output are compared, or all of them.
    #[must_use]
    pub fn proof(seeds: &[u64], limit: u64) -> Self {
        let plain = Self::for_level(Level::First, seeds, 0);
        Self {
            whole_limit: limit,
            uncomparable_limit: limit,
            // One block may hold the work of the whole problem.
            block_limit: plain.block_limit.max(limit / WARP_LANES),
            proof_limit: Some(limit),
            ..plain
        }
    }

    /// Returns the demands of one whole run whose outputs are written to `folder`.
    #[must_use]
    pub fn for_outputs(seeds: &[u64], folder: PathBuf) -> Self {
        Self {
            outputs: Some(folder),
            ..Self::proof(seeds, OUTPUT_LIMIT)
        }
    }

    /// Returns the cost of the data of a proof, in lane instructions; 0 for other checks, whose limits
    /// exclude large data.
    pub(super) fn data_cost(&self, plan: &Plan) -> u64 {
        let buffers = plan.arguments.iter().filter(|a| a.role != Role::Scalar);
        let bytes = buffers
            .map(PlanArgument::bytes)
            .fold(0, u64::saturating_add);
        match self.proof_limit {
            Some(_) => bytes.saturating_mul(BYTE_COST),
            None => 0,
        }
    }

    /// Returns the lane instructions up to which a reference kernel is run whole.
    pub(super) fn reference_limit(&self, sampled: bool) -> u64 {
        let factor = if sampled { 1 } else { REFERENCE_LIMIT_FACTOR };
        let usual = self.whole_limit.saturating_mul(factor);
        self.proof_limit.unwrap_or(usual)
    }

    /// Returns the limit of lane instructions for blocks of a reference kernel that is not run
    /// whole.
    pub(super) fn reference_sample_limit(&self) -> u64 {
        let usual = self.sample_limit.saturating_mul(2);
        self.proof_limit.unwrap_or(usual)
    }

    /// Reports whether a problem is small enough to be run whole without measuring a block: few
    /// threads, little data and little arithmetic.
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

/// Multiple of the candidate's limit up to which the reference of a whole run also runs whole: it
/// runs once for all candidates.
const REFERENCE_LIMIT_FACTOR: u64 = 3;

/// Maximum lane instructions of a run whose outputs are written.
pub const OUTPUT_LIMIT: u64 = 1 << 40;

/// Cost of a buffer's byte in lane instructions: it is filled, poisoned, read back and compared.
const BYTE_COST: u64 = 8;

/// Lanes of a warp.
const WARP_LANES: u64 = 32;

/// Elements of all arguments up to which a few threads have little work.
const SMALL_ELEMENTS: u64 = 1 << 16;
