//! Bits of registers that can change what a function does.
//!
//! A struct with padding is loaded word by word, and the padding is dropped by a conversion or a mask. Backward
//! from stores, comparisons and addresses, each instruction says which bits of its operands its results need.

use super::ast::{Body, Instruction, Operand, Reg, Type};
use super::definedness::sources;
use super::intent::registers;

/// Used bits of each register of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedBits(Vec<u64>);

impl UsedBits {
    /// Finds the used bits of a function's registers, independent of its control flow.
    pub fn find(body: &Body<'_>) -> UsedBits {
        let mut used = UsedBits(vec![0; body.registers.len()]);
        let mut needs = Vec::new();
        loop {
            let mut changed = false;
            // Needs go from results to sources, so that one pass is enough for code without loops.
            for i in body.instructions.iter().rev() {
                needs.clear();
                used.needs_of(i, &mut needs);
                for (reg, bits) in &needs {
                    if let Some(known) = used.0.get_mut(reg.0 as usize) {
                        changed |= *known | bits != *known;
                        *known |= bits;
                    }
                }
            }
            if !changed {
                return used;
            }
        }
    }

    /// Returns the used bytes of an element of a load, bit 0 for the first; all of them for a register that
    /// nothing uses.
    pub fn bytes_of(&self, reg: Reg, width: u32, signed: bool) -> u32 {
        let bits = self.register_bits(reg);
        let every = u32::MAX >> (32 - width.clamp(1, 32));
        if bits == 0 || width > 8 {
            return every;
        }
        let bytes = (0..width).filter(|byte| bits >> (8 * byte) & 0xff != 0);
        let low = bytes.fold(0, |all, byte| all | 1 << byte);
        // Bits above the element are copies of its sign.
        let extended = signed && width < 8 && bits >> (8 * width) != 0;
        low | u32::from(extended) << (width - 1)
    }

    fn register_bits(&self, reg: Reg) -> u64 {
        self.0.get(reg.0 as usize).copied().unwrap_or(u64::MAX)
    }

    fn result_bits(&self, operand: &Operand<'_>) -> u64 {
        match operand {
            Operand::Reg(reg) => self.register_bits(*reg),
            Operand::Pair(first, _) => self.result_bits(first),
            Operand::Sink => 0,
            _ => u64::MAX,
        }
    }

    /// Adds the bits of registers that an instruction needs.
    fn needs_of(&self, i: &Instruction<'_>, out: &mut Vec<(Reg, u64)>) {
        out.extend(i.guard.map(|(reg, _)| (reg, u64::MAX)));
        if self.part_needs(i, out).is_some() {
            return;
        }
        let read = sources(i).iter();
        read.for_each(|operand| need(operand, u64::MAX, out));
    }

