//! Contraction of products and sums into fused multiply-adds.
//!
//! A `mul` and an `add` or `sub` without `.rn` may be fused: "the code may be optimised, in
//! particular `mul`/`add` sequences may be fused" (PTX ISA, `add`, `mul`). The assembler fuses them
//! if both are in one basic block. This module rewrites the syntax tree in the same way: a product
//! that only sums read disappears. A product with another reader stays, and so do its sums. NVRTC
//! 13.0 was observed to do both, and the executions of its SASS verify it, because they must leave
//! the same bits.
#![expect(
    clippy::indexing_slicing,
    reason = "instructions are numbered by the pass that found them in the same body"
)]

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ast::{Ast, Body, Instruction, Operand, Reg, Type};
use super::skeleton::{reads, sets};

/// Modifier of an `fma` whose addend is subtracted; not part of PTX.
pub const SUBTRACT_ADDEND: &str = "less";
/// Modifier of an `fma` whose product is subtracted; not part of PTX.
pub const SUBTRACT_PRODUCT: &str = "from";

/// Rewrites all functions.
pub fn contract(ast: &mut Ast<'_>) {
    for body in ast.functions.iter_mut().filter_map(|f| f.body.as_mut()) {
        contract_body(body);
    }
}

/// A product that may still be fused: its index, flushing and factors, and the factor whose
/// register has changed.
struct Product<'a> {
    at: usize,
    modifiers: Vec<&'a str>,
    factors: [Operand<'a>; 2],
    changed: Option<usize>,
}

impl Product<'_> {
    /// Records that a register is set and reports whether the product can still be recomputed from
    /// one kept factor.
    fn after(&mut self, set: Reg) -> bool {
        for (place, factor) in self.factors.iter().enumerate() {
            if *factor == Operand::Reg(set) {
                if self.changed.is_some_and(|changed| changed != place) {
                    return false;
                }
                self.changed = Some(place);
            }
        }
        // Types that one `mov` copies.
        self.changed.is_none() || self.modifiers.iter().any(|m| matches!(*m, "f32" | "f64"))
    }
}

/// The open products of the current basic block, by their registers.
#[derive(Default)]
struct Open<'a> {
    products: HashMap<Reg, Product<'a>>,
    /// Products by a register that is or was one of their factors: setting it visits only these.
    with_factor: HashMap<Reg, Vec<Reg>>,
}

impl<'a> Open<'a> {
    fn add(&mut self, register: Reg, product: Product<'a>) {
        for factor in &product.factors {
            if let Operand::Reg(factor) = factor {
                self.with_factor.entry(*factor).or_default().push(register);
            }
        }
        self.products.insert(register, product);
    }

    /// Records that a register is set.
    fn set(&mut self, register: Reg) {
        self.products.remove(&register);
        for name in self.with_factor.get(&register).into_iter().flatten() {
            // An entry outlives its product; without this factor the next one stays as it is.
            let product = self.products.get_mut(name);
            if product.is_some_and(|product| !product.after(register)) {
                self.products.remove(name);
            }
        }
    }
}

/// A sum with a fused product.
struct Fused<'a> {
    /// Register and index of the product.
    product: (Reg, usize),
    sum: Instruction<'a>,
    /// The factor whose register has changed.
    changed: Option<usize>,
}

