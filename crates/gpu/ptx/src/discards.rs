//! Values that predicates may discard.
//!
//! `a && b(x)` in a source becomes a load of `x`, computations with it and one `and.pred`: where `a` is false,
//! `x` is not read in terms of the source. A merge of two lists loads the next element of one of them before
//! it tests whether there is one: selections and branches decide whether the value counts.

use std::collections::{HashMap, HashSet};

use super::ast::{Instruction, Operand, Reg};
use super::intent::destinations;

/// Opcodes whose result depends on every operand, and which have no other effect.
const COMPUTING: &[&str] = &[
    "abs", "add", "and", "bfe", "bfind", "brev", "clz", "cnot", "copysign", "cos", "cvt", "div",
    "ex2", "fma", "lg2", "lop3", "mad", "mad24", "max", "min", "mov", "mul", "mul24", "neg", "not",
    "or", "popc", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shfl", "shl", "shr", "sin",
    "slct", "sqrt", "sub", "tanh", "testp", "xor",
];

/// Opcodes whose guard, addresses and stored values are judged where they execute.
const JUDGED: &[&str] = &[
    "atom", "bar", "barrier", "bra", "exit", "ld", "ldu", "red", "ret", "st",
];

/// Registers whose values a predicate may discard, and whose other uses are all computations or judged where
/// they execute.
#[derive(Debug)]
pub(crate) struct Discards {
    registers: HashSet<Reg>,
}

/// Effect of an instruction on a value that it reads.
enum Use {
    /// A result depends on it.
    Computes,
    /// A predicate may discard it.
    Discards,
    /// It decides a branch, an address or the contents of memory: an undefined value is reported there.
    Judged,
    Other,
}

impl Discards {
    /// Finds these registers of a function; `uses` are the instructions that read each register.
    pub(crate) fn find(code: &[Instruction<'_>], uses: &HashMap<Reg, Vec<usize>>) -> Discards {
        // Registers by the registers that are computed from them.
        let mut sources: HashMap<Reg, Vec<Reg>> = HashMap::new();
        let (mut used, mut discarded) = (Vec::new(), Vec::new());
        for (register, at) in uses
            .iter()
            .flat_map(|(r, all)| all.iter().map(|at| (*r, *at)))
        {
            let Some(i) = code.get(at) else { continue };
            match classify(i, register) {
                Use::Computes => {
                    for result in destinations(i) {
                        sources.entry(result).or_default().push(register);
                    }
                }
                Use::Discards => discarded.push(register),
                Use::Judged => {}
                Use::Other => used.push(register),
            }
        }
        let mut registers = reach(discarded, &sources);
        // Another use counts even if a predicate discards the value elsewhere.
        for register in reach(used, &sources) {
            registers.remove(&register);
        }
        Discards { registers }
    }

    /// Reports whether all of some registers are such, and there is one.
    pub(crate) fn hold_all(&self, registers: &[Reg]) -> bool {
        let mut all = registers.iter();
        !registers.is_empty() && all.all(|register| self.registers.contains(register))
    }
}

/// Returns registers and those from which they are computed.
fn reach(from: Vec<Reg>, sources: &HashMap<Reg, Vec<Reg>>) -> HashSet<Reg> {
    let mut found: HashSet<Reg> = from.iter().copied().collect();
    let mut open = from;
    while let Some(register) = open.pop() {
        let more = sources.get(&register).into_iter().flatten();
        open.extend(more.filter(|source| found.insert(**source)));
    }
    found
}

/// Returns the effect of an instruction on the value of a register that it reads.
fn classify(i: &Instruction<'_>, value: Reg) -> Use {
    let has = |word: &str| i.modifiers.contains(&word);
    let packs = |o: &Operand<'_>| matches!(o, Operand::Vector(_));
    let sources = i.operands.get(1..).unwrap_or_default();
    // Local memory may hold the arguments of a call.
    if JUDGED.contains(&i.opcode) && !has("param") && !has("local") {
        return Use::Judged;
    }
    // The carry flag is not among the registers that are followed.
    let carries = has("cc");
    // A packed value may have parts that are not used.
    let packs = sources.iter().any(packs) || i.opcode == "cvt" && sources.len() > 1;
    if !COMPUTING.contains(&i.opcode) || carries || packs {
        return Use::Other;
    }
    if i.guard.is_some_and(|(guard, _)| guard == value) {
        return Use::Computes;
    }
    match (i.opcode, sources) {
        // The other operands choose a lane.
        ("shfl", [_, others @ ..]) if others.contains(&Operand::Reg(value)) => Use::Other,
        ("selp", [a, b, Operand::Reg(condition) | Operand::Not(condition)]) => {
            match a != b && *condition != value {
                true => Use::Discards,
                false => Use::Computes,
            }
        }
        ("and" | "or", _) if has("pred") => Use::Discards,
        ("setp", [_, _, _]) if has("and") || has("or") => Use::Discards,
        _ => Use::Computes,
    }
}
