//! Occupancy of the units of a multiprocessor, per instruction of a warp.

use super::code::{GroupProduct, Instr, Matrix};
use sass::Unit;
use vgpu::Arch;

/// Cycles that one instruction occupies the units of a scheduler.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) fma: u64,
    /// True for two multiply-add pipes, one of which also multiplies integers (compute capability
    /// 8.6 and later).
    pub(super) two_fma: bool,
    pub(super) alu: u64,
    pub(super) half: u64,
    pub(super) double: u64,
    pub(super) special: u64,
    /// Multiply-adds of matrix instructions per clock.
    pub(super) tensor: Tensor,
    /// The same of asynchronous products.
    group: Tensor,
    schedulers: f64,
    /// Bytes of shared memory per clock.
    shared_bytes: u32,
    /// Cycles of the load and store unit for the lanes of one warp.
    pub(super) lanes: u64,
    /// Cycles per wavefront of shared memory.
    pub(super) wavefront: u64,
}

/// Multiply-adds per clock of a scheduler's matrix units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tensor {
    f16: f64,
    tf32: f64,
    int: f64,
    f8: f64,
    f64: f64,
}

impl Tensor {
    /// Returns the rates at a share of the peak, percent.
    fn from_arch(arch: &Arch, share_pct: u32) -> Tensor {
        let share = f64::from(share_pct) / 100.0 / f64::from(arch.schedulers);
        let rate = |whole: u32| f64::from(whole) * share;
        let f16 = rate(arch.tensor_f16);
        // Types without a unit on this GPU run at the rate of half precision.
        let or_f16 = |whole: u32| if whole == 0 { f16 } else { rate(whole) };
        Tensor {
            f16,
            tf32: or_f16(arch.tensor_tf32),
            int: or_f16(arch.tensor_i8),
            f8: or_f16(arch.tensor_f8),
            // Without a unit of their own, products of this type use the lanes of double precision.
            f64: match arch.tensor_f64 {
                0 => f64::from(arch.fp64_lanes) / f64::from(arch.schedulers),
                whole => rate(whole),
            },
        }
    }

    /// Returns the rate of one type.
    pub(super) fn rate(&self, matrix: Matrix) -> f64 {
        match matrix {
            Matrix::F16 => self.f16,
            Matrix::Tf32 => self.tf32,
            Matrix::Int => self.int,
            Matrix::F8 => self.f8,
            Matrix::F64 => self.f64,
        }
    }
}

/// Index of the multiply-add pipe of a scheduler; the other pipes follow.
pub(super) const FMA: usize = 0;
pub(super) const FMA_SECOND: usize = 1;
pub(super) const ALU: usize = 2;
pub(super) const HALF: usize = 3;
pub(super) const DOUBLE: usize = 4;
pub(super) const SPECIAL: usize = 5;
pub(super) const TENSOR: usize = 6;
pub(super) const UNIFORM: usize = 7;
pub(super) const MEMORY: usize = 8;
/// Number of pipes per scheduler.
pub(super) const PIPES: usize = 9;

/// Cycles between memory instructions of a scheduler with room in its queue (Huerta et al., arXiv
/// 2503.20481, table 1).
const MEMORY_CYCLES: u64 = 1;

/// Cycles between the issues of products of warp-groups (Luo et al., arXiv 2501.12084: 3.8 to 4.2).
const GROUP_ISSUE_CYCLES: u64 = 4;

