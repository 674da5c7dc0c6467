//! Atomics on vectors as one for each element: the PTX ISA guarantees no more (9.7.13.6 and 9.7.13.8, "atomicity is
//! guaranteed separately for each of the individual elements").

use super::ast::{Body, Instruction, Operand, Type};
use super::wide::replace_each;

/// Splits the vector forms of `atom` and `red` of a function. The first element keeps the modifier of the length,
/// which the alignment of the whole follows from.
pub(super) fn split_vector_atomics(body: &mut Body<'_>) {
    if body.instructions.iter().any(|i| length(i).is_some()) {
        replace_each(body, |i| elements(&i).unwrap_or_else(|| vec![i]));
    }
}

/// Returns the number of elements of a vector form.
#[must_use]
pub fn vector_length(modifier: &str) -> Option<usize> {
    match modifier {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    }
}

fn length(i: &Instruction<'_>) -> Option<usize> {
    let words = || i.modifiers.iter();
    let atomic = matches!(i.opcode, "atom" | "red") && !words().any(|word| *word == "async");
    words()
        .find_map(|word| vector_length(word))
        .filter(|_| atomic)
}

/// Returns one instruction for each element, or nothing where they could not follow each other: an element's old
/// value would replace what a later one takes.
fn elements<'a>(i: &Instruction<'a>) -> Option<Vec<Instruction<'a>>> {
    let count = length(i)?;
    let bytes = i
        .modifiers
        .iter()
        .find_map(|word| Type::parse(word))?
        .bytes();
    let address = i
        .operands
        .iter()
        .position(|operand| matches!(operand, Operand::Address(..)))?;
    let Some(Operand::Address(base, offset)) = i.operands.get(address) else {
        return None;
    };
    let mut code: Vec<Instruction<'a>> = Vec::with_capacity(count);
    for n in 0..count {
        let mut operands = Vec::with_capacity(i.operands.len());
        for (place, operand) in i.operands.iter().enumerate() {
            operands.push(match operand {
                Operand::Address(..) => {
                    Operand::Address(base.clone(), offset + n as i64 * i64::from(bytes))
                }
                Operand::Vector(parts) if parts.len() == count => parts.get(n)?.clone(),
                Operand::Sink => Operand::Sink,
                // A cache policy.
                Operand::Reg(_) if place > address + 1 => operand.clone(),
                _ => return None,
            });
        }
        let replaced = |operand: &Operand<'a>| {
            let mut earlier = code.iter().filter_map(|e| e.operands.first());
            matches!(operand, Operand::Reg(_)) && earlier.any(|dest| dest == operand)
        };
        if address > 0 && operands.iter().skip(1).any(replaced) {
            return None;
        }
        let mut modifiers = i.modifiers.clone();
        if n > 0 {
            modifiers.retain(|word| vector_length(word).is_none());
        }
        code.push(Instruction {
            modifiers,
            operands,
            ..i.clone()
        });
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    fn shown(code: &str) -> Vec<String> {
        let text = format!(
            ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
             .reg .b64 %rd<4>;\n.reg .f32 %f<9>;\n{code}\nret;\n}}\n"
        );
        let ast = crate::parse(&text).unwrap();
        let body = ast.functions[0].body.as_ref().unwrap();
        let shown = body.instructions.iter().map(|i| {
            let first = &i.operands.first();
            format!("{}.{} {first:?}", i.opcode, i.modifiers.join("."))
        });
        shown.collect()
    }

    #[test]
    fn a_vector_has_one_atomic_for_each_element() {
        let code = shown("red.global.add.v2.f32 [%rd1+8], {%f1, %f2};");
        assert_eq!(code.len(), 3);
        assert!(code[0].starts_with("red.global.add.v2.f32") && code[0].contains(", 8)"));
        assert!(code[1].starts_with("red.global.add.f32") && code[1].contains(", 12)"));
    }

    #[test]
    fn old_values_that_replace_what_a_later_element_takes_stay_together() {
        let code = shown("atom.global.add.v2.f32 {%f2, %f1}, [%rd1], {%f1, %f2};");
        assert_eq!(code.len(), 2);
        let code = shown("atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f1, %f2};");
        assert_eq!(code.len(), 3);
    }
}
