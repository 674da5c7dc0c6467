//! How long each unit of a multiprocessor is busy with one warp's instruction.

use super::code::{Instr, Matrix};
use sass::Unit;
use vgpu::Arch;

/// Cycles for which one scheduler's units are busy with one instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) fma: u64,
    /// Two multiply-add pipes, of which one multiplies integers too (compute capability 8.6 on).
    pub(super) two_fma: bool,
    pub(super) alu: u64,
    pub(super) half: u64,
    pub(super) double: u64,
    pub(super) special: u64,
    /// Multiply-adds of a matrix instruction a clock.
    pub(super) tensor: Tensor,
    /// Cycles in which the load and store unit takes the lanes of one warp.
    pub(super) lanes: u64,
    /// Cycles of a wavefront of shared memory.
    pub(super) wavefront: u64,
}

/// Multiply-adds that the matrix units of a scheduler make a clock, as `mma.sync` reaches them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tensor {
    f16: f64,
    tf32: f64,
    int: f64,
    f8: f64,
    f64: f64,
}

impl Tensor {
    fn of(arch: &Arch) -> Tensor {
        let share = f64::from(arch.tensor_sync_pct) / 100.0 / f64::from(arch.schedulers);
        let rate = |whole: u32| f64::from(whole) * share;
        let f16 = rate(arch.tensor_f16);
        // What a GPU has no unit for is made by that for half precision.
        let or_f16 = |whole: u32| if whole == 0 { f16 } else { rate(whole) };
        Tensor {
            f16,
            tf32: or_f16(arch.tensor_tf32),
            int: or_f16(arch.tensor_i8),
            f8: or_f16(arch.tensor_f8),
            f64: match arch.tensor_f64 {
                0 => f64::from(arch.fp64_lanes) / f64::from(arch.schedulers),
                whole => rate(whole),
            },
        }
    }

    /// The rate of one type.
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

/// Index of a pipe of a scheduler.
pub(super) const FMA: usize = 0;
pub(super) const FMA_SECOND: usize = 1;
pub(super) const ALU: usize = 2;
pub(super) const HALF: usize = 3;
pub(super) const DOUBLE: usize = 4;
pub(super) const SPECIAL: usize = 5;
pub(super) const TENSOR: usize = 6;
pub(super) const UNIFORM: usize = 7;
pub(super) const MEMORY: usize = 8;
/// Pipes of a scheduler.
pub(super) const PIPES: usize = 9;

/// Cycles between memory instructions of a scheduler whose queue has room (Huerta et al., arXiv
/// 2503.20481, table 1).
const MEMORY_CYCLES: u64 = 1;

impl Rates {
    pub(super) fn of(arch: &Arch) -> Rates {
        let each = |lanes: u32| {
            let lanes = (lanes / arch.schedulers).max(1);
            u64::from(32_u32.div_ceil(lanes)).max(1)
        };
        // Fewer lanes than schedulers: they share.
        let shared = |lanes: u32| u64::from((32 * arch.schedulers).div_ceil(lanes.max(1)));
        let two_fma = arch.fp32_lanes > arch.imad_lanes;
        Rates {
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
            tensor: Tensor::of(arch),
            wavefront: u64::from(128_u32.div_ceil(arch.shared_bytes_per_clock)),
            lanes: u64::from(32_u32.div_ceil(arch.lsu_lanes)),
        }
    }

    /// The pipe of an instruction and for how long it is taken.
    pub(super) fn pipe(&self, instr: &Instr) -> Option<(usize, u64)> {
        let busy = match instr.unit {
            Unit::Fma => (FMA, self.fma),
            Unit::Alu | Unit::Unknown => (ALU, self.alu),
            // Moves of constants written as half-precision arithmetic.
            Unit::Half => (HALF, self.half),
            Unit::Double => (DOUBLE, self.double),
            Unit::Special => (SPECIAL, self.special),
            Unit::Tensor => (TENSOR, self.matrix(instr.tensor)),
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

    fn matrix(&self, (multiply_adds, matrix): (u32, Matrix)) -> u64 {
        // Matrices that are only moved: as the usual form, 16 by 8 by 16.
        let work = match multiply_adds {
            0 => 2048.0,
            known => f64::from(known),
        };
        // Rounded up: the whole is never faster than the roofline.
        (work / self.tensor.rate(matrix).max(0.01)).ceil().max(1.0) as u64
    }

    /// Whether the instruction may run on the second multiply-add pipe.
    pub(super) fn either(&self, instr: &Instr) -> bool {
        // Integer multiply-adds, and moves written as such, have the first pipe only.
        self.two_fma && instr.single
    }
}
