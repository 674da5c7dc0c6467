//! Shared memory that the system reserves: one variable of the module stands for it.

use super::ast::{Ast, Operand, StateSpace, Type, Variable};

/// Name of the variable, which no source can declare.
pub const NAME: &str = "%reserved_smem";
/// Size of the region that a client such as cooperative groups may use, bytes.
const BYTES: i64 = 288;

/// Replaces the registers with the bounds of reserved shared memory by those of a variable.
pub(super) fn declare_reserved(ast: &mut Ast<'_>) {
    let mut used = false;
    let bodies = ast.functions.iter_mut().filter_map(|f| f.body.as_mut());
    for instruction in bodies.flat_map(|body| &mut body.instructions) {
        for operand in &mut instruction.operands {
            let Operand::Special(name, _) = operand else {
                continue;
            };
            *operand = match name.strip_prefix("reserved_smem_offset_") {
                Some("cap") => Operand::Int(BYTES as u64),
                Some("end") => Operand::Name(NAME, BYTES),
                Some(_) => Operand::Name(NAME, 0),
                None => continue,
            };
            used = true;
        }
    }
    if used {
        ast.variables.push(Variable {
            name: NAME,
            space: StateSpace::Shared,
            ty: Type::B8,
            align: 16,
            bytes: BYTES as u64,
            external: false,
            init: Vec::new(),
            line: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::ast::Operand;

    #[test]
    fn reserved_shared_memory_is_a_variable() {
        let text = ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k() {\n\
                    .reg .b32 %r<3>;\n\
                    mov.u32 %r1, %reserved_smem_offset_1;\n\
                    mov.u32 %r2, %reserved_smem_offset_end;\nret;\n}\n";
        let ast = crate::parse(text).unwrap();
        assert_eq!(ast.variables.len(), 1);
        let body = ast.functions[0].body.as_ref().unwrap();
        let sources: Vec<_> = body.instructions[..2]
            .iter()
            .map(|i| &i.operands[1])
            .collect();
        assert_eq!(
            sources,
            [
                &Operand::Name("%reserved_smem", 0),
                &Operand::Name("%reserved_smem", 288)
            ]
        );
    }
}
