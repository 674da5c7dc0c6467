//! Definite assignment: registers that a thread may read before it has written them.
//!
//! Backward liveness finds the registers that are live at the function's entry. A forward analysis over
//! the same basic blocks then propagates them: a value computed from a register that may be undefined may
//! be undefined as well. The result names the instructions that must be watched at run time, because only
//! the control flow of a launch decides. Guarded definitions count as partial.
//!
//! A value that may be undefined and is stored to shared memory comes back by a load: then the values of such
//! loads are watched as well. So are those of loads of unwritten bytes that a predicate may discard.
#![expect(
    clippy::indexing_slicing,
    reason = "registers and instructions are numbered by the parser of the same function"
)]

use std::collections::{HashMap, HashSet};

use super::ast::{Body, Instruction, Operand, Reg};
use super::intent::registers;
use super::regalloc::{Block, Effects, Set, blocks, live};

/// Opcodes whose first operand is read, not set.
const WITHOUT_DESTINATION: &[&str] = &[
    "st",
    "sust",
    "red",
    "bra",
    "brx",
    "bar",
    "barrier",
    "call",
    "ret",
    "exit",
    "cp",
    "nanosleep",
    "membar",
    "fence",
    "trap",
    "prefetch",
    "prefetchu",
    "discard",
    "applypriority",
    "stmatrix",
    "setmaxnreg",
    "stackrestore",
    "pmevent",
];

/// Opcodes whose result does not depend on the definedness of their sources: memory decides it.
const FROM_MEMORY: &[&str] = &[
    "ld",
    "ldu",
    "atom",
    "ldmatrix",
    "activemask",
    "elect",
    "mbarrier",
    "tcgen05",
];

/// Registers of a function to watch at run time, and the instructions that read or write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaybeUndefined {
    /// Number of each watched register, from 0; those that are undefined at the function's entry come
    /// first.
    pub registers: HashMap<Reg, u32>,
    /// Number of those that come first.
    pub at_entry: u32,
    /// Indices of the instructions that read or write a watched register.
    pub instructions: HashSet<usize>,
}

/// Returns the registers that an instruction sets: those of its first operand, if that is a
/// destination.
pub fn destinations(i: &Instruction<'_>) -> Vec<Reg> {
    let mut all = Vec::new();
    let reduces = i.opcode.starts_with("bar") && i.modifiers.contains(&"red");
    match i.operands.first() {
        Some(Operand::Address(..)) | None => {}
        Some(_) if WITHOUT_DESTINATION.contains(&i.opcode) && !reduces => {}
        // The register of the others has an address in tensor memory.
        Some(_) if i.opcode == "tcgen05" && !i.modifiers.contains(&"ld") => {}
        Some(first) => registers(first, &mut all),
    }
    all
}

/// Returns the number that stands for the carry flag (`CC.CF`) among the registers of a function.
pub fn carry_flag(body: &Body<'_>) -> Reg {
    Reg(body.registers.len() as u32)
}

/// Reports whether an instruction adds the carry flag.
pub fn reads_carry(i: &Instruction<'_>) -> bool {
    matches!(i.opcode, "addc" | "subc" | "madc")
}

/// Reports whether an instruction sets the carry flag.
pub fn sets_carry(i: &Instruction<'_>) -> bool {
    matches!(i.opcode, "add" | "sub" | "mad" | "addc" | "subc" | "madc")
        && i.modifiers.contains(&"cc")
}

/// Returns the operands that an instruction reads, except its guard.
pub fn sources<'i, 'a>(i: &'i Instruction<'a>) -> &'i [Operand<'a>] {
    let skipped = usize::from(!destinations(i).is_empty() || sinks_result(i));
    i.operands.get(skipped..).unwrap_or_default()
}

fn sinks_result(i: &Instruction<'_>) -> bool {
    matches!(i.operands.first(), Some(Operand::Sink))
}

/// Finds the registers that a thread may read before it has written them, those of deferred loads (by index),
/// and the values computed from them.
pub fn find_undefined(body: &Body<'_>, deferred: HashSet<usize>) -> MaybeUndefined {
    let carry = carry_flag(body);
    let effects = body.instructions.iter().map(|i| effects(i, carry));
    let effects: Vec<Effects> = effects.collect();
    let Some(blocks) = blocks(body, &effects).map(live) else {
        return MaybeUndefined::default();
    };
    let Some(first) = blocks.first() else {
        return MaybeUndefined::default();
    };
    let seeds = first.live_in();
    if seeds.members().next().is_none() && deferred.is_empty() {
        return MaybeUndefined::default();
    }
    let mut found = MaybeUndefined::default();
    for (number, register) in (0u32..).zip(seeds.members()) {
        found.registers.insert(Reg(register as u32), number);
        found.at_entry = number + 1;
    }
    let entry = found.clone();
    let mut flow = Flow {
        body,
        effects: &effects,
        blocks: &blocks,
        deferred,
        shared: false,
    };
    let found = flow.find(seeds.clone(), found);
    if !stores_undefined(body, &found) {
        return found;
    }
    // A thread may load from shared memory what another one stored there.
    flow.shared = true;
    flow.find(seeds, entry)
}

