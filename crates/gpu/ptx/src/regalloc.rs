//! Register allocation: merges registers of a function whose values are never live at the same
//! time.
//!
//! PTX gives nearly every value a separate register: an unrolled kernel has thousands, of which one
//! or two hundred are live at a time. Live ranges come from backward data flow over basic blocks.
//! They are treated as intervals of the text and allocated by a linear scan (Poletto and Sarkar,
//! "Linear Scan Register Allocation", TOPLAS 1999). A register that a thread may read before it
//! writes it stays separate, so that it keeps its initial value.
#![expect(
    clippy::indexing_slicing,
    reason = "registers and instructions are numbered by the parser of the same function"
)]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::hash::Hash;
use std::ops::Range;

use super::ast::{Body, Instruction, Operand, Reg};
use super::intent::{labels, registers};

/// Opcodes whose only effect on the first operand is to overwrite it completely.
const SETTING: &[&str] = &[
    "abs", "add", "and", "bfe", "bfi", "bfind", "brev", "clz", "cnot", "copysign", "cos", "cvt",
    "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "ld", "ldmatrix", "ldu", "lg2", "lop3", "mad",
    "mad24", "max", "min", "mma", "mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp",
    "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shfl", "shl", "shr", "sin", "slct",
    "sqrt", "sub", "tanh", "wmma", "xor",
];

/// A set of registers, by number.
#[derive(Clone)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn new(registers: usize) -> Self {
        Self(vec![0; registers.div_ceil(64)])
    }

    pub(super) fn has(&self, reg: Reg) -> bool {
        self.0[reg.0 as usize / 64] >> (reg.0 % 64) & 1 == 1
    }

    pub(super) fn add(&mut self, reg: Reg) {
        self.0[reg.0 as usize / 64] |= 1 << (reg.0 % 64);
    }

    pub(super) fn remove(&mut self, reg: Reg) {
        self.0[reg.0 as usize / 64] &= !(1 << (reg.0 % 64));
    }

    /// Adds the members of `more` that are not in `but`, and reports whether the set grew.
    pub(super) fn add_all(&mut self, more: &Set, but: Option<&Set>) -> bool {
        let mut grown = false;
        for (at, word) in self.0.iter_mut().enumerate() {
            let new = more.0[at] & !but.map_or(0, |but| but.0[at]) & !*word;
            grown |= new != 0;
            *word |= new;
        }
        grown
    }

    pub(super) fn members(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(at, word)| {
            let set = (0..64).filter(move |bit| word >> bit & 1 == 1);
            set.map(move |bit| at * 64 + bit)
        })
    }
}

/// A basic block with the registers that it needs and sets, and its successors.
pub(super) struct Block {
    pub(super) range: Range<usize>,
    needs: Set,
    sets: Set,
    /// First instructions of possible successors.
    pub(super) next: Vec<usize>,
    live_out: Set,
}

impl Block {
    /// Registers live at its beginning.
    pub(super) fn live_in(&self) -> Set {
        let mut live_in = self.needs.clone();
        live_in.add_all(&self.live_out, Some(&self.sets));
        live_in
    }
}

/// Returns, for each register, the register that represents it: itself, or one that is never live
/// at the same time. Only registers of equal `kind` are merged, and those with `None` never.
pub fn merge_registers<K: Copy + Eq + Hash>(
    body: &Body<'_>,
    kind: impl Fn(Reg) -> Option<K>,
) -> Vec<Reg> {
    let mut places: Vec<Reg> = (0..body.registers.len() as u32).map(Reg).collect();
    let effects: Vec<Effects> = body.instructions.iter().map(effects).collect();
    let Some(blocks) = blocks(body, &effects).map(live) else {
        return places;
    };
    let mut free: HashMap<K, Vec<Reg>> = HashMap::new();
    let mut taken: BinaryHeap<Reverse<(usize, Reg)>> = BinaryHeap::new();
    for (Range { start, end }, reg) in intervals(body, &effects, &blocks) {
        while taken.peek().is_some_and(|Reverse((end, _))| *end <= start)
            && let Some(Reverse((_, place))) = taken.pop()
        {
            if let Some(kind) = kind(place) {
                free.entry(kind).or_default().push(place);
            }
        }
        let Some(kind) = kind(reg) else { continue };
        let place = free.get_mut(&kind).and_then(Vec::pop).unwrap_or(reg);
        places[reg.0 as usize] = place;
        taken.push(Reverse((end, place)));
    }
    places
}

/// Splits a body into basic blocks in textual order; `None` for a branch with unknown targets.
pub(super) fn blocks(body: &Body<'_>, effects: &[Effects]) -> Option<Vec<Block>> {
    let code = &body.instructions;
    let label = labels(body);
    let targets: Vec<Vec<usize>> = code
        .iter()
        .map(|i| targets(body, &label, i))
        .collect::<Option<_>>()?;
    let mut starts: BTreeSet<usize> = targets.iter().flatten().copied().collect();
    starts.insert(0);
    let parts = |at: &usize| ends(&code[*at]) || !targets[*at].is_empty();
    starts.extend((0..code.len()).filter(parts).map(|at| at + 1));
    starts.retain(|at| *at < code.len());
    let last = starts.iter().skip(1).copied().chain([code.len()]);
    let ranges = starts.iter().zip(last).map(|(start, end)| *start..end);
    Some(
        ranges
            .map(|range| block(body, effects, &targets, range))
            .collect(),
    )
}

