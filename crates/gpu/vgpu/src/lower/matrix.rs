//! Matrix instructions: `ldmatrix`, `stmatrix`, `movmatrix`, `mma.sync`, `wmma`.

use super::matrix_words::words_fragment;
use super::program::{Data, MmaF64, MmaOp, MmaScales, Op, WmmaMem, WmmaOp};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use gpu_arithmetic::Round;
use gpu_arithmetic::layout::MatrixRows;
use gpu_arithmetic::mma::{Accumulator, BlockScales, Element, Mma};
use gpu_arithmetic::wmma::{Fragment, Operand as WmmaOperand, Wmma};
use ptx::ast::{Instruction, Operand};

pub(super) fn element(word: &str) -> Option<Element> {
    Some(match word {
        "f16" => Element::F16,
        "bf16" => Element::Bf16,
        "tf32" => Element::Tf32,
        "e4m3" => Element::E4m3,
        "e5m2" => Element::E5m2,
        "e3m2" => Element::E3m2,
        "e2m3" => Element::E2m3,
        "e2m1" => Element::E2m1,
        "s8" => Element::S8,
        "u8" => Element::U8,
        "s4" => Element::S4,
        "u4" => Element::U4,
        _ => return None,
    })
}

pub(super) fn accumulator(word: &str) -> Option<Accumulator> {
    Some(match word {
        "f16" => Accumulator::F16,
        "f32" => Accumulator::F32,
        "s32" => Accumulator::S32,
        _ => return None,
    })
}

/// Returns the bytes of which the rows of a matrix in memory begin at a multiple, in shared memory and elsewhere.
///
/// CUDA C++ wants 16 bytes from one row to the next, and PTX up to 32 (PTX ISA, "Matrix Fragments for WMMA", leading
/// dimension). These are what machine code needs (ptxas 13.0, 7.5 to 12.0): `ldmatrix` for A and B in shared memory,
/// words of adjacent elements elsewhere, and pairs of sums.
fn wmma_aligns(which: &str, row_major: bool, bits: u32) -> [u64; 2] {
    let element = u64::from(bits / 8);
    let along_k = matches!((which, row_major), ("a", true) | ("b", false));
    match (which, bits) {
        ("a" | "b", 16) => [16, if along_k { 4 } else { element }],
        ("a" | "b", 8) if along_k => [16, 4],
        ("a" | "b", _) => [element; 2],
        _ => [if row_major { 2 * element } else { element }; 2],
    }
}

/// Shape of a matrix product: A is `m` by `k`, B is `k` by `n`.
#[derive(Clone, Copy)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
}

impl Shape {
    fn to_tuple(self) -> (usize, usize, usize) {
        (self.m, self.n, self.k)
    }

    fn flops(self) -> u8 {
        // Operations per lane, 2mnk/32, in units of 16 to fit a byte.
        (2 * self.m * self.n * self.k / 32 / 16).min(255) as u8
    }
}

/// Parses a shape such as `m16n8k16`.
fn shape(m: &Mods<'_>) -> Option<Shape> {
    let word =
        m.0.iter()
            .find(|w| w.starts_with('m') && w.contains('k') && w.contains('n'))?;
    let (rows, rest) = word[1..].split_once('n')?;
    let (columns, depth) = rest.split_once('k')?;
    Some(Shape {
        m: rows.parse().ok()?,
        n: columns.parse().ok()?,
        k: depth.parse().ok()?,
    })
}

/// Builds the form with the types of D, A, B and C as PTX names them.
fn build_form(m: &Mods<'_>, shape: Shape, [d, a, b, c]: [&str; 4]) -> Lowered<Mma> {
    let form = || {
        Some(Mma {
            m: shape.m,
            n: shape.n,
            k: shape.k,
            a: element(a)?,
            b: element(b)?,
            c: accumulator(c)?,
            d: accumulator(d)?,
            saturate: m.has("satfinite"),
        })
    };
    form().ok_or(Fail::Unsupported("these types"))
}

