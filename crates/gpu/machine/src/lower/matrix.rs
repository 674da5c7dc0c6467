//! Matrix products.

use sass::Instruction;

use super::{Form, Run};
use crate::registers::{Dest, Origin, Registers, Source};
use gpu_arithmetic::mma::{
    Accumulator, BlockScales, Element, Mma, ScaleOperand, SparseOperands, mma_f64,
};
use gpu_arithmetic::{Lanes, Round, layout};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "HMMA" | "IMMA" | "QMMA" | "OMMA" => product(i),
        "DMMA" => double_product(i),
        "MOVM" => transposed(i),
        _ => None,
    }
}

fn shape(i: &Instruction) -> Option<(usize, usize, usize)> {
    // The mark of a scaled or sparse product stands before the shape.
    let shape = i
        .modifiers
        .iter()
        .find(|name| !matches!(**name, "SF" | "SP"))?;
    Some(match *shape {
        "1688" => (16, 8, 8),
        "1684" => (16, 8, 4),
        "16816" => (16, 8, 16),
        "16832" => (16, 8, 32),
        "16864" => (16, 8, 64),
        "168128" => (16, 8, 128),
        "8816" => (8, 8, 16),
        "8832" => (8, 8, 32),
        _ => return None,
    })
}

fn element(name: &str) -> Option<Element> {
    Some(match name {
        "S8" => Element::S8,
        "U8" => Element::U8,
        "S4" => Element::S4,
        "U4" => Element::U4,
        "E4M3" => Element::E4m3,
        "E5M2" => Element::E5m2,
        "E3M2" => Element::E3m2,
        "E2M3" => Element::E2m3,
        "E2M1" => Element::E2m1,
        _ => return None,
    })
}

/// Returns the types of A, B and the accumulators of a product, of one warp or of a warp-group.
pub(super) fn types(i: &Instruction) -> Option<(Element, Element, Accumulator)> {
    let named = i.modifiers.iter().skip(1).filter_map(|m| element(m));
    let named: Vec<Element> = named.collect();
    let (a, b) = match (i.opcode, named.as_slice()) {
        ("IMMA" | "QMMA" | "IGMMA" | "QGMMA", &[a, b]) => (a, b),
        ("OMMA", &[Element::E2m1, Element::E2m1]) => (Element::PackedE2m1, Element::PackedE2m1),
        ("HMMA" | "HGMMA", []) if i.has("TF32") => (Element::Tf32, Element::Tf32),
        ("HMMA" | "HGMMA", []) if i.has("BF16") => (Element::Bf16, Element::Bf16),
        ("HMMA" | "HGMMA", []) => (Element::F16, Element::F16),
        _ => return None,
    };
    let accumulator = match i.opcode {
        "IMMA" | "IGMMA" => Accumulator::S32,
        _ if i.has("F32") => Accumulator::F32,
        _ if i.has("F16") => Accumulator::F16,
        _ => return None,
    };
    Some((a, b, accumulator))
}

fn form_of(i: &Instruction) -> Option<Mma> {
    let (m, n, k) = shape(i)?;
    let known = [
        "F32", "F16", "BF16", "TF32", "SAT", "ROW", "COL", "16832", "16864", "168128", "E8",
        "UE4M3", "4X", "1688", "16816",
    ];
    let all_known = |m: &&'static str| known.contains(m) || element(m).is_some();
    if !i.modifiers.iter().skip(1).all(all_known) {
        return None;
    }
    let (a, b, accumulator) = types(i)?;
    Some(Mma {
        m,
        n,
        k,
        a,
        b,
        c: accumulator,
        d: accumulator,
        saturate: i.has("SAT"),
    })
}

/// Reads consecutive registers, or zeros.
fn registers(r: &Registers, s: &Source, count: usize) -> [Lanes; 8] {
    let mut out = [[0; 32]; 8];
    if let Origin::Row(first) = s.from {
        for (n, row) in (0u8..).zip(out.iter_mut().take(count)) {
            *row = r.raw(Origin::Row(first.saturating_add(n)));
        }
    }
    out
}

