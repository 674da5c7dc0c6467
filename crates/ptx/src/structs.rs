//! Loads of structs: padding that nobody writes, and bit fields put into words nobody wrote yet.
//!
//! A compiler copies a struct word by word, padding included, and sets a bit field by loading its
//! word, replacing some bits and storing it back. Neither reads what nobody wrote as far as the
//! source is concerned. Both are found by where a loaded value goes; whatever else is done with
//! one reads it.

use std::collections::{HashMap, HashSet};

use super::intent::{Copies, Spot, destinations, registers};
use crate::ast::{Body, Instruction, Operand, Reg};

/// What a load may do with bytes that nobody wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unwritten {
    /// They are a hazard.
    #[default]
    Hazard,
    /// It only copies: bytes beside written ones of its element are a struct's padding.
    Padding,
    /// A bit field is put into its word, which goes back to where it was.
    BitField,
}

/// Indices of the loads of shared or local memory that may meet unwritten bytes.
pub fn unwritten(body: &Body<'_>) -> HashMap<usize, Unwritten> {
    let code = &body.instructions;
    let load = |i: &Instruction<'_>| i.opcode == "ld" && is_near(i);
    let mut found = HashMap::new();
    if !code.iter().any(load) {
        return found;
    }
    let mut uses: HashMap<Reg, Vec<usize>> = HashMap::new();
    for (at, i) in code.iter().enumerate() {
        for r in reads(i) {
            uses.entry(r).or_default().push(at);
        }
    }
    let copies = Copies::of(code);
    let spot = |at: usize, n: usize| code[at].operands.get(n).and_then(|o| copies.spot(o));
    // Loads whose values go to global memory and nowhere else.
    let mut outward = Vec::new();
    for (at, i) in code.iter().enumerate().filter(|(_, i)| load(i)) {
        let stores = |through: Through| stores_only(code, &uses, destinations(i), through);
        if let Some(stores) = stores(is_move) {
            if stores.iter().all(|s| is_near(&code[*s])) {
                found.insert(at, Unwritten::Padding);
            } else if let Some(from) = spot(at, 1) {
                outward.push((at, from));
            }
        } else if let Some(stores) = stores(keeps_bits)
            && let here @ Some(_) = spot(at, 1)
            && stores.iter().all(|s| spot(*s, 0) == here)
        {
            found.insert(at, Unwritten::BitField);
        }
    }
    // One word alone is no struct: it is a number of which a part was not written.
    for (at, from) in &outward {
        let beside = |(_, other): &&(usize, Spot<'_>)| {
            from.distance(other).is_some_and(|d| (1..=16).contains(&d))
        };
        if outward.iter().any(|other| beside(&other)) {
            found.insert(*at, Unwritten::Padding);
        }
    }
    found
}

/// Which instructions a value may pass: the instruction, the register, and whether that is as it
/// was loaded.
type Through = fn(&Instruction<'_>, Reg, bool) -> bool;

/// Whether an access is to shared or local memory.
fn is_near(i: &Instruction<'_>) -> bool {
    let near = |m: &&str| matches!(*m, "shared" | "shared::cta" | "local");
    i.modifiers.iter().any(near)
}

/// Registers that an instruction reads.
fn reads(i: &Instruction<'_>) -> Vec<Reg> {
    let mut all = Vec::new();
    i.operands.iter().for_each(|o| registers(o, &mut all));
    for d in destinations(i) {
        if let Some(at) = all.iter().position(|r| *r == d) {
            all.remove(at);
        }
    }
    all.extend(i.guard.map(|(p, _)| p));
    all
}

/// The stores that values of these registers end in, if they end in nothing else.
fn stores_only(
    code: &[Instruction<'_>],
    uses: &HashMap<Reg, Vec<usize>>,
    from: Vec<Reg>,
    through: Through,
) -> Option<Vec<usize>> {
    let mut seen: HashSet<Reg> = from.iter().copied().collect();
    let loaded = from.clone();
    let mut next = from;
    let mut stores = Vec::new();
    while let Some(r) = next.pop() {
        for &at in uses.get(&r).map(Vec::as_slice).unwrap_or_default() {
            let i = &code[at];
            if i.guard.is_some_and(|(p, _)| p == r) {
                return None;
            }
            if i.opcode == "st" {
                let mut address = Vec::new();
                i.operands
                    .iter()
                    .take(1)
                    .for_each(|o| registers(o, &mut address));
                if address.contains(&r) {
                    return None;
                }
                stores.push(at);
            } else if through(i, r, loaded.contains(&r)) {
                next.extend(destinations(i).into_iter().filter(|d| seen.insert(*d)));
            } else {
                return None;
            }
        }
    }
    (!stores.is_empty()).then_some(stores)
}

fn is_move(i: &Instruction<'_>, _: Reg, _: bool) -> bool {
    i.opcode == "mov"
}

/// Whether an instruction keeps some bits of a register and sets others.
fn keeps_bits(i: &Instruction<'_>, r: Reg, loaded: bool) -> bool {
    let constant = |n: usize| matches!(i.operands.get(n), Some(Operand::Int(_)));
    match i.opcode {
        "and" => constant(1) || constant(2),
        "bfi" => {
            i.operands.get(2) == Some(&Operand::Reg(r))
                && i.operands.get(1) != Some(&Operand::Reg(r))
        }
        // What was masked before joins what is set; as it was loaded it would be read.
        "or" | "mov" => !loaded,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
