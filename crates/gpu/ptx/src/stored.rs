//! Module variables that some code may write: by a store, or by passing their address on.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::ast::{Ast, Body, Function, Init, Instruction, Operand, Reg, StateSpace, Variable};
use super::definedness::{destinations, sources};

/// Opcodes that only read from their addresses.
const READING: &[&str] = &["ld", "ldu", "ldmatrix", "prefetch", "prefetchu"];

/// Returns the names of the `.global` variables without an initializer that no code can write;
/// those inside a function as `function::name`.
pub fn never_written(ast: &Ast<'_>) -> HashSet<String> {
    let bare =
        |v: &&Variable<'_>| v.space == StateSpace::Global && v.init.is_empty() && !v.external;
    let outside = ast.variables.iter().filter(bare).map(|v| v.name.to_owned());
    let mut left: HashSet<String> = outside.collect();
    for f in &ast.functions {
        let inside = f.body.iter().flat_map(|body| &body.variables).filter(bare);
        left.extend(inside.map(|v| inner_name(f, v)));
    }
    for f in &ast.functions {
        if let (Some(body), false) = (&f.body, left.is_empty()) {
            let written = Flow { f, body }.written(&left);
            left.retain(|name| !written.contains(name));
        }
    }
    // Code may load the address from memory and store through it.
    for init in ast.variables.iter().flat_map(|v| &v.init) {
        if let Init::Address { symbol, .. } = init {
            left.remove(*symbol);
        }
    }
    left
}

/// Returns the name by which a module knows a variable of a function.
fn inner_name(f: &Function<'_>, v: &Variable<'_>) -> String {
    format!("{}::{}", f.name, v.name)
}

/// Flow of variable addresses in a function.
struct Flow<'a> {
    f: &'a Function<'a>,
    body: &'a Body<'a>,
}

impl Flow<'_> {
    fn written(&self, wanted: &HashSet<String>) -> BTreeSet<String> {
        let mut addresses: HashMap<Reg, BTreeSet<String>> = HashMap::new();
        let mut written = BTreeSet::new();
        loop {
            let before: usize = addresses.values().map(BTreeSet::len).sum();
            for i in &self.body.instructions {
                let named = self.named(changed(i), wanted, &addresses);
                if !computes(i) {
                    written.extend(named);
                } else if !named.is_empty() {
                    for reg in destinations(i) {
                        addresses.entry(reg).or_default().extend(named.clone());
                    }
                }
            }
            if addresses.values().map(BTreeSet::len).sum::<usize>() == before {
                return written;
            }
        }
    }

    /// Returns the variables that operands name, directly or by a register.
    fn named(
        &self,
        operands: &[Operand<'_>],
        wanted: &HashSet<String>,
        addresses: &HashMap<Reg, BTreeSet<String>>,
    ) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for operand in operands {
            match operand {
                Operand::Reg(reg) | Operand::Not(reg) => {
                    all.extend(addresses.get(reg).into_iter().flatten().cloned());
                }
                Operand::Name(name, _) => all.extend(wanted.get(*name).cloned()),
                Operand::Variable(index, _) => {
                    let variable = self.body.variables.get(*index as usize);
                    let name = variable.map(|v| inner_name(self.f, v));
                    all.extend(name.filter(|name| wanted.contains(name)));
                }
                Operand::Address(base, _) => {
                    let base = std::slice::from_ref(&**base);
                    all.extend(self.named(base, wanted, addresses));
                }
                Operand::Vector(list) | Operand::List(list) => {
                    all.extend(self.named(list, wanted, addresses));
                }
                _ => {}
            }
        }
        all
    }
}

/// Returns the operands through which an instruction may write, or that it passes on.
fn changed<'i, 'a>(i: &'i Instruction<'a>) -> &'i [Operand<'a>] {
    match i.opcode {
        opcode if READING.contains(&opcode) => &[],
        // The source of a copy is only read.
        "cp" => i.operands.get(..1).unwrap_or_default(),
        "wmma" if i.modifiers.contains(&"load") => &[],
        _ if computes(i) => sources(i),
        _ => &i.operands,
    }
}

/// Reports whether an instruction only computes a value from its operands.
fn computes(i: &Instruction<'_>) -> bool {
    !matches!(
        i.opcode,
        "st" | "red" | "atom" | "cp" | "call" | "wmma" | "stmatrix" | "mbarrier" | "multimem"
    )
}

#[cfg(test)]
mod tests;
