//! The slice of a kernel that decides which global memory it writes: the addresses of its stores,
//! and the branches that decide whether they are executed. Stored values are omitted.
//!
//! A backward slice (Weiser, "Program Slicing", 1981) over data dependence, independent of the
//! order of instructions, and over control dependence. A loop without kept instructions is skipped,
//! so a kernel whose stores follow its main loop costs a few instructions per thread.

use std::collections::{HashMap, HashSet};

use super::ast::{Ast, Body, Function, Instruction, Operand, Reg, StateSpace};
use super::flow::{Flow, ends_block};
use super::skeleton::{changes_maps, has, maybe_near, moves_stack, near, reads, sets};

/// Accesses whose addresses a slice keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roots {
    /// Stores to global memory.
    Stores,
    /// Stores to and loads from global memory.
    Accesses,
}

/// Treatment of one instruction in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Executed.
    Keep,
    /// Executed for its address only: a load with an unused value.
    Touch,
    /// Omitted.
    Skip,
    /// A branch that decides no kept instruction: execution continues at this instruction, or at
    /// the end of the function if that is the number of instructions.
    Goto(usize),
}

/// Reason why a kernel has no slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The instruction that prevents it.
    pub instruction: String,
    /// Its PTX line.
    pub line: u32,
    /// Its location, as [`Instruction::location`].
    pub location: u32,
}

/// The carry flag, as a separate register.
const CARRY: Reg = Reg(u32::MAX);

/// Computes the slice of an entry: one step for each instruction of its body.
///
/// # Errors
/// [`Refusal`] if the written elements depend on the result of an atomic operation on global memory
/// (a work queue) or on a called function, or if a branch has unknown targets.
pub fn slice(ast: &Ast<'_>, entry: &Function<'_>, roots: Roots) -> Result<Vec<Step>, Refusal> {
    let Some(body) = &entry.body else {
        return Ok(Vec::new());
    };
    let code = &body.instructions;
    let refuse = |at: usize, why: &str| Refusal {
        instruction: format!("{} ({why})", name(&code[at])),
        line: code[at].line,
        location: code[at].location,
    };
    if let Some(at) = (0..code.len()).find(|at| calls_a_store(ast, &code[*at])) {
        return Err(refuse(at, "a function that stores"));
    }
    if let Some(at) = code.iter().position(changes_maps) {
        return Err(refuse(at, "copies use values that it stores"));
    }
    if let Some(at) = code.iter().position(moves_stack) {
        return Err(refuse(at, "memory on the stack"));
    }
    let Some(flow) = Flow::new(body) else {
        let at = code.iter().position(|i| matches!(i.opcode, "bra" | "brx"));
        return Err(refuse(at.unwrap_or(0), "its targets are not known"));
    };
    let mut slicer = Slicer::new(body, &flow);
    for (at, i) in code.iter().enumerate() {
        if stores(i) || roots == Roots::Accesses && loads(i) {
            slicer.keep(at, false);
        }
    }
    slicer.close();
    if let Some((at, why)) = slicer.refused {
        return Err(refuse(at, why));
    }
    let step = |at: usize| {
        let i = &code[at];
        let conditional = i.guard.is_some() || i.opcode == "brx";
        match (slicer.kept[at], ends_block(i) && conditional) {
            (true, _) if loads(i) && !slicer.whole[at] => Step::Touch,
            (true, _) => Step::Keep,
            (false, true) => Step::Goto(flow.join(at)),
            // A jump without a condition is part of every path.
            (false, false) if ends_block(i) => Step::Keep,
            (false, false) => Step::Skip,
        }
    };
    Ok((0..code.len()).map(step).collect())
}

fn name(i: &Instruction<'_>) -> String {
    let words = std::iter::once(i.opcode).chain(i.modifiers.iter().copied());
    words.collect::<Vec<_>>().join(".")
}

/// Reports whether an instruction writes global memory, or may by a generic address.
fn stores(i: &Instruction<'_>) -> bool {
    match i.opcode {
        // It clears shared memory, by a generic address too.
        "st" if has(i, "bulk") => false,
        "st" | "red" | "atom" => !near(i) && !has(i, "param"),
        "sust" => true,
        "wmma" => has(i, "store") && !near(i),
        // The destination is named first.
        "cp" => {
            let space = i.modifiers.iter().find(|m| {
                ["global", "shared"]
                    .iter()
                    .any(|space| m.starts_with(space))
            });
            has(i, "bulk") && space.is_some_and(|space| *space == "global") && !has(i, "prefetch")
        }
        _ => false,
    }
}

/// Reports whether an instruction reads global memory, or may by a generic address.
fn loads(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "ld" | "ldu" => !near(i) && !has(i, "param") && !has(i, "const"),
        "wmma" => has(i, "load") && !near(i),
        "cp" => has(i, "async") && has(i, "global") && !stores(i),
        _ => false,
    }
}

/// Reports whether an instruction calls a function that may write global memory.
fn calls_a_store(ast: &Ast<'_>, i: &Instruction<'_>) -> bool {
    if i.opcode != "call" {
        return false;
    }
    let callee = i
        .operands
        .iter()
        .find(|operand| !matches!(operand, Operand::List(_)));
    // A call through a pointer names its prototype only.
    let Some(Operand::Name(callee, 0)) = callee else {
        return true;
    };
    if matches!(*callee, "malloc" | "free" | "__nv_aligned_device_malloc") {
        return true;
    }
    let functions = ast.functions.iter().filter(|f| f.name == *callee);
    let mut bodies = functions.filter_map(|f| f.body.as_ref());
    bodies.any(|body| {
        let code = &body.instructions;
        code.iter().any(|i| stores(i) || i.opcode == "call")
    })
}

