//! What of a kernel decides its way, and what its addresses: the rest need not be executed to know
//! how long a block's way is, or which bytes it asks for.
//!
//! A backward slice over the registers of a function, without regard to the order of instructions.
//! Values that pass through shared or local memory keep every store to it.

use std::collections::{HashMap, HashSet};

use super::intent::registers;
use crate::ast::{Body, Instruction, Operand, Reg};

/// The instruction decides where warps go or when they wait.
pub const CONTROL: u8 = 1;
/// It does, or it loads from global memory, or decides from where.
pub const ADDRESSES: u8 = 2;
/// It loads what neither decides a way nor an address: only its own address matters.
pub const UNUSED: u8 = 4;
/// It loads from global memory what decides a way or an address.
pub const DATA: u8 = 8;

/// The slices of one function.
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    /// [`CONTROL`], [`ADDRESSES`] and [`UNUSED`] of each instruction.
    pub keep: Vec<u8>,
    /// Some branch depends on the block's index.
    pub by_block: bool,
    /// The way depends on what other blocks have done.
    pub by_others: bool,
}

/// The slices of a function.
pub fn skeleton(body: &Body<'_>) -> Skeleton {
    let code = &body.instructions;
    let calls = code.iter().any(|i| i.opcode == "call");
    let (control, _) = slice(code, decides);
    let (addresses, wanted) = slice(code, |i| decides(i) || loads(i));
    let unused = |i: &Instruction<'_>| {
        i.opcode.starts_with("ld") && !sets(i).iter().any(|reg| wanted.contains(reg))
    };
    let flags = |at: usize| {
        let (i, unused) = (&code[at], unused(&code[at]));
        let slices = match (calls, control[at], addresses[at]) {
            (true, _, _) | (_, true, _) => CONTROL | ADDRESSES,
            (_, _, true) if unused => ADDRESSES | UNUSED,
            (_, _, true) => ADDRESSES,
            _ => 0,
        };
        match addresses[at] && loads(i) && i.opcode != "cp" && !unused {
            true => slices | DATA,
            false => slices,
        }
    };
    let far_atomic = |i: &Instruction<'_>| i.opcode == "atom" && !near(i);
    Skeleton {
        keep: (0..code.len()).map(flags).collect(),
        by_block: by_block(code),
        by_others: (code.iter().zip(&control)).any(|(i, kept)| *kept && far_atomic(i)),
    }
}

pub(super) fn has(i: &Instruction<'_>, word: &str) -> bool {
    i.modifiers.iter().any(|m| m.starts_with(word))
}

/// Whether an access is to shared or local memory.
pub(super) fn near(i: &Instruction<'_>) -> bool {
    has(i, "shared") || has(i, "local")
}

/// Whether an access may be to shared or local memory: by name, or by a generic address.
pub(super) fn maybe_near(i: &Instruction<'_>) -> bool {
    !(has(i, "global") || has(i, "param") || has(i, "const"))
}

/// Control flow, and what warps wait by.
fn decides(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "bra" | "brx" | "ret" | "exit" | "trap" | "call" | "bar" | "barrier" | "mbarrier" => true,
        "cp" => has(i, "bulk") || has(i, "mbarrier"),
        _ => false,
    }
}

/// A load from global memory into registers or shared memory.
fn loads(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "ld" | "ldu" => !near(i) && !has(i, "param"),
        "cp" => has(i, "async") && has(i, "global"),
        _ => false,
    }
}

/// Registers that an instruction sets: those of its first operand, unless that is an address.
pub(super) fn sets(i: &Instruction<'_>) -> Vec<Reg> {
    let mut all = Vec::new();
    let none = matches!(
        i.opcode,
        "st" | "red" | "bra" | "brx" | "bar" | "barrier" | "call" | "ret" | "exit" | "cp"
    );
    match i.operands.first() {
        Some(Operand::Address(..)) | None => {}
        Some(_) if none => {}
        Some(first) => registers(first, &mut all),
    }
    all
}

/// Registers that it reads; of those that it sets too, none.
pub(super) fn reads(i: &Instruction<'_>) -> Vec<Reg> {
    let mut all = Vec::new();
    let skip = usize::from(!sets(i).is_empty());
    let sources = i.operands.iter().skip(skip);
    sources.for_each(|operand| registers(operand, &mut all));
    all.extend(i.guard.map(|(p, _)| p));
    all
}

/// The instructions that the roots depend on, roots included, and the registers that these read.
fn slice(
    code: &[Instruction<'_>],
    root: impl Fn(&Instruction<'_>) -> bool,
) -> (Vec<bool>, HashSet<Reg>) {
    let mut setters: HashMap<Reg, Vec<usize>> = HashMap::new();
    for (at, i) in code.iter().enumerate() {
        for reg in sets(i) {
            setters.entry(reg).or_default().push(at);
        }
    }
    let mut kept = vec![false; code.len()];
    let mut next: Vec<usize> = (0..code.len()).filter(|at| root(&code[*at])).collect();
    let mut wanted: HashSet<Reg> = HashSet::new();
    let mut memory = false;
    while let Some(at) = next.pop() {
        if std::mem::replace(&mut kept[at], true) {
            continue;
        }
        let i = &code[at];
        for reg in reads(i) {
            if wanted.insert(reg) {
                next.extend(setters.get(&reg).into_iter().flatten());
            }
        }
        let from_memory = matches!(i.opcode, "ld" | "ldmatrix" | "wmma" | "atom");
        if from_memory && maybe_near(i) && !memory {
            memory = true;
            let writes = |i: &Instruction<'_>| {
                let store = matches!(i.opcode, "st" | "stmatrix" | "cp" | "red" | "atom" | "wmma");
                store && (maybe_near(i) || near(i))
            };
            next.extend((0..code.len()).filter(|at| writes(&code[*at])));
        }
    }
    (kept, wanted)
}

/// Whether a branch depends on the block's index other than through what is loaded.
fn by_block(code: &[Instruction<'_>]) -> bool {
    let special = |o: &Operand<'_>| matches!(o, Operand::Special(name, _) if name.contains("ctaid") && !name.contains("nctaid"));
    let mut tainted: HashSet<Reg> = HashSet::new();
    loop {
        let before = tainted.len();
        for i in code {
            let direct = i.operands.iter().any(special);
            if direct || !loads(i) && reads(i).iter().any(|reg| tainted.contains(reg)) {
                tainted.extend(sets(i));
            }
        }
        if tainted.len() == before {
            break;
        }
    }
    let branch = |i: &&Instruction<'_>| matches!(i.opcode, "bra" | "brx" | "exit" | "ret");
    let mut branches = code.iter().filter(branch);
    branches.any(|i| reads(i).iter().any(|reg| tainted.contains(reg)))
}

#[cfg(test)]
mod tests;
