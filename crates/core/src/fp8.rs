//! The two 8-bit floating-point formats of the OCP specification (OFP8, 2023).
/// An 8-bit format.
#[derive(Debug)]
pub(super) struct Fp8 {
    /// False for E4M3: its largest exponent encodes numbers, except all ones, which is NaN.
    has_infinity: bool,
    /// The value of each code.
    values: [f64; 256],
}

/// 4 exponent bits, 3 mantissa bits: largest value 448.
pub(super) static E4M3: Fp8 = Fp8::new(4, 7, false);

/// 5 exponent bits, 2 mantissa bits: largest finite value 57344.
pub(super) static E5M2: Fp8 = Fp8::new(5, 15, true);

impl Fp8 {
    #[expect(
        clippy::indexing_slicing,
        reason = "a code is a byte, and the table has a value for each of the 256"
    )]
    const fn new(exponent_bits: u32, bias: i32, has_infinity: bool) -> Self {
        let mut values = [0.0; 256];
        let mut code = 0;
        while code < values.len() {
            values[code] = value(code as u32, exponent_bits, bias, has_infinity);
            code += 1;
        }
        Self {
            has_infinity,
            values,
        }
    }

    /// Returns the value of a code.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "a code is a byte, and the table has a value for each of the 256"
    )]
    pub(super) fn decode(&self, code: u8) -> f64 {
        self.values[usize::from(code)]
    }

    /// Returns the code nearest to `value`, ties to even, saturating to the largest finite value
    /// (the `satfinite` conversion of the PTX ISA); NaN stays NaN.
    #[must_use]
    pub(super) fn encode(&self, value: f64) -> u8 {
        if value.is_nan() {
            return 0x7f;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let magnitude = value.abs();
        // The next code is infinity in E5M2 and NaN in E4M3.
        let largest = if self.has_infinity { 0x7b } else { 0x7e };
        // Codes are ordered like their values: find the last one not above the magnitude.
        let mut low = 0u8;
        let mut high = largest;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.decode(middle) <= magnitude {
                low = middle
            } else {
                high = middle - 1
            }
        }
        if low == largest {
            return sign | largest;
        }
        let (below, above) = (self.decode(low), self.decode(low + 1));
        let nearer_up = magnitude - below > above - magnitude;
        let tie = magnitude - below == above - magnitude;
        sign | if nearer_up || (tie && low & 1 == 1) {
            low + 1
        } else {
            low
        }
    }
}

/// Returns the value of a code of a format.
const fn value(code: u32, exponent_bits: u32, bias: i32, has_infinity: bool) -> f64 {
    let mantissa_bits = 7 - exponent_bits;
    let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
    let exponent = (code & 0x7f) >> mantissa_bits;
    let mantissa = (code & ((1 << mantissa_bits) - 1)) as f64;
    let top = (1 << exponent_bits) - 1;
    if has_infinity && exponent == top {
        return if mantissa == 0.0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if !has_infinity && code & 0x7f == 0x7f {
        return f64::NAN;
    }
    // Subnormals have the smallest exponent and no leading one.
    let (one, power) = if exponent == 0 {
        (0.0, 1 - bias)
    } else {
        (1.0, exponent as i32 - bias)
    };
    sign * (one + mantissa / (1 << mantissa_bits) as f64) * power_of_two(power)
}

/// Returns 2 to a small power.
const fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((1023 + power) as u64) << 52)
}

#[cfg(test)]
mod tests;