fn contract_body(body: &mut Body<'_>) {
    let sums = sums(body);
    let mut read: HashMap<Reg, usize> = HashMap::new();
    for reg in body.instructions.iter().flat_map(reads) {
        *read.entry(reg).or_default() += 1;
    }
    // A product with a reader other than a sum stays, and its sums stay unfused.
    let mut into: HashMap<(Reg, usize), usize> = HashMap::new();
    for found in sums.values().flatten() {
        *into.entry(found.product).or_default() += 1;
    }
    into.retain(|(reg, _), count| read.get(reg) == Some(count));
    let taken: BTreeMap<usize, Fused<'_>> = (sums.into_iter())
        .filter_map(|(at, both)| {
            let mut whole = both.into_iter().filter(|f| into.contains_key(&f.product));
            let (first, other) = (whole.next()?, whole.next());
            // A sum of two products fuses one; the other stays, and so do its other sums.
            if let Some(other) = other {
                into.remove(&other.product);
            }
            Some((at, first))
        })
        .collect();
    let mut gone = HashSet::new();
    // Copies of factors by product: one factor of a product may change.
    let mut kept: HashMap<usize, Reg> = HashMap::new();
    for (at, mut fused) in taken {
        if !into.contains_key(&fused.product) {
            continue;
        }
        let (_, product) = fused.product;
        gone.insert(product);
        if let Some(factor) = fused.changed {
            let copy = *(kept.entry(product)).or_insert_with(|| keep(body, product, factor));
            fused.sum.operands[1 + factor] = Operand::Reg(copy);
        }
        body.instructions[at] = fused.sum;
    }
    gone.retain(|product| !kept.contains_key(product));
    remove(body, &gone);
}

/// Replaces a product's instruction by a copy of one of its factors.
fn keep(body: &mut Body<'_>, product: usize, factor: usize) -> Reg {
    let instruction = &mut body.instructions[product];
    let copy = Reg(body.registers.len() as u32);
    body.registers
        .push(instruction.modifiers.iter().find_map(|m| Type::parse(m)));
    instruction.opcode = "mov";
    // A `mov` does not flush; the fused operation flushes its operands itself.
    instruction.modifiers.retain(|m| *m != "ftz");
    let value = instruction.operands[1 + factor].clone();
    instruction.operands = vec![Operand::Reg(copy), value];
    copy
}

/// Collects the sums of products of the same basic block by index, one entry for each product of a
/// sum.
fn sums<'a>(body: &Body<'a>) -> BTreeMap<usize, Vec<Fused<'a>>> {
    let starts: HashSet<usize> = body.labels.iter().map(|(_, _, at)| *at).collect();
    let mut open = Open::default();
    let mut sums = BTreeMap::new();
    for (at, instruction) in body.instructions.iter().enumerate() {
        // Another path may enter here with other values of the factors.
        if starts.contains(&at) {
            open = Open::default();
        }
        let both = [(1, 2, SUBTRACT_ADDEND), (2, 1, SUBTRACT_PRODUCT)];
        let found = both.map(|(product, addend, sign)| {
            let [product, addend] = [product, addend].map(|place| instruction.operands.get(place));
            let Some(Operand::Reg(reg)) = product else {
                return None;
            };
            // In `p + p` the fused sum would still read the product.
            let product = open.products.get(reg).filter(|_| product != addend)?;
            let sum = fused(instruction, product, addend?, sign)?;
            Some(Fused {
                product: (*reg, product.at),
                sum,
                changed: product.changed,
            })
        });
        let found: Vec<_> = found.into_iter().flatten().collect();
        if !found.is_empty() {
            sums.insert(at, found);
        }
        for register in sets(instruction) {
            open.set(register);
        }
        if let Some((register, factors)) = product(instruction) {
            let product = Product {
                at,
                modifiers: instruction.modifiers.clone(),
                factors,
                changed: None,
            };
            open.add(register, product);
        }
        if ENDS.contains(&instruction.opcode) {
            open = Open::default();
        }
    }
    sums
}

/// Opcodes that end, or may end, a basic block.
const ENDS: [&str; 6] = ["bra", "brx", "call", "ret", "exit", "trap"];

/// Reports whether an instruction names no rounding mode.
fn open_rounding(i: &Instruction<'_>) -> bool {
    let types = ["f32", "f64", "f16", "f16x2", "bf16", "bf16x2"];
    let known = |m: &&str| *m == "ftz" || types.contains(m);
    i.modifiers.iter().all(known) && i.modifiers.iter().any(|m| types.contains(m))
}

