//! Counters of one launch: executed instructions and memory traffic.

use std::ops::AddAssign;

/// Instruction classes with separate counters, by the unit that executes them on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// 32-bit float add, multiply, fused multiply-add, compare.
    Fp32,
    /// Double precision.
    Fp64,
    /// Half precision, packed or not.
    Fp16,
    /// Integer and logic.
    Int,
    /// Moves, selects and predicate logic.
    Move,
    /// Conversions.
    Convert,
    /// Approximations: `ex2`, `lg2`, `rcp`, `rsqrt`, `sin`, `cos`, `tanh`.
    Special,
    /// Branches, calls, returns.
    Control,
    /// Barriers, fences, `mbarrier`, waits.
    Sync,
    /// Global loads and stores, `cp.async` too.
    Global,
    /// Shared loads and stores, `ldmatrix`, `stmatrix`.
    Shared,
    /// Local loads and stores.
    Local,
    /// Constant and parameter loads.
    Const,
    /// Atomics and reductions.
    Atomic,
    /// `shfl`, `vote`, `match`, `redux`.
    Shuffle,
    /// Matrix instructions.
    Tensor,
}

/// Number of [`Class`] values.
pub const CLASSES: usize = 16;

/// Totals over the executed blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks executed.
    pub blocks: u64,
    /// Instructions issued by warps.
    pub warp_instructions: u64,
    /// Active lanes, summed over the issued instructions.
    pub lane_instructions: u64,
    /// Warp instructions by [`Class`].
    pub by_class: [u64; CLASSES],
    /// Bytes that global loads requested.
    pub global_load_bytes: u64,
    /// Bytes that global stores requested.
    pub global_store_bytes: u64,
    /// 32-byte sectors of global loads, counted per warp instruction.
    pub global_load_sectors: u64,
    /// 32-byte sectors of global stores, counted per warp instruction.
    pub global_store_sectors: u64,
    /// Bytes that shared loads and stores requested.
    pub shared_bytes: u64,
    /// Wavefronts of shared accesses (1 per warp instruction without conflicts, 128 bytes each).
    pub shared_wavefronts: u64,
    /// Wavefronts beyond the minimum: bank conflicts.
    pub bank_conflicts: u64,
    /// Bytes that local loads and stores requested.
    pub local_bytes: u64,
    /// Single-precision operations (a fused multiply-add counts two).
    pub fp32_flops: u64,
    /// Half-precision operations outside matrix instructions.
    pub fp16_flops: u64,
    /// Double-precision operations.
    pub fp64_flops: u64,
    /// Operations of matrix instructions (a multiply-add counts two).
    pub tensor_flops: u64,
    /// Block-wide barriers passed.
    pub barriers: u64,
    /// Branches that split a warp.
    pub divergent_branches: u64,
}

impl Counters {
    /// Counts an instruction of a warp and the operations of its lanes; for a matrix instruction,
    /// one unit is 16 operations.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "there is a count for each class of instruction"
    )]
    pub(crate) fn count(&mut self, class: Class, flops: u64) {
        self.by_class[class as usize] += 1;
        if flops == 0 {
            return;
        }
        match class {
            Class::Fp32 => self.fp32_flops += flops,
            Class::Fp16 => self.fp16_flops += flops,
            Class::Fp64 => self.fp64_flops += flops,
            Class::Tensor => self.tensor_flops += flops * 16,
            _ => {}
        }
    }

    /// Returns the counters of `factor` equal blocks: all counts but that of blocks are scaled.
    pub fn scaled(self, factor: f64) -> Counters {
        if factor == 1.0 {
            return self;
        }
        let times = |n: u64| (n as f64 * factor).round() as u64;
        Counters {
            blocks: self.blocks,
            warp_instructions: times(self.warp_instructions),
            lane_instructions: times(self.lane_instructions),
            by_class: self.by_class.map(times),
            global_load_bytes: times(self.global_load_bytes),
            global_store_bytes: times(self.global_store_bytes),
            global_load_sectors: times(self.global_load_sectors),
            global_store_sectors: times(self.global_store_sectors),
            shared_bytes: times(self.shared_bytes),
            shared_wavefronts: times(self.shared_wavefronts),
            bank_conflicts: times(self.bank_conflicts),
            local_bytes: times(self.local_bytes),
            fp32_flops: times(self.fp32_flops),
            fp16_flops: times(self.fp16_flops),
            fp64_flops: times(self.fp64_flops),
            tensor_flops: times(self.tensor_flops),
            barriers: times(self.barriers),
            divergent_branches: times(self.divergent_branches),
        }
    }

    /// Extrapolates linearly over `steps` steps; `next` are the counters one step further.
    pub fn extrapolated(self, next: Counters, steps: f64) -> Counters {
        let on =
            |a: u64, b: u64| (a as f64 + (b as f64 - a as f64) * steps).round().max(0.0) as u64;
        let mut by_class = self.by_class;
        for (count, next) in by_class.iter_mut().zip(next.by_class) {
            *count = on(*count, next);
        }
        Counters {
            blocks: self.blocks,
            by_class,
            warp_instructions: on(self.warp_instructions, next.warp_instructions),
            lane_instructions: on(self.lane_instructions, next.lane_instructions),
            global_load_bytes: on(self.global_load_bytes, next.global_load_bytes),
            global_store_bytes: on(self.global_store_bytes, next.global_store_bytes),
            global_load_sectors: on(self.global_load_sectors, next.global_load_sectors),
            global_store_sectors: on(self.global_store_sectors, next.global_store_sectors),
            shared_bytes: on(self.shared_bytes, next.shared_bytes),
            shared_wavefronts: on(self.shared_wavefronts, next.shared_wavefronts),
            bank_conflicts: on(self.bank_conflicts, next.bank_conflicts),
            local_bytes: on(self.local_bytes, next.local_bytes),
            fp32_flops: on(self.fp32_flops, next.fp32_flops),
            fp16_flops: on(self.fp16_flops, next.fp16_flops),
            fp64_flops: on(self.fp64_flops, next.fp64_flops),
            tensor_flops: on(self.tensor_flops, next.tensor_flops),
            barriers: on(self.barriers, next.barriers),
            divergent_branches: on(self.divergent_branches, next.divergent_branches),
        }
    }

    /// Returns the warp instructions of one class.
    #[expect(
        clippy::indexing_slicing,
        reason = "there is a count for each class of instruction"
    )]
    pub fn class(&self, class: Class) -> u64 {
        self.by_class[class as usize]
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, o: Counters) {
        for (mine, theirs) in self.by_class.iter_mut().zip(o.by_class) {
            *mine += theirs;
        }
        self.blocks += o.blocks;
        self.warp_instructions += o.warp_instructions;
        self.lane_instructions += o.lane_instructions;
        self.global_load_bytes += o.global_load_bytes;
        self.global_store_bytes += o.global_store_bytes;
        self.global_load_sectors += o.global_load_sectors;
        self.global_store_sectors += o.global_store_sectors;
        self.shared_bytes += o.shared_bytes;
        self.shared_wavefronts += o.shared_wavefronts;
        self.bank_conflicts += o.bank_conflicts;
        self.local_bytes += o.local_bytes;
        self.fp32_flops += o.fp32_flops;
        self.fp16_flops += o.fp16_flops;
        self.fp64_flops += o.fp64_flops;
        self.tensor_flops += o.tensor_flops;
        self.barriers += o.barriers;
        self.divergent_branches += o.divergent_branches;
    }
}
