//! Slices of a kernel that decide its control flow and its addresses: enough to compute the length
//! of a block's path or the bytes that it accesses, without executing the rest.
//!
//! Each is a backward slice over the registers of a function, independent of the order of
//! instructions. Values that pass through shared or local memory keep all stores to it.

use std::collections::{HashMap, HashSet};

use super::intent::registers;
use crate::ast::{Body, Instruction, Operand, Reg};

/// Flag: the instruction decides where warps branch or when they wait.
pub const CONTROL: u8 = 1;
/// Flag: as [`CONTROL`], or the instruction loads from global memory or computes such an address.
pub const ADDRESSES: u8 = 2;
/// Flag: a load whose value decides neither control flow nor an address; only its own address
/// matters.
pub const UNUSED: u8 = 4;
/// Flag: a load from global memory whose value decides control flow or an address.
pub const DATA: u8 = 8;

/// The slices of one function.
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    /// [`CONTROL`], [`ADDRESSES`], [`UNUSED`] and [`DATA`] of each instruction.
    pub keep: Vec<u8>,
    /// A branch depends on the block's index.
    pub by_block: bool,
    /// The control flow depends on results of other blocks.
    pub by_others: bool,
}

/// Computes the slices of a function.
pub fn skeleton(body: &Body<'_>) -> Skeleton {
    let code = &body.instructions;
    // Copies use the tensor maps that ordinary stores change.
    let calls = (code.iter()).any(|i| i.opcode == "call" || changes_maps(i) || moves_stack(i));
    let (control, _) = slice(code, decides);
    let (addresses, wanted) = slice(code, |i| decides(i) || loads(i));
    let unused = |i: &Instruction<'_>| {
        i.opcode.starts_with("ld") && !sets(i).iter().any(|reg| wanted.contains(reg))
    };
    let flags = |at: usize| {
        let (i, unused) = (&code[at], unused(&code[at]));
        // A called function may decide anything, so a body with calls, with changes of maps or with a stack, keeps
        // everything.
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
    // Other blocks change what an atomic on global memory returns.
    let far_atomic = |i: &Instruction<'_>| i.opcode == "atom" && !near(i);
    Skeleton {
        keep: (0..code.len()).map(flags).collect(),
        by_block: by_block(code),
        by_others: (code.iter().zip(&control)).any(|(i, kept)| *kept && far_atomic(i)),
    }
}

/// Reports whether an instruction publishes tensor maps that the kernel changes.
pub(super) fn changes_maps(i: &Instruction<'_>) -> bool {
    i.opcode == "fence" && has(i, "tensormap")
}

/// Reports whether an instruction changes the top of the stack.
pub(super) fn moves_stack(i: &Instruction<'_>) -> bool {
    matches!(i.opcode, "alloca" | "stackrestore")
}

pub(super) fn has(i: &Instruction<'_>, word: &str) -> bool {
    i.modifiers.iter().any(|m| m.starts_with(word))
}

/// Reports whether an access is to shared or local memory.
pub(super) fn near(i: &Instruction<'_>) -> bool {
    has(i, "shared") || has(i, "local")
}

/// Reports whether an access may be to shared or local memory: by name, or by a generic address.
pub(super) fn maybe_near(i: &Instruction<'_>) -> bool {
    !(has(i, "global") || has(i, "param") || has(i, "const"))
}

/// Reports whether an instruction is control flow, or makes warps wait.
fn decides(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "bra" | "brx" | "ret" | "exit" | "trap" | "call" | "bar" | "barrier" | "mbarrier" => true,
        "cp" => has(i, "bulk") || has(i, "mbarrier"),
        // Products decide nothing, but others wait for the arrivals of commits.
        "tcgen05" => has(i, "commit") || has(i, "alloc") || has(i, "dealloc"),
        "clusterlaunchcontrol" => has(i, "try_cancel"),
        // They complete a phase that others wait for.
        "st" | "red" => has(i, "async"),
        _ => false,
    }
}

/// Reports whether an instruction loads from global memory into registers or shared memory.
fn loads(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "ld" | "ldu" => !near(i) && !has(i, "param"),
        "cp" => has(i, "async") && has(i, "global"),
        _ => false,
    }
}

/// Returns the registers that an instruction sets: those of its first operand, unless that is an
/// address.
pub(super) fn sets(i: &Instruction<'_>) -> Vec<Reg> {
    let mut all = Vec::new();
    let none = matches!(
        i.opcode,
        "st" | "sust"
            | "red"
            | "bra"
            | "brx"
            | "bar"
            | "barrier"
            | "call"
            | "ret"
            | "exit"
            | "cp"
            | "stackrestore"
    );
    let reduces = matches!(i.opcode, "bar" | "barrier") && has(i, "red");
    match i.operands.first() {
        Some(Operand::Address(..)) | None => {}
        // A reduction of a barrier gives each thread its result.
        Some(_) if none && !reduces => {}
        Some(_) if i.opcode == "tcgen05" && !has(i, "ld") => {}
        Some(first) => registers(first, &mut all),
    }
    all
}

/// Returns the registers that an instruction reads but does not set.
pub(super) fn reads(i: &Instruction<'_>) -> Vec<Reg> {
    let mut all = Vec::new();
    let skip = usize::from(!sets(i).is_empty());
    let sources = i.operands.iter().skip(skip);
    sources.for_each(|operand| registers(operand, &mut all));
    all.extend(i.guard.map(|(p, _)| p));
    all
}

/// Returns the instructions that the roots depend on, including the roots, and the registers that
/// they read.
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
        // Addresses are not compared: one load keeps every store to such memory.
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

/// Reports whether a branch depends on the block's index other than through loaded values.
fn by_block(code: &[Instruction<'_>]) -> bool {
    let special = |o: &Operand<'_>| matches!(o, Operand::Special(name, _) if name.contains("ctaid") && !name.contains("nctaid"));
    let mut tainted: HashSet<Reg> = HashSet::new();
    // The order of instructions does not count, so the set grows to a fixed point.
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