/// Returns the register and factors of an unconditional product.
fn product<'a>(i: &Instruction<'a>) -> Option<(Reg, [Operand<'a>; 2])> {
    let [Operand::Reg(to), a, b] = i.operands.as_slice() else {
        return None;
    };
    // A product that overwrites one of its factors cannot be recomputed from it.
    let kept = |of: &Operand<'_>| *of != Operand::Reg(*to);
    let plain = i.opcode == "mul" && i.guard.is_none() && open_rounding(i);
    (plain && kept(a) && kept(b)).then(|| (*to, [a.clone(), b.clone()]))
}

/// Builds a sum with a fused product of the same rounding; for a difference, `sign` names the
/// subtracted operand.
fn fused<'a>(
    i: &Instruction<'a>,
    product: &Product<'a>,
    addend: &Operand<'a>,
    sign: &'static str,
) -> Option<Instruction<'a>> {
    let signed = i.opcode == "sub";
    let sums = i.opcode == "add" || signed && !i.modifiers.iter().any(|m| m.contains("16"));
    if !sums || !open_rounding(i) || product.modifiers != i.modifiers {
        return None;
    }
    let mut sum = i.clone();
    sum.opcode = "fma";
    sum.modifiers.insert(0, "rn");
    sum.modifiers.extend(signed.then_some(sign));
    let [x, y] = product.factors.clone();
    sum.operands = vec![i.operands.first()?.clone(), x, y, addend.clone()];
    Some(sum)
}

/// Removes instructions and keeps labels at their positions.
fn remove(body: &mut Body<'_>, gone: &HashSet<usize>) {
    let mut places: Vec<usize> = gone.iter().copied().collect();
    places.sort_unstable();
    for (_, _, at) in &mut body.labels {
        *at -= places.partition_point(|gone| *gone < *at);
    }
    let mut at = 0;
    body.instructions.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// Returns the opcodes of a kernel with these instructions after contraction.
    fn contracted(code: &str) -> Vec<String> {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .f32 %f<20>;\n.reg .pred %p<2>;\n{code}\nret;\n}}\n"
        );
        let mut ast = parse(&text).unwrap();
        contract(&mut ast);
        let body = ast.functions[0].body.as_ref().unwrap();
        let name = |i: &Instruction<'_>| [&[i.opcode], i.modifiers.as_slice()].concat().join(".");
        let mut all: Vec<String> = body.instructions.iter().map(name).collect();
        all.pop();
        all
    }

    #[test]
    fn a_product_that_goes_into_sums_alone_is_rounded_with_them() {
        let sum = "mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;";
        assert_eq!(contracted(sum), ["fma.rn.f32"]);
        let both = "mul.f32 %f1, %f2, %f3; sub.f32 %f4, %f1, %f5; sub.f32 %f6, %f5, %f1;";
        assert_eq!(contracted(both), ["fma.rn.f32.less", "fma.rn.f32.from"]);
        let read = "mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5; max.f32 %f6, %f1, %f4;";
        assert_eq!(contracted(read), ["mul.f32", "add.f32", "max.f32"]);
        let changed = "mul.f32 %f1, %f2, %f3; mov.f32 %f3, %f5; add.f32 %f4, %f1, %f3;";
        assert_eq!(contracted(changed), ["mov.f32", "mov.f32", "fma.rn.f32"]);
        let two = "mul.f32 %f1, %f2, %f3; mul.f32 %f4, %f5, %f6; add.f32 %f7, %f1, %f4;";
        assert_eq!(contracted(two), ["mul.f32", "fma.rn.f32"]);
    }

    #[test]
    fn a_named_rounding_changed_factors_and_another_block_keep_the_product() {
        for kept in [
            "mul.rn.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;",
            "mul.f32 %f1, %f2, %f3; add.rn.f32 %f4, %f1, %f5;",
            "mul.f32 %f1, %f2, %f3; mov.f32 %f2, %f5; mov.f32 %f3, %f5; add.f32 %f4, %f1, %f5;",
            "mul.f32 %f1, %f2, %f3; $a: add.f32 %f4, %f1, %f5;",
            "@%p1 mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;",
            "mul.ftz.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;",
        ] {
            assert!(
                !contracted(kept).iter().any(|name| name.starts_with("fma")),
                "{kept}"
            );
        }
    }
}