    /// Adds them for an instruction of which some bits suffice; `None` for others.
    fn part_needs(&self, i: &Instruction<'_>, out: &mut Vec<(Reg, u64)>) -> Option<()> {
        let has = |word: &str| i.modifiers.contains(&word);
        let ty = Type::parse(i.modifiers.last()?)?;
        let every = low_bits(8 * ty.bytes());
        let result = self.result_bits(i.operands.first()?) & every;
        match (i.opcode, i.operands.as_slice()) {
            ("mov", [to, Operand::Vector(parts)]) => {
                let width = 8 * ty.bytes() / parts.len().max(1) as u32;
                for (part, at) in parts.iter().zip((0..).step_by(width.max(1) as usize)) {
                    let bits = self.result_bits(to).checked_shr(at).unwrap_or(0);
                    need(part, bits & low_bits(width), out);
                }
            }
            ("mov", [Operand::Vector(parts), from]) => {
                let width = 8 * ty.bytes() / parts.len().max(1) as u32;
                let parts = parts.iter().zip((0..).step_by(width.max(1) as usize));
                let bits = parts.map(|(part, at)| {
                    let bits = self.result_bits(part) & low_bits(width);
                    bits.checked_shl(at).unwrap_or(0)
                });
                need(from, bits.fold(0, |all, bits| all | bits), out);
            }
            ("mov" | "not", [_, from]) if ty != Type::Pred => need(from, result, out),
            ("selp", [_, a, b, condition]) => {
                [a, b].into_iter().for_each(|o| need(o, result, out));
                need(condition, u64::MAX, out);
            }
            ("and" | "or" | "xor" | "lop3", [_, a, b, others @ ..]) if ty != Type::Pred => {
                let kept = |other: &Operand<'_>| match (i.opcode, other) {
                    ("and", Operand::Int(mask)) => result & mask,
                    ("or", Operand::Int(mask)) => result & !mask,
                    _ => result,
                };
                need(a, kept(b), out);
                need(b, kept(a), out);
                others.iter().for_each(|o| need(o, result, out));
            }
            ("shl", [_, a, Operand::Int(n @ 0..64)]) => need(a, result >> n, out),
            ("shr", [_, a, Operand::Int(n @ 0..64)]) => {
                let sign = (every ^ every >> 1) * u64::from(ty.signed() && result != 0);
                need(a, result << n & every | sign, out);
            }
            ("bfe", [_, a, Operand::Int(at @ 0..64), Operand::Int(n @ 1..=64)]) => {
                let field = low_bits(*n as u32) << at;
                need(a, if result == 0 { 0 } else { field }, out);
            }
            ("cvt", [to, from]) if !has("sat") => self.conversion(i, to, from, out)?,
            ("prmt", [_, a, b, Operand::Int(selector)]) if i.modifiers.len() == 1 => {
                permutation([a, b], *selector, result, out);
            }
            ("add" | "sub", [_, a, b]) if is_integer(ty) && i.modifiers.len() == 1 => {
                [a, b]
                    .into_iter()
                    .for_each(|o| need(o, up_to_highest(result), out));
            }
            ("mul" | "mad", [_, operands @ ..])
                if is_integer(ty) && i.modifiers.first() == Some(&"lo") =>
            {
                operands
                    .iter()
                    .for_each(|o| need(o, up_to_highest(result), out));
            }
            ("st", [address, value]) => {
                need(address, u64::MAX, out);
                need(value, every, out);
            }
            ("shfl", [_, value, others @ ..]) => {
                need(value, result, out);
                others.iter().for_each(|o| need(o, u64::MAX, out));
            }
            _ => return None,
        }
        Some(())
    }

    /// Adds the needs of a conversion between integers; `None` for another one.
    fn conversion(
        &self,
        i: &Instruction<'_>,
        to: &Operand<'_>,
        from: &Operand<'_>,
        out: &mut Vec<(Reg, u64)>,
    ) -> Option<()> {
        let [into, source] = i.modifiers.as_slice() else {
            return None;
        };
        let (into, source) = (Type::parse(into)?, Type::parse(source)?);
        if !is_integer(into) || !is_integer(source) {
            return None;
        }
        let result = self.result_bits(to);
        // A result is extended to the width of its register by its own type.
        let kept = source.bytes().min(into.bytes()) * 8;
        let narrow = if source.bytes() < into.bytes() {
            source
        } else {
            into
        };
        let extended = result & !low_bits(kept) != 0 && narrow.signed();
        let sign = u64::from(extended) << (kept - 1);
        need(from, result & low_bits(kept) | sign, out);
        Some(())
    }
}

/// Adds the needs of a byte permutation in its default mode.
fn permutation(from: [&Operand<'_>; 2], selector: u64, result: u64, out: &mut Vec<(Reg, u64)>) {
    for byte in 0..4 {
        let (bits, choice) = (result >> (8 * byte) & 0xff, selector >> (4 * byte) & 15);
        // The highest bit of a choice replicates the sign of the chosen byte.
        let bits = match (bits, choice & 8) {
            (0, _) | (_, 0) => bits,
            _ => 0x80,
        };
        let [low, high] = from;
        let source = if choice & 4 == 0 { low } else { high };
        need(source, bits << (8 * (choice & 3)), out);
    }
}

fn need(operand: &Operand<'_>, bits: u64, out: &mut Vec<(Reg, u64)>) {
    let mut named = Vec::new();
    registers(operand, &mut named);
    out.extend(named.into_iter().map(|reg| (reg, bits)));
}

fn low_bits(count: u32) -> u64 {
    match count {
        0 => 0,
        1..64 => (1 << count) - 1,
        _ => u64::MAX,
    }
}

/// Returns the bits up to the highest one of a sum or product: carries go upwards only.
fn up_to_highest(bits: u64) -> u64 {
    low_bits(64 - bits.leading_zeros())
}

fn is_integer(ty: Type) -> bool {
    use Type::{S8, S16, S32, S64, U8, U16, U32, U64};
    matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64)
}

#[cfg(test)]
mod tests;