struct Slicer<'a> {
    body: &'a Body<'a>,
    flow: &'a Flow,
    setters: HashMap<Reg, Vec<usize>>,
    kept: Vec<bool>,
    /// Kept together with its stored value.
    whole: Vec<bool>,
    wanted: HashSet<Reg>,
    next: Vec<usize>,
    /// Values pass through shared or local memory.
    shared: bool,
    local: bool,
    refused: Option<(usize, &'static str)>,
}

impl<'a> Slicer<'a> {
    fn new(body: &'a Body<'a>, flow: &'a Flow) -> Self {
        let mut setters: HashMap<Reg, Vec<usize>> = HashMap::new();
        for (at, i) in body.instructions.iter().enumerate() {
            let carry = has(i, "cc").then_some(CARRY);
            for reg in sets(i).into_iter().chain(carry) {
                setters.entry(reg).or_default().push(at);
            }
        }
        Self {
            body,
            flow,
            setters,
            kept: vec![false; body.instructions.len()],
            whole: vec![false; body.instructions.len()],
            wanted: HashSet::new(),
            next: Vec::new(),
            shared: false,
            local: false,
            refused: None,
        }
    }

    /// Keeps an instruction; with `whole`, also its stored value.
    fn keep(&mut self, at: usize, whole: bool) {
        if !self.kept[at] || whole && !self.whole[at] {
            self.kept[at] = true;
            self.whole[at] |= whole;
            self.next.push(at);
        }
    }

    /// Adds everything that the kept instructions depend on.
    fn close(&mut self) {
        while let Some(at) = self.next.pop() {
            let i = &self.body.instructions[at];
            // Sizes and coordinates of a copy or a surface store decide the written bytes, too.
            let needed = if self.whole[at] || !stores(i) || matches!(i.opcode, "cp" | "sust") {
                reads(i)
            } else {
                address_registers(i)
            };
            let carry = matches!(i.opcode, "addc" | "subc" | "madc").then_some(CARRY);
            for reg in needed.into_iter().chain(carry) {
                self.want(reg);
            }
            for decider in self.flow.deciders(at).to_vec() {
                self.keep(decider, true);
            }
            self.follow_memory(at);
        }
    }

    fn want(&mut self, reg: Reg) {
        if !self.wanted.insert(reg) {
            return;
        }
        for setter in self.setters.get(&reg).cloned().unwrap_or_default() {
            let i = &self.body.instructions[setter];
            if i.opcode == "atom" && !near(i) {
                let why = "its result decides which elements are written";
                self.refused.get_or_insert((setter, why));
            }
            if reads_a_call(self.body, i) {
                let why = "a called function decides which elements are written";
                self.refused.get_or_insert((setter, why));
            }
            self.keep(setter, true);
        }
    }

    /// Keeps the stores that may write what a kept instruction reads from shared or local memory.
    fn follow_memory(&mut self, at: usize) {
        let i = &self.body.instructions[at];
        let reads_memory = match i.opcode {
            "ld" | "ldmatrix" | "ldu" => true,
            "atom" => near(i),
            "wmma" => has(i, "load"),
            _ => false,
        };
        if !reads_memory || !maybe_near(i) {
            return;
        }
        let shared = !has(i, "local") && !self.shared;
        let local = !has(i, "shared") && i.opcode != "ldmatrix" && !self.local;
        self.shared |= shared;
        self.local |= local;
        for (at, i) in self.body.instructions.iter().enumerate() {
            let writes = matches!(i.opcode, "st" | "stmatrix" | "cp" | "red" | "atom" | "wmma");
            let to_shared = shared && (has(i, "shared") || i.opcode == "stmatrix");
            let to_local = local && has(i, "local");
            let generic = (shared || local) && maybe_near(i) && !near(i);
            // Without them a thread would read shared memory before others have written it.
            let waits = shared && matches!(i.opcode, "bar" | "barrier" | "mbarrier" | "cp");
            if writes && (to_shared || to_local || generic) || waits {
                self.keep(at, true);
            }
        }
    }
}

/// Reports whether an instruction reads the result of a called function.
fn reads_a_call(body: &Body<'_>, i: &Instruction<'_>) -> bool {
    let variable = |operand: &Operand<'_>| match operand {
        Operand::Address(base, _) => match **base {
            Operand::Variable(index, _) => body.variables.get(index as usize),
            _ => None,
        },
        _ => None,
    };
    i.opcode == "ld"
        && (i.operands.iter().filter_map(variable)).any(|v| v.space == StateSpace::Param)
}

/// Returns the registers of an instruction's addresses and of its guard.
fn address_registers(i: &Instruction<'_>) -> Vec<Reg> {
    let mut all = Vec::new();
    let addresses = i
        .operands
        .iter()
        .filter(|o| matches!(o, Operand::Address(..)));
    addresses.for_each(|operand| super::intent::registers(operand, &mut all));
    // The stride of a matrix follows its fragment.
    if i.opcode == "wmma" {
        i.operands
            .iter()
            .skip(2)
            .for_each(|o| super::intent::registers(o, &mut all));
    }
    all.extend(i.guard.map(|(p, _)| p));
    all
}

#[cfg(test)]
mod tests;
