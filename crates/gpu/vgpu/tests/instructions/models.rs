//! Arithmetic models in plain doubles and wide integers.

/// The canonical NaN of `.f32`.
pub(crate) const NAN32: u32 = 0x7fff_ffff;

/// Returns the single in the low bits.
pub(crate) fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Returns the double with these bits.
pub(crate) fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// Flushes a subnormal single to a zero of its sign.
pub(crate) fn flush(x: f32) -> f32 {
    if x.is_subnormal() {
        0.0_f32.copysign(x)
    } else {
        x
    }
}

/// Rounds an exact double to single in the mode `rn`, `rz`, `rm` or `rp`.
pub(crate) fn to_single(exact: f64, mode: &str) -> f32 {
    let near = exact as f32;
    let wide = f64::from(near);
    match mode {
        "rz" if wide.abs() > exact.abs() => f32::from_bits(near.to_bits() - 1),
        "rm" if wide > exact => near.next_down(),
        "rp" if wide < exact => near.next_up(),
        _ => near,
    }
}

/// Returns the bits of a single result: NaN canonical, then `.ftz`, then `.sat`.
pub(crate) fn finish(x: f32, ftz: bool, sat: bool) -> u64 {
    let x = if ftz { flush(x) } else { x };
    let x = match (sat, x) {
        (true, x) if x.is_nan() => 0.0,
        (true, x) => x.clamp(0.0, 1.0) + 0.0,
        _ => x,
    };
    if x.is_nan() {
        NAN32.into()
    } else {
        x.to_bits().into()
    }
}

/// Returns single operands as doubles, flushed with `.ftz`.
pub(crate) fn operands(x: &[u64], ftz: bool) -> Vec<f64> {
    x.iter()
        .map(|&b| if ftz { flush(f(b)) } else { f(b) }.into())
        .collect()
}

/// Returns `a + b` in double precision and its rounding error; the error is NaN next to infinities.
pub(crate) fn sum_error(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let part = s - a;
    (s, (a - (s - part)) + (b - part))
}

/// A 16-bit format: fraction bits and smallest normal exponent.
#[derive(Clone, Copy)]
pub(crate) struct Half {
    /// Fraction bits.
    pub(crate) fraction: i32,
    /// Exponent of the smallest normal number.
    pub(crate) smallest: i32,
    /// PTX name.
    pub(crate) name: &'static str,
}

/// IEEE half.
pub(crate) const F16: Half = Half {
    fraction: 10,
    smallest: -14,
    name: "f16",
};
/// bfloat16.
pub(crate) const BF16: Half = Half {
    fraction: 7,
    smallest: -126,
    name: "bf16",
};

impl Half {
    /// Returns the code of infinity.
    pub(crate) fn infinity(self) -> u16 {
        0x7fff >> self.fraction << self.fraction
    }

    /// Returns the value of a code.
    pub(crate) fn value(self, code: u64) -> f64 {
        let code = code as u16;
        let magnitude = code & 0x7fff;
        let sign = if code >> 15 == 1 { -1.0 } else { 1.0 };
        if magnitude > self.infinity() {
            return f64::NAN;
        }
        if magnitude == self.infinity() {
            return sign * f64::INFINITY;
        }
        let field = i32::from(magnitude >> self.fraction);
        let fraction = i32::from(magnitude) & ((1 << self.fraction) - 1);
        let hidden = if field > 0 { 1 << self.fraction } else { 0 };
        let exponent = field.max(1) - 1 + self.smallest - self.fraction;
        sign * f64::from(fraction + hidden) * 2.0_f64.powi(exponent)
    }

    /// Returns the code of a double rounded in the mode `rn`, `rz`, `rm` or `rp`.
    pub(crate) fn code(self, x: f64, mode: &str) -> u16 {
        if x.is_nan() {
            return 0x7fff;
        }
        let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
        if x.is_infinite() {
            return sign | self.infinity();
        }
        let binade = |x: f64| ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(self.smallest);
        let quantum = 2.0_f64.powi(binade(x) - self.fraction);
        let steps = x / quantum;
        let steps = match mode {
            "rz" => steps.trunc(),
            "rm" => steps.floor(),
            "rp" => steps.ceil(),
            _ => steps.round_ties_even(),
        };
        let value = (steps * quantum).abs();
        let largest = self.value(u64::from(self.infinity() - 1));
        if value > largest {
            let outward = match mode {
                "rz" => false,
                "rm" => sign != 0,
                "rp" => sign == 0,
                _ => true,
            };
            return sign
                | if outward {
                    self.infinity()
                } else {
                    self.infinity() - 1
                };
        }
        let e = binade(value);
        let units = (value / 2.0_f64.powi(e - self.fraction)) as u16;
        sign | (units + (((e - self.smallest) as u16) << self.fraction))
    }
}

/// Returns the value of an integer of `bits` bits.
pub(crate) fn number(x: u64, bits: u32, sign: bool) -> i128 {
    if sign {
        signed(x, bits)
    } else {
        unsigned(x, bits)
    }
}

/// Sign-extends the low `bits` bits.
pub(crate) fn signed(x: u64, bits: u32) -> i128 {
    i128::from((x << (64 - bits)) as i64 >> (64 - bits))
}

/// Zero-extends the low `bits` bits.
pub(crate) fn unsigned(x: u64, bits: u32) -> i128 {
    i128::from((x << (64 - bits)) >> (64 - bits))
}

/// Returns the low `bits` bits of an integer.
pub(crate) fn cut(x: i128, bits: u32) -> u64 {
    x as u64 & (u64::MAX >> (64 - bits))
}
