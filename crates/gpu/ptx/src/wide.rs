//! Registers of 128 bits as two of 64: loads and stores of one become those of a vector, moves become two, and the
//! operands of atomics become vectors.

use super::ast::{Body, Instruction, Operand, Reg, Type};
use std::collections::HashMap;

/// Splits the registers of 128 bits of a function. Instructions on them other than loads, stores, moves and atomics
/// stay as they are.
pub(super) fn split_wide(body: &mut Body<'_>) {
    let wide: Vec<usize> = (0..body.registers.len())
        .filter(|at| body.registers.get(*at) == Some(&Some(Type::B128)))
        .collect();
    if wide.is_empty() {
        return;
    }
    let mut upper = HashMap::new();
    for at in wide {
        upper.insert(Reg(at as u32), Reg(body.registers.len() as u32));
        body.registers.push(Some(Type::B64));
        if let Some(lower) = body.registers.get_mut(at) {
            *lower = Some(Type::B64);
        }
    }
    replace_each(body, |i| split(i, &upper));
}

/// Replaces each instruction of a function by others.
pub(super) fn replace_each<'a>(
    body: &mut Body<'a>,
    mut replaced: impl FnMut(Instruction<'a>) -> Vec<Instruction<'a>>,
) {
    let mut firsts = Vec::with_capacity(body.instructions.len() + 1);
    let mut code = Vec::with_capacity(body.instructions.len());
    for i in std::mem::take(&mut body.instructions) {
        firsts.push(code.len());
        code.extend(replaced(i));
    }
    // A label may stand behind the last instruction.
    firsts.push(code.len());
    for (_, _, at) in &mut body.labels {
        *at = firsts.get(*at).copied().unwrap_or(*at);
    }
    body.instructions = code;
}

/// Returns the instructions that replace one.
fn split<'a>(i: Instruction<'a>, upper: &HashMap<Reg, Reg>) -> Vec<Instruction<'a>> {
    if i.modifiers.last() != Some(&"b128") {
        return vec![i];
    }
    let halves = |operand: &Operand<'a>| match operand {
        Operand::Reg(reg) => {
            let high = upper.get(reg)?;
            Some([Operand::Reg(*reg), Operand::Reg(*high)])
        }
        Operand::Vector(parts) => match parts.as_slice() {
            [low, high] => Some([low.clone(), high.clone()]),
            [_, _, _, _] => {
                let (low, high) = parts.split_at(2);
                Some([low, high].map(|half| Operand::Vector(half.to_vec())))
            }
            _ => None,
        },
        Operand::Int(value) => Some([Operand::Int(*value), Operand::Int(0)]),
        _ => None,
    };
    match (i.opcode, i.operands.as_slice()) {
        ("mov", [to, from]) => {
            let (Some(to), Some(from)) = (halves(to), halves(from)) else {
                return vec![i];
            };
            let pairs = to.into_iter().zip(from);
            let half = |(to, from)| Instruction {
                modifiers: vec!["b64"],
                operands: vec![to, from],
                ..i.clone()
            };
            pairs.map(half).collect()
        }
        ("ld" | "ldu" | "st", [first, second]) => {
            let data = if i.opcode == "st" { second } else { first };
            let Some(parts) = halves(data).filter(|_| matches!(data, Operand::Reg(_))) else {
                return vec![i];
            };
            let vector = Operand::Vector(parts.into());
            let operands = match i.opcode {
                "st" => vec![first.clone(), vector],
                _ => vec![vector, second.clone()],
            };
            let mut modifiers = i.modifiers.clone();
            modifiers.pop();
            modifiers.extend(["v2", "b64"]);
            vec![Instruction {
                modifiers,
                operands,
                ..i
            }]
        }
        ("atom", [_, _, ..]) => {
            let operands = i.operands.iter().enumerate().map(|(place, operand)| {
                // The second operand is the address.
                match halves(operand).filter(|_| place != 1) {
                    Some(parts) => Operand::Vector(parts.into()),
                    None => operand.clone(),
                }
            });
            let operands = operands.collect();
            vec![Instruction { operands, ..i }]
        }
        _ => vec![i],
    }
}

/// Adds the second result of an instruction to the vector of its first ones: only the first operand is set.
pub(super) fn join_results(operands: &mut Vec<Operand<'_>>) {
    if let [Operand::Vector(_), _, _, ..] = operands.as_slice() {
        let second = operands.remove(1);
        if let Some(Operand::Vector(first)) = operands.first_mut() {
            first.push(second);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ast::Operand;

    #[test]
    fn loads_stores_and_moves_of_128_bits_have_two_halves() {
        let text = ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n\
                    .reg .b128 %q<2>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n\
                    ld.param.u64 %rd1, [p];\n\
                    L: ld.relaxed.gpu.global.b128 %q1, [%rd1];\n\
                    mov.b128 {%rd2, %rd3}, %q1;\n\
                    mov.b128 %q0, {%rd3, %rd2};\n\
                    st.global.b128 [%rd1+16], %q0;\n\
                    @%p1 bra L;\nret;\n}\n";
        let ast = crate::parse(text).unwrap();
        let body = ast.functions[0].body.as_ref().unwrap();
        let shown: Vec<String> = body
            .instructions
            .iter()
            .map(|i| format!("{}.{}", i.opcode, i.modifiers.join(".")))
            .collect();
        assert_eq!(
            shown,
            [
                "ld.param.u64",
                "ld.relaxed.gpu.global.v2.b64",
                "mov.b64",
                "mov.b64",
                "mov.b64",
                "mov.b64",
                "st.global.v2.b64",
                "bra.",
                "ret."
            ]
        );
        assert!(
            matches!(&body.instructions[1].operands[0], Operand::Vector(two) if two.len() == 2)
        );
        assert_eq!(body.labels[0].2, 1);
    }
}