impl<'a> Lower<'a> {
    /// Lowers matrix instructions; returns `false` for any other.
    pub(super) fn matrix(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        match i.opcode {
            "ldmatrix" | "stmatrix" => self.matrix_move(i, m)?,
            "movmatrix" => {
                let [d, s] = i.operands.as_slice() else {
                    return Err(Fail::Unsupported(""));
                };
                let source = self.source(s, Kind::R32)?;
                let dest = self.dest(d, Kind::R32)?.0;
                self.push(Op::MovMatrix { dest, source }, Class::Shuffle);
            }
            "mma" => self.mma(i, m)?,
            "wmma" => self.wmma(i, m)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn matrix_move(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let count = match () {
            () if m.has("x1") => 1u8,
            () if m.has("x2") => 2,
            () if m.has("x4") => 4,
            () => return Err(Fail::Unsupported("")),
        };
        let trans = m.has("trans");
        let load = i.opcode == "ldmatrix";
        let form = match () {
            () if m.has("m8n8") && m.has("b16") && trans => MatrixRows::TransposedHalves,
            () if m.has("m8n8") && m.has("b16") => MatrixRows::Halves,
            () if !load && m.has("m16n8") && m.has("b8") && trans => MatrixRows::TransposedBytes,
            () if load && m.has("m8n16") && m.has("b6x16_p32") => MatrixRows::Packed6,
            () if load && m.has("m8n16") && m.has("b4x16_p64") => MatrixRows::Packed4,
            () if m.has("m16n16") => {
                let why =
                    "the PTX ISA has a figure only of which bytes a register of this shape holds";
                return Err(Fail::Unsupported(why));
            }
            () => return Err(Fail::Unsupported("this shape")),
        };
        let [first, second] = i.operands.as_slice() else {
            return Err(Fail::Unsupported(""));
        };
        let (registers, address) = if load {
            (first, second)
        } else {
            (second, first)
        };
        let rows = self.rows_of(registers)?;
        if rows.len() != usize::from(count) {
            return Err(Fail::Operand(format!("{count} registers are needed")));
        }
        let mut data = [0; 4];
        data[..rows.len()].copy_from_slice(&rows);
        let area = self.area(m)?;
        let at = self.address(address, area)?;
        let op = if load {
            Op::LdMatrix {
                at,
                count,
                rows: form,
                data,
            }
        } else {
            Op::StMatrix {
                at,
                count,
                rows: form,
                data,
            }
        };
        self.push(op, Class::Shared);
        Ok(())
    }

    fn mma(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let shape = shape(m).ok_or(Fail::Unsupported(""))?;
        if !m.has("row") || !m.has("col") {
            return Err(Fail::Unsupported("a layout other than row.col"));
        }
        if m.has("b1") {
            return self.mma_bits(i, m, [shape.m, shape.k]);
        }
        // The types follow the layouts: `.row.col.dtype.atype.btype.ctype`.
        let at = m.0.iter().position(|w| *w == "col").unwrap_or(0) + 1;
        let words: Vec<&str> = m.0[at..]
            .iter()
            .copied()
            .filter(|w| ptx::ast::Type::parse(w).is_some() || element(w).is_some())
            .take(4)
            .collect();
        let &[d, a, b, c] = words.as_slice() else {
            return Err(Fail::Unsupported(""));
        };
        let [od, oa, ob, oc, rest @ ..] = i.operands.as_slice() else {
            return Err(Fail::Operand("four operands are needed".to_owned()));
        };
        let sparse = self.mma_metadata(m, rest)?;
        let rest = rest.get(2..).filter(|_| sparse.is_some()).unwrap_or(rest);
        if d == "f64" {
            return self.mma_f64(m, shape, [od, oa, ob, oc]);
        }
        let mut form = build_form(m, shape, [d, a, b, c])?;
        // These kinds pack two 4-bit elements in a byte; in the others each has a byte.
        if m.has("kind::mxf4") || m.has("kind::mxf4nvf4") {
            (form.a, form.b) = (Element::PackedE2m1, Element::PackedE2m1);
        }
        let counts = match sparse {
            Some(_) => form.sparse_registers(),
            None => form.registers(),
        };
        let counts = counts.ok_or(Fail::Unsupported("this combination"))?;
        let op = MmaOp {
            form,
            a: self.fixed(oa, counts.a)?,
            b: self.fixed(ob, counts.b)?,
            c: self.fixed(oc, counts.c)?,
            d: self.fixed(od, counts.d)?,
            scales: self.mma_scales(m, rest)?,
            sparse,
        };
        let results = (form.d == Accumulator::F32).then(|| op.d.clone());
        // Products with the zeros of a sparse matrix are not computed.
        let k = if sparse.is_some() {
            shape.k / 2
        } else {
            shape.k
        };
        let flops = Shape { k, ..shape }.flops();
        self.push_flops(Op::Mma(Box::new(op)), Class::Tensor, flops);
        self.round_singles(&results.unwrap_or_default());
        Ok(())
    }

    /// Returns the row of the metadata of a sparse A and the selector of its lanes.
    fn mma_metadata(
        &mut self,
        m: &Mods<'_>,
        operands: &'a [Operand<'a>],
    ) -> Lowered<Option<(u32, u32)>> {
        if !m.has("sp") && !m.has("sp::ordered_metadata") {
            return Ok(None);
        }
        match operands {
            [metadata, Operand::Int(selector @ 0..=3), ..] => {
                Ok(Some((self.fixed(metadata, 1)?[0], *selector as u32)))
            }
            _ => Err(Fail::Operand(
                "metadata and a selector from 0 to 3 are needed".to_owned(),
            )),
        }
    }

    /// Lowers the operands of `.block_scale`: `scale-a, {byte-id, thread-id}, scale-b, {byte-id, thread-id}`.
    fn mma_scales(
        &mut self,
        m: &Mods<'_>,
        operands: &'a [Operand<'a>],
    ) -> Lowered<Option<MmaScales>> {
        if !m.has("block_scale") {
            return Ok(None);
        }
        let blocks = match () {
            // This kind has `.scale_vec::1X` only, whether it is written or not.
            () if m.has("kind::mxf8f6f4") => 1,
            () if m.has("scale_vec::4X") => 4,
            () if m.has("kind::mxf4") || m.has("kind::mxf4nvf4") => 2,
            () => return Err(Fail::Unsupported("this kind")),
        };
        let &[
            ref a,
            Operand::Vector(ref of_a),
            ref b,
            Operand::Vector(ref of_b),
        ] = operands
        else {
            return Err(Fail::Operand(
                "two scales, each with a pair that selects it, are needed".to_owned(),
            ));
        };
        let mut selector = |pair: &'a [Operand<'a>]| match pair {
            [byte, thread] => Ok([
                self.source(byte, Kind::R16)?,
                self.source(thread, Kind::R16)?,
            ]),
            _ => Err(Fail::Operand("a byte and a thread are needed".to_owned())),
        };
        let selectors = [selector(of_a)?, selector(of_b)?];
        let words = [self.fixed(a, 1)?, self.fixed(b, 1)?].map(|rows| rows[0]);
        Ok(Some(MmaScales {
            form: BlockScales {
                blocks,
                fractions: m.has("ue4m3"),
            },
            words,
            selectors,
        }))
    }

    pub(super) fn fixed(&mut self, operand: &Operand<'a>, count: usize) -> Lowered<Vec<u32>> {
        let rows = self.rows_of(operand)?;
        if rows.len() == count {
            return Ok(rows);
        }
        Err(Fail::Operand(format!(
            "{} registers where {count} are needed",
            rows.len()
        )))
    }

    fn mma_f64(
        &mut self,
        m: &Mods<'_>,
        shape: Shape,
        [d, a, b, c]: [&Operand<'a>; 4],
    ) -> Lowered<()> {
        let round = match () {
            () if m.has("rz") => Round::Rz,
            () if m.has("rm") => Round::Rm,
            () if m.has("rp") => Round::Rp,
            () => Round::Rn,
        };
        let Shape { m: rows, k, .. } = shape;
        let op = MmaF64 {
            m: rows,
            k,
            round,
            // Fragments of `.f64`: one 64-bit register holds one element of each lane.
            a: self.wide_rows(a, rows * k / 32)?,
            b: self.wide_rows(b, k / 4)?,
            c: self.wide_rows(c, rows / 4)?,
            d: self.wide_rows(d, rows / 4)?,
        };
        self.push_flops(
            Op::MmaF64(Box::new(op)),
            Class::Tensor,
            Shape { n: 8, ..shape }.flops(),
        );
        Ok(())
    }

    pub(super) fn wide_rows(&mut self, operand: &Operand<'a>, count: usize) -> Lowered<Vec<u32>> {
        let list = match operand {
            Operand::Vector(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let rows: Lowered<Vec<u32>> = list
            .iter()
            .map(|o| match o {
                Operand::Reg(_) => match self.data(o)? {
                    Data::R64(row) => Ok(row),
                    _ => Err(Fail::Operand("64-bit registers are needed".to_owned())),
                },
                _ => self.source(o, Kind::R64),
            })
            .collect();
        let rows = rows?;
        if rows.len() == count {
            return Ok(rows);
        }
        Err(Fail::Operand(format!(
            "{} registers where {count} are needed",
            rows.len()
        )))
    }

    fn wmma(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let shape = shape(m).ok_or(Fail::Unsupported(""))?;
        match m.0.first().copied() {
            Some("mma") => self.wmma_mma(i, m, shape),
            Some("load") => self.wmma_memory(i, m, shape, false),
            Some("store") => self.wmma_memory(i, m, shape, true),
            _ => Err(Fail::Unsupported("")),
        }
    }

    fn wmma_memory(
        &mut self,
        i: &'a Instruction<'a>,
        m: &Mods<'_>,
        shape: Shape,
        store: bool,
    ) -> Lowered<()> {
        let which = m.0.get(1).copied().unwrap_or_default();
        let ty = m.0.last().copied().unwrap_or_default();
        let unsupported = || Fail::Unsupported("this form");
        if ty == "f64" {
            return self.wmma_doubles(i, m, store);
        }
        let dims = shape.to_tuple();
        let fragment = match which {
            "a" | "b" if matches!(ty, "s4" | "u4" | "b1") => words_fragment(m, which),
            "a" => {
                Fragment::multiplicand(WmmaOperand::A, dims, element(ty).ok_or_else(unsupported)?)
            }
            "b" => {
                Fragment::multiplicand(WmmaOperand::B, dims, element(ty).ok_or_else(unsupported)?)
            }
            _ => Fragment::accumulator(dims, accumulator(ty).ok_or_else(unsupported)?),
        }
        .ok_or_else(unsupported)?;
        let bits = match ty {
            "f16" | "bf16" => 16,
            "s8" | "u8" => 8,
            // Elements of less than a byte are moved by words.
            _ => 32,
        };
        let (address, registers, stride) = match (store, i.operands.as_slice()) {
            (false, [r, a, stride]) => (a, r, Some(stride)),
            (true, [a, r, stride]) => (a, r, Some(stride)),
            (false, [r, a]) => (a, r, None),
            (true, [a, r]) => (a, r, None),
            _ => return Err(unsupported()),
        };
        let row_major = m.has("row");
        let stride = match stride {
            Some(s) => self.source(s, Kind::R32)?,
            None => {
                // Without a stride operand the matrix is tightly packed (PTX ISA, `wmma.load`).
                let tight = match (which, row_major) {
                    ("a", true) => shape.k,
                    ("a", false) => shape.m,
                    ("b", false) => shape.k,
                    (_, true) => shape.n,
                    (_, false) => shape.m,
                };
                self.source(&Operand::Int(tight as u64), Kind::R32)?
            }
        };
        let stride = match ty {
            "s4" | "u4" => self.stride_in_words(stride, 3),
            "b1" => self.stride_in_words(stride, 5),
            _ => stride,
        };
        let area = self.area(m)?;
        let op = WmmaMem {
            at: self.address(address, area)?,
            fragment,
            row_major,
            bits,
            stride,
            data: self.fixed(registers, fragment.registers)?,
            store,
            aligns: wmma_aligns(which, row_major, bits),
        };
        let class = if area == super::program::Area::Shared {
            Class::Shared
        } else {
            Class::Global
        };
        self.push(Op::WmmaMem(Box::new(op)), class);
        Ok(())
    }

    fn wmma_mma(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>, shape: Shape) -> Lowered<()> {
        if m.has("b1") {
            return self.mma_bits(i, m, [shape.m, shape.k]);
        }
        if let ([d, a, b, c], true) = (i.operands.as_slice(), m.has("f64")) {
            return self.mma_f64(m, shape, [d, a, b, c]);
        }
        let words: Vec<&str> =
            m.0.iter()
                .copied()
                .filter(|w| element(w).is_some() || accumulator(w).is_some())
                .collect();
        // f16 multiplicands are not named: `.dtype.ctype`; all others are `.d.a.b.c`.
        let (d, a, b, c) = match words.as_slice() {
            [d, c] => (*d, "f16", "f16", *c),
            [d, a, b, c] => (*d, *a, *b, *c),
            _ => return Err(Fail::Unsupported("")),
        };
        let form = Wmma(build_form(m, shape, [d, a, b, c])?);
        let [fa, fb, fc, fd] = form
            .fragments()
            .ok_or(Fail::Unsupported("this combination"))?;
        let [od, oa, ob, oc] = i.operands.as_slice() else {
            return Err(Fail::Operand("four operands are needed".to_owned()));
        };
        let op = WmmaOp {
            form,
            a: self.fixed(oa, fa.registers)?,
            b: self.fixed(ob, fb.registers)?,
            c: self.fixed(oc, fc.registers)?,
            d: self.fixed(od, fd.registers)?,
        };
        let results = (op.form.0.d == Accumulator::F32).then(|| op.d.clone());
        self.push_flops(Op::WmmaMma(Box::new(op)), Class::Tensor, shape.flops());
        self.round_singles(&results.unwrap_or_default());
        Ok(())
    }
}
