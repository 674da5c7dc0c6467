//! Loads of structs: unwritten padding, and bit fields in partly unwritten words.
//!
//! A compiler copies a struct word by word, padding included. It sets a bit field by loading its
//! word, replacing some bits and storing it back. In terms of the source, neither reads unwritten
//! bytes. A variable that a called function sets on success is loaded before the test of its result, and
//! the right side of `a && b` before that of `a`.
//! These are recognised by the uses of a loaded value; any other use is a read.

use std::collections::{HashMap, HashSet};

use super::discards::Discards;
use super::intent::{Copies, MemoryAddress, destinations, registers};
use crate::ast::{Body, Instruction, Operand, Reg};

/// Treatment of unwritten bytes in a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unwritten {
    /// Unwritten bytes are a hazard.
    #[default]
    Hazard,
    /// The value is only copied: unwritten bytes next to written ones of an element are padding.
    Padding,
    /// The value returns to its word with a bit field replaced.
    BitField,
    /// The value is only computed with, and predicates decide whether its results count: the source reads it
    /// under a condition that the compiler has moved after the load. Unwritten bytes are a hazard where such a
    /// result decides something.
    Deferred,
}

/// Returns the loads that may read unwritten bytes, by index: of shared or local memory, or of values that
/// predicates may discard.
pub fn unwritten(body: &Body<'_>) -> HashMap<usize, Unwritten> {
    let code = &body.instructions;
    let load = |i: &Instruction<'_>| matches!(i.opcode, "ld" | "ldu");
    let mut found = HashMap::new();
    if !code.iter().any(load) {
        return found;
    }
    let uses = uses_of(code);
    let discardable = Discards::find(code, &uses);
    let copies = Copies::from_code(code);
    let spot = |at: usize, n: usize| {
        code[at]
            .operands
            .get(n)
            .and_then(|o| copies.resolve_address(o))
    };
    // Loads whose values reach only global memory.
    let mut outward = Vec::new();
    for (at, i) in code.iter().enumerate().filter(|(_, i)| load(i)) {
        if !i.modifiers.contains(&"param") && discardable.hold_all(&destinations(i)) {
            found.insert(at, Unwritten::Deferred);
            continue;
        }
        if !is_near(i) {
            continue;
        }
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
    // A single word is not a struct but a number with an unwritten part.
    for (at, from) in &outward {
        let beside = |(_, other): &&(usize, MemoryAddress<'_>)| {
            from.distance(other).is_some_and(|d| (1..=16).contains(&d))
        };
        if outward.iter().any(|other| beside(&other)) {
            found.insert(*at, Unwritten::Padding);
        }
    }
    found
}

/// Returns the instructions that read each register.
fn uses_of(code: &[Instruction<'_>]) -> HashMap<Reg, Vec<usize>> {
    let mut uses: HashMap<Reg, Vec<usize>> = HashMap::new();
    for (at, i) in code.iter().enumerate() {
        for r in reads(i) {
            uses.entry(r).or_default().push(at);
        }
    }
    uses
}

/// Predicate for instructions that a value may pass: instruction, register, and whether the value
/// is still as loaded.
type Through = fn(&Instruction<'_>, Reg, bool) -> bool;

/// Reports whether an access is to shared or local memory.
fn is_near(i: &Instruction<'_>) -> bool {
    let near = |m: &&str| matches!(*m, "shared" | "shared::cta" | "local");
    i.modifiers.iter().any(near)
}

/// Returns the registers that an instruction reads.
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

/// Returns the stores that the values of these registers reach; `None` if they have any other use.
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
            // A guard decides control flow, which is a use of the value.
            if i.guard.is_some_and(|(p, _)| p == r) {
                return None;
            }
            if i.opcode == "st" {
                let mut address = Vec::new();
                i.operands
                    .iter()
                    .take(1)
                    .for_each(|o| registers(o, &mut address));
                // So is an address.
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

/// Reports whether an instruction keeps some bits of a register and sets others.
fn keeps_bits(i: &Instruction<'_>, r: Reg, loaded: bool) -> bool {
    let constant = |n: usize| matches!(i.operands.get(n), Some(Operand::Int(_)));
    match i.opcode {
        "and" => constant(1) || constant(2),
        "bfi" => {
            i.operands.get(2) == Some(&Operand::Reg(r))
                && i.operands.get(1) != Some(&Operand::Reg(r))
        }
        // A masked value may join the new bits; an unmasked one would be read.
        "or" | "mov" => !loaded,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
