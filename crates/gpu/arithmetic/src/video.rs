//! The SIMD video instructions: `vadd4`, `vsub4`, `vavrg4`, `vabsdiff4`, `vmin4`, `vmax4`, `vset4`
//! and their `…2` forms, with the default byte selection and mask.

/// Operation on one pair of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Average, halves away from zero.
    Average,
    /// Magnitude of the difference.
    AbsDiff,
    /// Smaller.
    Min,
    /// Larger.
    Max,
}

/// One form of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Video {
    /// Operation.
    pub op: Simd,
    /// Elements in a register: 4 bytes or 2 halves.
    pub elements: u32,
    /// `.s32` of a.
    pub a_signed: bool,
    /// `.s32` of b.
    pub b_signed: bool,
    /// `.s32` of the destination.
    pub d_signed: bool,
    /// `.sat`: clamp each element to the destination's range instead of wrapping.
    pub sat: bool,
    /// `.add`: the result is `c` plus the sum of the elements.
    pub accumulate: bool,
}

impl Video {
    /// Returns the result; `c` is used only with `accumulate`.
    #[inline]
    pub fn run(self, a: u32, b: u32, c: u32) -> u32 {
        let bits = 32 / self.elements;
        let mut sum = c;
        let mut packed = 0;
        for i in 0..self.elements {
            let x = element(a, i, bits, self.a_signed);
            let y = element(b, i, bits, self.b_signed);
            let value = match self.op {
                Simd::Add => x + y,
                Simd::Sub => x - y,
                // Halves round away from zero.
                Simd::Average => (x + y + i32::from(x + y >= 0)) >> 1,
                Simd::AbsDiff => (x - y).abs(),
                Simd::Min => x.min(y),
                Simd::Max => x.max(y),
            };
            let value = if self.sat {
                self.clamp(value, bits)
            } else {
                value
            };
            let code = value as u32 & ((1 << bits) - 1);
            packed |= code << (bits * i);
            let extended = element(code, 0, bits, self.d_signed);
            sum = sum.wrapping_add(extended as u32);
        }
        if self.accumulate { sum } else { packed }
    }

    fn clamp(self, value: i32, bits: u32) -> i32 {
        if self.d_signed {
            value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            value.clamp(0, (1 << bits) - 1)
        }
    }
}

/// Returns element `i` of a register, extended.
#[inline(always)]
fn element(x: u32, i: u32, bits: u32, signed: bool) -> i32 {
    let up = x << (32 - bits * (i + 1));
    if signed {
        up as i32 >> (32 - bits)
    } else {
        (up >> (32 - bits)) as i32
    }
}
