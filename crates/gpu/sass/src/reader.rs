//! Reader of the fields of an encoded word.

use crate::instruction::{Register, ZERO};
use crate::table::{Bits, Choice};

/// Field reader of a word that records the bits read.
pub(crate) struct Reader {
    pub(crate) word: u128,
    pub(crate) seen: u128,
    /// Compute capability times ten.
    pub(crate) sm: u32,
    /// Form of the operands.
    pub(crate) form: u8,
}

impl Reader {
    /// Reads a field of at most 64 bits.
    pub(crate) fn get(&mut self, at: u8, length: u8) -> u64 {
        let mask = (1u128 << length.min(64)) - 1;
        self.seen |= mask << at;
        (self.word >> at & mask) as u64
    }

    /// Reads one bit.
    pub(crate) fn bit(&mut self, at: u8) -> bool {
        self.get(at, 1) == 1
    }

    /// Reads a field of several runs.
    pub(crate) fn bits(&mut self, bits: &Bits) -> u64 {
        let mut shift = 0;
        let mut value = 0;
        for (at, length) in &bits.0 {
            value |= self.get(*at, *length) << shift;
            shift += u32::from(*length);
        }
        value
    }

    /// Reads a field as a two's complement number.
    pub(crate) fn signed(&mut self, at: u8, length: u8) -> i64 {
        extend(self.get(at, length), length)
    }

    /// Reads a register field.
    pub(crate) fn register(&mut self, at: u8, uniform: bool) -> Register {
        // Until compute capability 10.0 there are 63 uniform registers, with numbers of six bits.
        let index = if uniform && self.sm < 100 {
            match self.get(at, 6) as u8 {
                63 => ZERO,
                index => index,
            }
        } else {
            self.get(at, 8) as u8
        };
        let reuse = match at {
            24 if !uniform => self.bit(122),
            32 if !uniform => self.bit(123),
            // The reuse bits belong to the sources, and forms 2, 3 and 7 swap two of them.
            64 if !uniform && matches!(self.form, 2 | 3 | 7) => self.bit(123),
            64 if !uniform => self.bit(124),
            // `nvdisasm` does not print that of a fourth source.
            40 if !uniform => {
                self.bit(125);
                false
            }
            _ => false,
        };
        Register {
            reuse,
            ..Register::new(index, uniform)
        }
    }

    /// Returns true if every unread bit has a neutral value: zero, or in a register or predicate
    /// field the value for zero or true.
    pub(crate) fn complete(&self) -> bool {
        const CONTROL: u128 = 0x1_ffff << 105;
        // Every line reads the low bits: opcode, form and guard. The reuse bits go with the
        // registers.
        let seen = self.seen | CONTROL | 1 << 91 | 0xffff;
        let mut rest = self.word & !seen;
        for (at, length) in [
            (16, 8),
            (24, 8),
            (32, 8),
            (64, 8),
            (68, 4),
            (68, 3),
            (77, 4),
            (77, 3),
            (81, 3),
            (84, 3),
            (87, 4),
            (87, 3),
        ] {
            let mask = ((1u128 << length) - 1) << at;
            if seen & mask == 0 && rest & mask == mask {
                rest &= !mask;
            }
        }
        // A uniform register field of six bits.
        for at in [16, 24, 32, 64] {
            let mask = 0x3fu128 << at;
            if self.sm < 100 && seen & mask == 0 && rest & (0xff << at) == mask {
                rest &= !mask;
            }
        }
        rest == 0
    }
}

/// Extends the sign of a number of `length` bits.
pub(crate) fn extend(value: u64, length: u8) -> i64 {
    let shift = 64 - u32::from(length.clamp(1, 64));
    (value << shift) as i64 >> shift
}

pub(crate) fn choose_text(reader: &mut Reader, choice: &Choice) -> Option<&'static str> {
    let value = usize::try_from(reader.bits(&choice.bits)).ok()?;
    choice.texts.get(value).copied().flatten()
}