fn block(
    body: &Body<'_>,
    effects: &[Effects],
    targets: &[Vec<usize>],
    range: Range<usize>,
) -> Block {
    let code = &body.instructions;
    // One more: the carry flag ([`super::definedness::carry_flag`]).
    let set = || Set::new(body.registers.len() + 1);
    let (mut needs, mut sets, live_out) = (set(), set(), set());
    for effect in &effects[range.clone()] {
        let Effects {
            needs: needed,
            sets: given,
        } = effect;
        let before = needed.iter().filter(|reg| !sets.has(**reg));
        before.for_each(|reg| needs.add(*reg));
        given.iter().for_each(|reg| sets.add(*reg));
    }
    let mut next = targets[range.end - 1].clone();
    let last = &code[range.end - 1];
    // A guarded branch may fall through.
    let leaves = ends(last) && last.guard.is_none();
    if !leaves && range.end < code.len() {
        next.push(range.end);
    }
    Block {
        range,
        needs,
        sets,
        next,
        live_out,
    }
}

/// Reports whether control may go elsewhere than to the next instruction.
fn ends(i: &Instruction<'_>) -> bool {
    matches!(i.opcode, "bra" | "brx" | "ret" | "exit")
}

/// Returns the possible targets of a branch; `None` if they are unknown.
fn targets(
    body: &Body<'_>,
    label: impl Fn(u32, &str) -> Option<usize>,
    i: &Instruction<'_>,
) -> Option<Vec<usize>> {
    match (i.opcode, &i.operands[..]) {
        ("bra", [Operand::Name(name, 0)]) => Some(vec![label(i.scope, name)?]),
        ("brx", [_, Operand::Name(table, 0)]) => {
            let (_, names) = body.tables.iter().find(|(name, _)| name == table)?;
            names.iter().map(|name| label(i.scope, name)).collect()
        }
        ("bra" | "brx", _) => None,
        _ => Some(Vec::new()),
    }
}

/// Effects of an instruction on registers.
pub(super) struct Effects {
    /// Registers that it may read.
    pub(super) needs: Vec<Reg>,
    /// Registers that it overwrites in any case.
    pub(super) sets: Vec<Reg>,
}

fn effects(i: &Instruction<'_>) -> Effects {
    let (mut needs, mut sets) = (Vec::new(), Vec::new());
    let mut operands = i.operands.iter();
    let address = matches!(i.operands.first(), Some(Operand::Address(..)));
    // A guarded instruction may leave its destination unchanged, so the old value stays live.
    if SETTING.contains(&i.opcode) && i.guard.is_none() && !address {
        operands
            .next()
            .into_iter()
            .for_each(|first| registers(first, &mut sets));
    }
    operands.for_each(|operand| registers(operand, &mut needs));
    needs.extend(i.guard.map(|(reg, _)| reg));
    Effects { needs, sets }
}

/// Computes the registers that are live after each block.
pub(super) fn live(mut blocks: Vec<Block>) -> Vec<Block> {
    let numbers: HashMap<usize, usize> = blocks
        .iter()
        .enumerate()
        .map(|(number, block)| (block.range.start, number))
        .collect();
    let mut grown = true;
    while grown {
        grown = false;
        // Liveness flows backwards: in reverse order most successors are up to date.
        for at in (0..blocks.len()).rev() {
            let mut live_out = std::mem::replace(&mut blocks[at].live_out, Set(Vec::new()));
            for next in blocks[at]
                .next
                .iter()
                .filter_map(|start| numbers.get(start))
            {
                // A block that is its own successor is borrowed here already.
                if *next != at {
                    let Block {
                        needs,
                        sets,
                        live_out: behind,
                        ..
                    } = &blocks[*next];
                    grown |= live_out.add_all(needs, None) | live_out.add_all(behind, Some(sets));
                } else {
                    // The rest of what is live at its beginning is in this set already.
                    grown |= live_out.add_all(&blocks[at].needs, None);
                }
            }
            blocks[at].live_out = live_out;
        }
    }
    blocks
}

/// Returns the live intervals of registers in the text (to after the last instruction), sorted by
/// start, without registers that a thread may read before it writes them.
fn intervals(body: &Body<'_>, effects: &[Effects], blocks: &[Block]) -> Vec<(Range<usize>, Reg)> {
    let mut all: Vec<Option<Range<usize>>> = vec![None; body.registers.len()];
    let mut needed = |reg: usize, at: usize| {
        let known = all[reg].get_or_insert(at..at + 1);
        *known = known.start.min(at)..known.end.max(at + 1);
    };
    let mut unset = Set::new(body.registers.len());
    for block in blocks {
        let Range { start, end } = block.range;
        let live_in = block.live_in();
        // A register may live through a block that does not name it, as in a loop.
        live_in.members().for_each(|reg| needed(reg, start));
        block
            .live_out
            .members()
            .for_each(|reg| needed(reg, end - 1));
        // Live at the entry: some path reads the register before it writes it.
        if start == 0 {
            unset = live_in;
        }
        for (at, Effects { needs, sets }) in effects[start..end].iter().enumerate() {
            let both = needs.iter().chain(sets);
            both.for_each(|reg| needed(reg.0 as usize, start + at));
        }
    }
    let numbered = (0u32..).map(Reg).zip(all);
    let mut all: Vec<(Range<usize>, Reg)> = numbered
        .filter(|(reg, _)| !unset.has(*reg))
        .filter_map(|(reg, interval)| Some((interval?, reg)))
        .collect();
    all.sort_unstable_by_key(|(interval, reg)| (interval.start, *reg));
    all
}

#[cfg(test)]
mod tests;