impl Rates {
    pub(super) fn from_arch(arch: &Arch) -> Rates {
        let each = |lanes: u32| {
            let lanes = (lanes / arch.schedulers).max(1);
            u64::from(32_u32.div_ceil(lanes)).max(1)
        };
        // With fewer lanes than schedulers, the schedulers share one.
        let shared = |lanes: u32| u64::from((32 * arch.schedulers).div_ceil(lanes.max(1)));
        let two_fma = arch.fp32_lanes > arch.imad_lanes;
        Rates {
            // Each of two pipes has the width of the one for integers.
            fma: if two_fma {
                each(arch.imad_lanes)
            } else {
                each(arch.fp32_lanes)
            },
            two_fma,
            alu: each(arch.alu_lanes),
            half: each(arch.fp16_lanes),
            double: if arch.fp64_lanes < arch.schedulers {
                shared(arch.fp64_lanes)
            } else {
                each(arch.fp64_lanes)
            },
            special: each(arch.special_lanes),
            tensor: Tensor::from_arch(arch, arch.tensor_sync_pct),
            group: Tensor::from_arch(arch, 100),
            schedulers: f64::from(arch.schedulers),
            shared_bytes: arch.shared_bytes_per_clock.max(1),
            wavefront: u64::from(128_u32.div_ceil(arch.shared_bytes_per_clock)),
            lanes: u64::from(32_u32.div_ceil(arch.lsu_lanes)),
        }
    }

    /// Returns the pipe of an instruction and the cycles for which it is occupied.
    pub(super) fn pipe(&self, instr: &Instr) -> Option<(usize, u64)> {
        let busy = match instr.unit {
            Unit::Fma => (FMA, self.fma * instr.numbers),
            Unit::Alu | Unit::Unknown => (ALU, self.alu),
            // Moves of constants encoded as half-precision arithmetic.
            Unit::Half => (HALF, self.half),
            Unit::Double => (DOUBLE, self.double),
            Unit::Special => (SPECIAL, self.special),
            // The product itself is in the queue of `sm::tensor_memory`.
            Unit::Tensor if instr.tensor_core.is_some() => (UNIFORM, 2),
            // The product itself is in the queue of `sm::products`.
            Unit::Tensor if instr.group.is_some() => (TENSOR, GROUP_ISSUE_CYCLES),
            Unit::Tensor => {
                let (multiply_adds, matrix) = instr.tensor;
                (TENSOR, self.matrix_cycles(multiply_adds, matrix))
            }
            Unit::Uniform => (UNIFORM, 2),
            Unit::Global
            | Unit::CopyAsync
            | Unit::Shared
            | Unit::Local
            | Unit::Constant
            | Unit::Atomic
            | Unit::SharedAtomic
            | Unit::Shuffle
            | Unit::Texture
            | Unit::Misc => (MEMORY, MEMORY_CYCLES),
            Unit::Branch | Unit::Barrier | Unit::Depbar | Unit::Nop => return None,
        };
        Some(busy)
    }

    /// Returns the cycles of a scheduler's tensor core for a product of a warp-group.
    pub(super) fn group_cycles(&self, product: &GroupProduct) -> u64 {
        let work = f64::from(product.multiply_adds) / self.group.rate(product.matrix).max(0.01);
        let operands = product.operand_bytes.div_ceil(self.shared_bytes);
        (work.ceil() as u64).max(operands.into()).max(1)
    }

    /// Returns the cycles of a multiprocessor's tensor cores for a product in tensor memory.
    pub(super) fn tensor_memory_cycles(&self, multiply_adds: u32, matrix: Matrix) -> u64 {
        let rate = self.group.rate(matrix) * self.schedulers;
        (f64::from(multiply_adds) / rate.max(0.01)).ceil() as u64
    }

    fn matrix_cycles(&self, multiply_adds: u32, matrix: Matrix) -> u64 {
        // Without a shape, matrix moves count as the usual shape, 16 by 8 by 16.
        let work = match multiply_adds {
            0 => 2048.0,
            known => f64::from(known),
        };
        // Rounded up, so that a launch is never faster than its roofline.
        (work / self.tensor.rate(matrix).max(0.01)).ceil().max(1.0) as u64
    }

    /// Returns true if the instruction may run on the second multiply-add pipe.
    pub(super) fn runs_on_second_fma(&self, instr: &Instr) -> bool {
        // Integer multiply-adds, and moves encoded as such, run on the first pipe only.
        self.two_fma && instr.single
    }
}