/// Reports whether a value that may be undefined is stored to shared memory.
fn stores_undefined(body: &Body<'_>, found: &MaybeUndefined) -> bool {
    let stored = |i: &Instruction<'_>| {
        let mut named = Vec::new();
        let values = i.operands.get(1..).unwrap_or_default();
        values.iter().for_each(|o| registers(o, &mut named));
        named.iter().any(|reg| found.registers.contains_key(reg))
    };
    let code = body.instructions.iter();
    code.into_iter()
        .any(|i| i.opcode == "st" && may_be_shared(i) && stored(i))
}

/// Reports whether an access may be to shared memory.
pub fn may_be_shared(i: &Instruction<'_>) -> bool {
    let elsewhere = |m: &&str| matches!(*m, "global" | "local" | "param" | "const");
    !i.modifiers.iter().any(elsewhere)
}

/// Flow of values that may be undefined through a function.
struct Flow<'f, 'a> {
    body: &'f Body<'a>,
    effects: &'f [Effects],
    blocks: &'f [Block],
    /// Loads that may return such values.
    deferred: HashSet<usize>,
    /// Loads of shared memory may return such values.
    shared: bool,
}

/// Returns the registers that an instruction sets, the carry flag included.
fn destinations_with(i: &Instruction<'_>, carry: Reg) -> Vec<Reg> {
    let mut all = destinations(i);
    all.extend(sets_carry(i).then_some(carry));
    all
}

/// Returns the registers that an instruction needs, and those that it sets in any case.
fn effects(i: &Instruction<'_>, carry: Reg) -> Effects {
    let mut needs = Vec::new();
    sources(i).iter().for_each(|o| registers(o, &mut needs));
    needs.extend(reads_carry(i).then_some(carry));
    needs.extend(i.guard.map(|(reg, _)| reg));
    let sets = match i.guard {
        None => destinations_with(i, carry),
        Some(_) => Vec::new(),
    };
    Effects { needs, sets }
}

impl Flow<'_, '_> {
    /// Adds the registers and instructions that such values reach.
    fn find(&self, seeds: Set, found: MaybeUndefined) -> MaybeUndefined {
        let entering = self.propagate(seeds);
        self.collect(entering, found)
    }

    /// Returns the registers that may be undefined at the beginning of each block.
    fn propagate(&self, seeds: Set) -> Vec<Set> {
        let Flow { body, blocks, .. } = self;
        let numbers: HashMap<usize, usize> = blocks
            .iter()
            .enumerate()
            .map(|(number, block)| (block.range.start, number))
            .collect();
        let mut entering = vec![Set::new(body.registers.len() + 1); blocks.len()];
        entering[0] = seeds;
        let mut reached = HashSet::from([0]);
        let mut open: Vec<usize> = vec![0];
        while let Some(at) = open.pop() {
            let mut now = entering[at].clone();
            for index in blocks[at].range.clone() {
                self.step(index, &mut now);
            }
            let next = blocks[at].next.iter().filter_map(|s| numbers.get(s));
            for next in next {
                let changed = entering[*next].add_all(&now, None);
                // A block may make such values where none reaches it.
                let makes = self.shared || !self.deferred.is_empty();
                let first = makes && reached.insert(*next);
                if (changed || first) && !open.contains(next) {
                    open.push(*next);
                }
            }
        }
        entering
    }

    /// Applies one instruction to the set of registers that may be undefined.
    fn step(&self, at: usize, undefined: &mut Set) {
        let i = &self.body.instructions[at];
        let guard = i.guard.is_some_and(|(reg, _)| undefined.has(reg));
        let loaded =
            self.deferred.contains(&at) || self.shared && i.opcode == "ld" && may_be_shared(i);
        let needs = self.effects[at].needs.iter();
        let computed =
            !FROM_MEMORY.contains(&i.opcode) && needs.into_iter().any(|r| undefined.has(*r));
        for reg in destinations_with(i, carry_flag(self.body)) {
            if guard || computed || loaded {
                undefined.add(reg);
            // With a guard the old value may stay.
            } else if i.guard.is_none() {
                undefined.remove(reg);
            }
        }
    }

    fn collect(&self, entering: Vec<Set>, mut found: MaybeUndefined) -> MaybeUndefined {
        let Flow { body, blocks, .. } = self;
        for (block, mut now) in blocks.iter().zip(entering) {
            for at in block.range.clone() {
                let needs = self.effects[at].needs.iter();
                for reg in needs.filter(|reg| now.has(**reg)) {
                    let next = found.registers.len() as u32;
                    found.registers.entry(*reg).or_insert(next);
                    found.instructions.insert(at);
                }
                self.step(at, &mut now);
            }
        }
        for (at, i) in body.instructions.iter().enumerate() {
            if destinations_with(i, carry_flag(body))
                .iter()
                .any(|reg| found.registers.contains_key(reg))
            {
                found.instructions.insert(at);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
