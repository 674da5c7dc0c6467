//! Pointers from which addresses are computed, traced back through instructions.

use std::collections::{HashMap, HashSet};

use super::skeleton::sets;
use crate::ast::{Body, Operand, Reg, Type};

/// Origin of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pointer<'a> {
    /// A parameter of the kernel, and the byte offset of the pointer in it.
    Parameter(&'a str, u64),
    /// The address of a variable of the module.
    Variable(&'a str),
}

/// Returns the pointers from which the addresses of a function's instructions are computed, by PTX
/// line. An address that may come from several pointers, or from a loaded one, is omitted.
pub fn pointers<'a>(body: &Body<'a>) -> HashMap<u32, Pointer<'a>> {
    let mut setters: HashMap<Reg, Vec<usize>> = HashMap::new();
    for (at, i) in body.instructions.iter().enumerate() {
        for reg in sets(i) {
            setters.entry(reg).or_default().push(at);
        }
    }
    let search = Search { body, setters };
    let mut known: HashMap<Reg, Option<Pointer<'a>>> = HashMap::new();
    let mut found = HashMap::new();
    for i in &body.instructions {
        for operand in &i.operands {
            let Operand::Address(base, _) = operand else {
                continue;
            };
            let pointer = match **base {
                Operand::Reg(reg) if search.is_address(reg) => {
                    *known.entry(reg).or_insert_with(|| search.only_pointer(reg))
                }
                _ => None,
            };
            if let Some(pointer) = pointer {
                found.insert(i.line, pointer);
            }
        }
    }
    found
}

struct Search<'b, 'a> {
    body: &'b Body<'a>,
    setters: HashMap<Reg, Vec<usize>>,
}

impl<'a> Search<'_, 'a> {
    fn is_address(&self, reg: Reg) -> bool {
        let ty = self.body.registers.get(reg.0 as usize).copied().flatten();
        matches!(ty, Some(Type::B64 | Type::U64 | Type::S64))
    }

    /// Returns the only pointer from which a register is computed.
    fn only_pointer(&self, reg: Reg) -> Option<Pointer<'a>> {
        let (mut next, mut seen) = (vec![reg], HashSet::from([reg]));
        let mut found = HashSet::new();
        while let Some(reg) = next.pop() {
            for at in self.setters.get(&reg).into_iter().flatten() {
                let i = self.body.instructions.get(*at)?;
                let sources = i.operands.get(1..).unwrap_or_default();
                // Products and shifts are indices; so are the first two operands of `mad`.
                let sources = match i.opcode {
                    "mov" | "cvta" | "add" | "sub" | "selp" => sources,
                    "mad" => sources.get(2..).unwrap_or_default(),
                    "ld" if i.modifiers.contains(&"param") => {
                        found.insert(parameter(sources.first()?)?);
                        continue;
                    }
                    "ld" | "ldu" | "atom" | "call" => return None,
                    _ => continue,
                };
                for source in sources {
                    match source {
                        Operand::Reg(reg) if self.is_address(*reg) && seen.insert(*reg) => {
                            next.push(*reg);
                        }
                        Operand::Name(name, _) => {
                            found.insert(Pointer::Variable(name));
                        }
                        // Shared and local memory have their own bounds.
                        Operand::Variable(..) => return None,
                        _ => {}
                    }
                }
            }
        }
        let mut found = found.into_iter();
        found.next().filter(|_| found.next().is_none())
    }
}

/// Returns the loaded parameter.
fn parameter<'a>(from: &Operand<'a>) -> Option<Pointer<'a>> {
    let Operand::Address(base, offset) = from else {
        return None;
    };
    match **base {
        Operand::Name(name, more) => {
            let bytes = u64::try_from(offset + more).ok()?;
            Some(Pointer::Parameter(name, bytes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