fn product(i: &Instruction) -> Option<Run> {
    let mma = form_of(i)?;
    let counts = match i.has("SP") {
        true => mma.sparse_registers()?,
        false => mma.registers()?,
    };
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let [a, b, c] = form.first_three()?;
    let scales = match i.has("SF") {
        true => Some(Scales::new(i, &form)?),
        false => None,
    };
    let sparse = match i.has("SP") {
        true => Some(Metadata::new(&form)?),
        false => None,
    };
    // Fragments are registers of the lanes, or all zero.
    let plain = |s: &Source| matches!(s.from, Origin::Row(_) | Origin::Value(0));
    let most = match (&scales, &sparse) {
        (None, None) => 3,
        (None, Some(_)) => 5,
        _ => 6,
    };
    if ![a, b, c].iter().all(plain) || counts.a > 8 || form.sources.len() > most {
        return None;
    }
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (
            registers(r, &a, counts.a),
            registers(r, &b, counts.b),
            registers(r, &c, counts.c),
        );
        let a: Vec<&Lanes> = a.iter().take(counts.a).collect();
        let b: Vec<&Lanes> = b.iter().take(counts.b).collect();
        let c: Vec<&Lanes> = c.iter().take(counts.c).collect();
        let mut out = [[0; 32]; 8];
        let results = &mut out[..counts.d];
        match (&scales, &sparse) {
            (None, None) => mma.run(&a, &b, &c, results),
            (None, Some(sparse)) => sparse.run(r, &mma, [&a, &b, &c], results),
            (Some(scales), _) => scales.run(r, &mma, [&a, &b, &c], results),
        }
        for (n, row) in (0u8..).zip(out.iter().take(counts.d)) {
            r.set(d.next(n), mask, row);
        }
    }))
}

/// Metadata of a sparse A: after the accumulators their register, and the number of the first lane of four.
struct Metadata {
    words: Source,
    selector: u32,
}

impl Metadata {
    fn new(form: &Form) -> Option<Metadata> {
        let Origin::Value(selector) = form.source(4)?.from else {
            return None;
        };
        Some(Metadata {
            words: form.source(3)?,
            selector: selector as u32,
        })
    }

    fn run(&self, r: &Registers, mma: &Mma, [a, b, c]: [&[&Lanes]; 3], out: &mut [Lanes]) {
        let metadata = &r.int(&self.words);
        let selector = self.selector;
        let operands = SparseOperands {
            a,
            b,
            c,
            metadata,
            selector,
        };
        mma.run_sparse(operands, out);
    }
}

/// Scales of A and B: after the accumulators their registers, and a uniform register that selects among them.
struct Scales {
    form: BlockScales,
    words: [Source; 2],
    selector: Source,
}

impl Scales {
    fn new(i: &Instruction, form: &Form) -> Option<Scales> {
        let blocks = match (i.opcode, i.has("4X")) {
            ("QMMA", _) => 1,
            (_, false) => 2,
            (_, true) => 4,
        };
        Some(Scales {
            form: BlockScales {
                blocks,
                fractions: i.has("UE4M3"),
            },
            words: [form.source(3)?, form.source(4)?],
            selector: form.source(5)?,
        })
    }

    /// Computes a product. The selector has, as ptxas packs it, byte and thread of A (from bits 0 and 2 on) and
    /// of B (from 3 and 5).
    fn run(&self, r: &Registers, mma: &Mma, operands: [&[&Lanes]; 3], out: &mut [Lanes]) {
        let [of_a, of_b] = self.words.map(|source| r.int(&source));
        let selector = r.int(&self.selector)[0];
        let operand = |words, byte: u32, thread: u32| ScaleOperand {
            words,
            byte: byte & 3,
            thread: thread & 3,
        };
        let scales = [
            operand(&of_a, selector, selector >> 2 & 1),
            operand(&of_b, selector >> 3, selector >> 5),
        ];
        self.form.run(mma, operands, out, scales);
    }
}

fn double_product(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (m, k) = match *i.modifiers.first()? {
        "884" | "8x8x4" => (8, 4),
        "16x8x4" => (16, 4),
        "16x8x8" => (16, 8),
        "16x8x16" => (16, 16),
        _ => return None,
    };
    if i.modifiers.len() > 1 {
        return None;
    }
    let d = form.dest?;
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let wide = |r: &Registers, s: &Source, count: usize| -> Vec<[u64; 32]> {
        (0..count)
            .map(|n| match s.from {
                Origin::Row(first) => r.raw_wide(Origin::Row(first.saturating_add(2 * n as u8))),
                _ => [0; 32],
            })
            .collect()
    };
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (
            wide(r, &a, m * k / 32),
            wide(r, &b, k / 4),
            wide(r, &c, m / 4),
        );
        let mut out = vec![[0; 32]; m / 4];
        mma_f64(m, k, &a, &b, &c, &mut out, Round::Rn);
        for (n, row) in (0u8..).zip(&out) {
            r.set_wide(Dest::next(d, 2 * n), mask, row);
        }
    }))
}

fn transposed(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (d, a) = (form.dest?, form.source(0)?);
    if i.modifiers != ["16", "MT88"] {
        return None;
    }
    Some(Box::new(move |r, mask| {
        let out = layout::movmatrix(&r.int(&a));
        r.set(d, mask, &out);
    }))
}
