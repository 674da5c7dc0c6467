//! The video instructions (PTX ISA, "Video Instructions"): SIMD ones (`vadd4`, `vset2` and so on) with the default
//! selection of bytes, and scalar ones.

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
    /// 1 where equal, else 0; the others the same.
    Eq,
    /// 1 where not equal.
    Ne,
    /// 1 where less.
    Lt,
    /// 1 where less or equal.
    Le,
    /// 1 where greater.
    Gt,
    /// 1 where greater or equal.
    Ge,
    /// Shift to the left, by 32 at most. The result of shifts to the left has 34 bits, as any intermediate one.
    ShlClamp,
    /// Shift to the left by the lower five bits.
    ShlWrap,
    /// Shift to the right, by 32 at most.
    ShrClamp,
    /// Shift to the right by the lower five bits.
    ShrWrap,
}

impl Simd {
    #[inline(always)]
    fn of(self, x: i64, y: i64) -> i64 {
        match self {
            Simd::Add => x + y,
            Simd::Sub => x - y,
            // Halves round away from zero.
            Simd::Average => (x + y + i64::from(x + y >= 0)) >> 1,
            Simd::AbsDiff => (x - y).abs(),
            Simd::Min => x.min(y),
            Simd::Max => x.max(y),
            Simd::Eq => (x == y).into(),
            Simd::Ne => (x != y).into(),
            Simd::Lt => (x < y).into(),
            Simd::Le => (x <= y).into(),
            Simd::Gt => (x > y).into(),
            Simd::Ge => (x >= y).into(),
            Simd::ShlClamp => x << y.min(32) << 30 >> 30,
            Simd::ShlWrap => x << (y & 31) << 30 >> 30,
            Simd::ShrClamp => x >> y.min(32),
            Simd::ShrWrap => x >> (y & 31),
        }
    }
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
    /// Elements that count, from bit 0 on; the others are those of `c`.
    pub mask: u32,
}

impl Video {
    /// Returns the result; `c` is used only with `accumulate` and where the mask is zero.
    #[inline]
    pub fn run(self, a: u32, b: u32, c: u32) -> u32 {
        let bits = 32 / self.elements;
        let mut sum = c;
        let mut packed = 0;
        for i in 0..self.elements {
            let place = ((1 << bits) - 1) << (bits * i);
            if self.mask >> i & 1 == 0 {
                packed |= c & place;
                continue;
            }
            let x = element(a, i, bits, self.a_signed);
            let y = element(b, i, bits, self.b_signed);
            let value = self.op.of(x.into(), y.into()) as i32;
            let value = if self.sat {
                self.clamp(value, bits)
            } else {
                value
            };
            packed |= (value as u32) << (bits * i) & place;
            // The sum takes the result before it is cut to the width of an element.
            sum = sum.wrapping_add(value as u32);
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

/// Part of a register: the whole, a byte (1 to 4, lowest first) or a half (5, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part(pub u32);

impl Part {
    /// Bits, and position of the lowest one.
    const fn extent(self) -> (u32, u32) {
        match self.0 {
            1..=4 => (8, 8 * (self.0 - 1)),
            5 | 6 => (16, 16 * (self.0 - 5)),
            _ => (32, 0),
        }
    }

    fn of(self, word: u32, signed: bool) -> i64 {
        let (bits, at) = self.extent();
        let up = word >> at << (32 - bits);
        if signed {
            i64::from(up as i32 >> (32 - bits))
        } else {
            i64::from(up >> (32 - bits))
        }
    }
}

/// Operation on the result of a scalar video instruction and `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Second {
    /// The result is put into `c` at the destination's part.
    Merge,
    /// Sum.
    Add,
    /// Smaller.
    Min,
    /// Larger.
    Max,
}

/// One form of a scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// Operation.
    pub op: Simd,
    /// Signs of a, b and the destination.
    pub signed: [bool; 3],
    /// Parts of a, b and the destination.
    pub parts: [Part; 3],
    /// `.sat`: clamp to the range of the destination's part.
    pub sat: bool,
    /// Operation with `c`.
    pub second: Second,
}

impl Scalar {
    /// Returns the result.
    pub fn run(self, a: u32, b: u32, c: u32) -> u32 {
        let [of_a, of_b, of_d] = self.parts;
        let [a_signed, b_signed, d_signed] = self.signed;
        let mut value = self.op.of(of_a.of(a, a_signed), of_b.of(b, b_signed));
        let (bits, at) = of_d.extent();
        if self.sat {
            let (least, most) = match d_signed {
                true => (-(1_i64 << (bits - 1)), (1 << (bits - 1)) - 1),
                false => (0, (1_i64 << bits) - 1),
            };
            value = value.clamp(least, most);
        }
        // The sign of c is that of the destination's type.
        let other = Part(0).of(c, d_signed);
        match self.second {
            Second::Add => (value + other) as u32,
            Second::Min => value.min(other) as u32,
            Second::Max => value.max(other) as u32,
            Second::Merge => {
                let mask = (u32::MAX >> (32 - bits)) << at;
                c & !mask | (value as u32) << at & mask
            }
        }
    }
}

/// One form of `vmad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultiplyAdd {
    /// Signs of a and b.
    pub signed: [bool; 2],
    /// Parts of a and b.
    pub parts: [Part; 2],
    /// The product is subtracted.
    pub minus_product: bool,
    /// `c` is subtracted.
    pub minus_c: bool,
    /// `.po`: one more.
    pub plus_one: bool,
    /// Bits of the shift to the right.
    pub shift: u32,
    /// `.sat`: clamp to the range of the result.
    pub sat: bool,
}

impl MultiplyAdd {
    /// Reports whether the result is a signed number.
    pub fn is_signed(self) -> bool {
        self.signed[0] || self.signed[1] || self.minus_product || self.minus_c
    }

    /// Returns the result as the PTX ISA has it (`vmad`).
    pub fn run(self, a: u32, b: u32, c: u32) -> u32 {
        let [a_signed, b_signed] = self.signed;
        let (a, b) = (self.parts[0].of(a, a_signed), self.parts[1].of(b, b_signed));
        let signed = self.is_signed();
        let sign = |minus: bool| if minus { -1 } else { 1 };
        let product = i128::from(a) * i128::from(b) * sign(self.minus_product);
        let c = i128::from(Part(0).of(c, signed)) * sign(self.minus_c);
        let scaled = (product + c + i128::from(self.plus_one)) >> self.shift;
        let (least, most) = match signed {
            true => (i32::MIN.into(), i32::MAX.into()),
            false => (0, u32::MAX.into()),
        };
        match self.sat {
            true => scaled.clamp(least, most) as u32,
            false => scaled as u32,
        }
    }
}
