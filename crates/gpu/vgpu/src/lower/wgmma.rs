//! Products of a warp-group: `wgmma` (PTX ISA, 9.7.15), and registers that asynchronous instructions use.

use super::program::{FragmentUse, NONE, Op, SparsePlaces, Wgmma, WgmmaSource};
use super::{FRAGMENT, Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use gpu_arithmetic::mma::{Accumulator, Element, Mma};
use ptx::ast::{Body, Instruction, Operand, Reg};
use ptx::definedness::{destinations, sources};
use ptx::intent::registers;
use std::collections::HashMap;

/// Registers of a function that asynchronous instructions use, by their numbers in the program: accumulators
/// and rows of A of `wgmma`, results of `tcgen05.ld`, and the registers that `mov` copies them from and to.
#[derive(Debug, Default)]
pub(super) struct Fragments(HashMap<Reg, u32>);

impl Fragments {
    /// Finds the registers in a function's body; the first gets the number `first`.
    pub(super) fn find(body: &Body<'_>, first: u32) -> Self {
        let mut found = HashMap::new();
        let mut number = first;
        let mut add = |found: &mut HashMap<Reg, u32>, reg: Reg| {
            let fresh = !found.contains_key(&reg);
            if fresh {
                found.insert(reg, number);
                number += 1;
            }
            fresh
        };
        for i in body.instructions.iter().filter(|i| is_product(i)) {
            // A single register of a product is a descriptor.
            let product = i.opcode == "wgmma";
            let fragments = i.operands.iter().take(1 + usize::from(product));
            for operand in fragments {
                if matches!(operand, Operand::Vector(_)) || !product {
                    let mut named = Vec::new();
                    registers(operand, &mut named);
                    named.into_iter().for_each(|reg| {
                        add(&mut found, reg);
                    });
                }
            }
        }
        // Compilers copy accumulators around loops: a copy in flight is as unfinished as its source.
        let mut grows = !found.is_empty();
        while grows {
            grows = false;
            for (from, to) in body.instructions.iter().filter_map(copied) {
                if found.contains_key(&from) || found.contains_key(&to) {
                    grows |= add(&mut found, from) | add(&mut found, to);
                }
            }
        }
        Self(found)
    }

    /// Returns the number of registers.
    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    fn numbers(&self, named: &[Reg]) -> Vec<u32> {
        named
            .iter()
            .filter_map(|reg| self.0.get(reg).copied())
            .collect()
    }

    /// Returns how an instruction other than a product uses the registers; `None` where it uses none.
    fn usage(&self, i: &Instruction<'_>) -> Option<FragmentUse> {
        let mut read = Vec::new();
        sources(i).iter().for_each(|o| registers(o, &mut read));
        let uses = FragmentUse {
            reads: self.numbers(&read),
            writes: self.numbers(&destinations(i)),
            copies: copied(i).is_some(),
            constant: i.opcode == "mov" && read.is_empty(),
        };
        (!uses.reads.is_empty() || !uses.writes.is_empty()).then_some(uses)
    }
}

fn is_product(i: &Instruction<'_>) -> bool {
    i.opcode == "wgmma" && i.modifiers.contains(&"mma_async")
        || i.opcode == "tcgen05" && i.modifiers.contains(&"ld")
}

/// Returns the registers of a plain copy: from, to.
fn copied(i: &Instruction<'_>) -> Option<(Reg, Reg)> {
    match (i.opcode, i.operands.as_slice()) {
        ("mov", [Operand::Reg(to), Operand::Reg(from)]) => Some((*from, *to)),
        _ => None,
    }
}

impl<'a> Lower<'a> {
    /// Lowers `wgmma`; returns `false` for any other instruction.
    pub(super) fn warpgroup(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        if i.opcode != "wgmma" {
            return Ok(false);
        }
        self.program.partial_sync = true;
        match m.0.first().copied().unwrap_or_default() {
            "fence" => self.push(Op::WgmmaFence, Class::Sync),
            "commit_group" => self.push(Op::WgmmaCommit, Class::Sync),
            "wait_group" => {
                let Some(Operand::Int(left)) = i.operands.first() else {
                    return Err(Fail::Operand("a constant is needed".to_owned()));
                };
                self.push(Op::WgmmaWait(*left as u32), Class::Sync);
            }
            "mma_async" => self.product(i, m)?,
            _ => return Err(Fail::Unsupported("")),
        }
        Ok(true)
    }

    fn product(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let sparse = m.has("sp");
        let (form, columns) = form(m)?;
        let counts = match sparse {
            true => form.sparse_registers(),
            false => form.registers(),
        };
        let counts = counts.ok_or(Fail::Unsupported("these types"))?;
        let [od, oa, ob, rest @ ..] = i.operands.as_slice() else {
            return Err(Fail::Operand("three operands are needed".to_owned()));
        };
        let d = self.rows_of(od)?;
        let wanted = counts.d * columns as usize / 8;
        if d.len() != wanted {
            let have = d.len();
            return Err(Fail::Operand(format!(
                "{have} accumulators where {wanted} are needed"
            )));
        }
        let in_registers = matches!(oa, Operand::Vector(_));
        let a = if in_registers {
            let rows = self.rows_of(oa)?;
            if rows.len() != counts.a {
                return Err(Fail::Operand(format!("A needs {} registers", counts.a)));
            }
            WgmmaSource::Registers(rows)
        } else {
            WgmmaSource::Descriptor(self.source(oa, Kind::R64)?)
        };
        let (places, rest) = match rest {
            [metadata, Operand::Int(selector), rest @ ..] if sparse => {
                let metadata = self.source(metadata, Kind::R32)?;
                (
                    Some(SparsePlaces {
                        metadata,
                        selector: *selector as u32,
                    }),
                    rest,
                )
            }
            _ if sparse => return Err(Fail::Operand("metadata are missing".to_owned())),
            rest => (None, rest),
        };
        let [scale_d, immediates @ ..] = rest else {
            return Err(Fail::Operand("scale-d is missing".to_owned()));
        };
        let (adds, adds_negated) = self.scale(scale_d)?;
        let [negate, transposed] = immediate_operands(immediates, in_registers)?;
        if transposed.contains(&true) && form.a.per_register() != 2 {
            return Err(Fail::Operand(
                "only 16-bit types may be transposed".to_owned(),
            ));
        }
        let fragments_d = self.fragment_numbers(od);
        let fragments_a = match in_registers {
            true => self.fragment_numbers(oa),
            false => Vec::new(),
        };
        let op = Wgmma {
            form,
            columns,
            d,
            a,
            b: self.source(ob, Kind::R64)?,
            adds,
            adds_negated,
            negate,
            transposed,
            places,
            fragments_d,
            fragments_a,
        };
        self.push(Op::Wgmma(Box::new(op)), Class::Tensor);
        Ok(())
    }

    /// Returns the predicate row of `scale-d` (`NONE` where it is a constant) and whether it is negated,
    /// or, for a constant, false.
    pub(super) fn scale(&mut self, operand: &Operand<'a>) -> Lowered<(u32, bool)> {
        match operand {
            Operand::Int(value) => Ok((NONE, *value == 0)),
            Operand::Reg(reg) => Ok((self.pred_row(*reg)?, false)),
            Operand::Not(reg) => Ok((self.pred_row(*reg)?, true)),
            _ => Err(Fail::Operand("scale-d is a predicate".to_owned())),
        }
    }

    /// Returns the numbers of the registers of a vector, or of a single register.
    pub(super) fn fragment_numbers(&self, operand: &Operand<'a>) -> Vec<u32> {
        let mut named = Vec::new();
        if matches!(operand, Operand::Vector(_) | Operand::Reg(_)) {
            registers(operand, &mut named);
        }
        self.function.fragments.numbers(&named)
    }

    /// Marks the code of an instruction, from `first` on, that reads or writes fragments.
    pub(super) fn mark_fragments(&mut self, i: &Instruction<'a>, first: usize) {
        if self.function.fragments.len() == 0 || is_product(i) {
            return;
        }
        let Some(uses) = self.function.fragments.usage(i) else {
            return;
        };
        if let Some(inst) = self.program.code.get_mut(first) {
            inst.marks |= FRAGMENT;
            self.program.fragment_uses.insert(first as u32, uses);
        }
    }
}

/// Returns the form of one block of 16 rows and 8 columns, and the number of columns.
fn form(m: &Mods<'_>) -> Lowered<(Mma, u32)> {
    let unsupported = || Fail::Unsupported("this shape");
    let shape = m.0.iter().find(|word| word.starts_with("m64n"));
    let (columns, depth) = shape
        .and_then(|word| word.strip_prefix("m64n")?.split_once('k'))
        .ok_or_else(unsupported)?;
    let columns: u32 = columns.parse().map_err(|_| unsupported())?;
    let depth: usize = depth.parse().map_err(|_| unsupported())?;
    if columns == 0 || !columns.is_multiple_of(8) || columns > 256 {
        return Err(unsupported());
    }
    let at = m.0.iter().position(|word| word.starts_with("m64n"));
    let types = m.0.iter().skip(at.unwrap_or(0) + 1).copied();
    let types: Vec<&str> = types.filter(|word| *word != "satfinite").collect();
    let [d, a, b, ..] = types.as_slice() else {
        return Err(Fail::Unsupported("without types"));
    };
    let types = || Some((accumulator(d)?, multiplicand(a)?, multiplicand(b)?));
    let (d, a, b) = types().ok_or(Fail::Unsupported("these types"))?;
    // Every type has 32 bytes of a row in one step, and a sparse A leaves out half of them.
    if depth != 8 * a.per_register() * (1 + usize::from(m.has("sp"))) {
        return Err(unsupported());
    }
    let form = Mma {
        m: 16,
        n: 8,
        k: depth,
        a,
        b,
        c: d,
        d,
        saturate: m.has("satfinite"),
    };
    Ok((form, columns))
}

fn multiplicand(word: &str) -> Option<Element> {
    match super::matrix::element(word)? {
        Element::S4 | Element::U4 | Element::E3m2 | Element::E2m3 | Element::E2m1 => None,
        element => Some(element),
    }
}

fn accumulator(word: &str) -> Option<Accumulator> {
    super::matrix::accumulator(word)
}

/// Returns the signs of A and B and their transpositions: `imm-scale-a, imm-scale-b, imm-trans-a,
/// imm-trans-b`. A in registers has no transposition, integers have no signs.
fn immediate_operands(operands: &[Operand<'_>], in_registers: bool) -> Lowered<[[bool; 2]; 2]> {
    let values: Option<Vec<i64>> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Int(value) => Some(*value as i64),
            _ => None,
        })
        .collect();
    let wrong = || Fail::Operand("scales are 1 or -1, transpositions 0 or 1".to_owned());
    let values = values.ok_or_else(wrong)?;
    let (signs, transpositions) = values.split_at(values.len().min(2));
    let right = signs.iter().all(|sign| matches!(sign, 1 | -1))
        && transpositions.iter().all(|flag| matches!(flag, 0 | 1));
    if !right {
        return Err(wrong());
    }
    let negative = |index: usize| signs.get(index) == Some(&-1);
    let negate = [negative(0), negative(1)];
    let transposed = match transpositions {
        [] => [false; 2],
        [b] if in_registers => [false, *b == 1],
        [a, b] => [*a == 1, *b == 1],
        _ => return Err(wrong()),
    };
    Ok([negate, transposed])
}
