//! Products in tensor memory: `tcgen05` (PTX ISA, 9.7.16).

use super::program::{
    Area, NONE, Op, ReduxNumbers, Stationary, TensorMemoryOp, TensorProduct, TensorReduction,
    TensorSource, TensorTransfer,
};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use crate::tensor_core::{Fill, ProductKind, Shape};
use ptx::ast::{Instruction, Operand, Type};

impl<'a> Lower<'a> {
    /// Lowers `tcgen05`; returns `false` for any other instruction.
    pub(super) fn tensor_core(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        if i.opcode != "tcgen05" {
            return Ok(false);
        }
        self.program.partial_sync = true;
        self.program.tensor_memory = true;
        let operand = |n: usize| {
            let missing = || Fail::Operand("operands are missing".to_owned());
            i.operands.get(n).ok_or_else(missing)
        };
        let (op, class) = match m.0.first().copied().unwrap_or_default() {
            "alloc" => {
                let at = self.address(operand(0)?, Area::Shared)?;
                let columns = self.source(operand(1)?, Kind::R32)?;
                (TensorMemoryOp::Allocate { at, columns }, Class::Sync)
            }
            "dealloc" => {
                let first = self.source(operand(0)?, Kind::R32)?;
                let columns = self.source(operand(1)?, Kind::R32)?;
                (TensorMemoryOp::Free { first, columns }, Class::Sync)
            }
            "relinquish_alloc_permit" => (TensorMemoryOp::Relinquish, Class::Sync),
            "ld" => (
                TensorMemoryOp::Load(self.tensor_transfer(i, m, [0, 1])?),
                Class::Shared,
            ),
            "st" => {
                // The distance of two halves precedes the registers.
                let data = match i.operands.get(1) {
                    Some(Operand::Int(_)) => 2,
                    _ => 1,
                };
                let store = self.tensor_transfer(i, m, [data, 0])?;
                (TensorMemoryOp::Store(store), Class::Shared)
            }
            "wait::ld" => (TensorMemoryOp::WaitLoads, Class::Sync),
            "wait::st" => (TensorMemoryOp::WaitStores, Class::Sync),
            "cp" => (self.tensor_fill(i, m)?, Class::Shared),
            "shift" if m.has("down") => {
                let at = self.address(operand(0)?, Area::Shared)?;
                let blocks = blocks(m)?;
                (TensorMemoryOp::Shift { at, blocks }, Class::Shared)
            }
            "mma" => {
                let product = self.tensor_product(i, m)?;
                (TensorMemoryOp::Product(Box::new(product)), Class::Tensor)
            }
            "commit" => {
                let at = self.address(operand(0)?, Area::Cluster)?;
                let multicast = match m.has("multicast::cluster") {
                    true => self.source(operand(1)?, Kind::R32)?,
                    false => NONE,
                };
                (TensorMemoryOp::Commit { at, multicast }, Class::Sync)
            }
            // What orders the two sides of such a fence is the synchronisation between them.
            "fence::before_thread_sync" | "fence::after_thread_sync" => {
                self.push(Op::Nop, Class::Sync);
                return Ok(true);
            }
            _ => return Err(Fail::Unsupported("")),
        };
        self.push(Op::TensorMemory(Box::new(op)), class);
        Ok(true)
    }

    /// Lowers the operands of `ld` and `st`, whose registers and address are those with these
    /// numbers.
    fn tensor_transfer(
        &mut self,
        i: &'a Instruction<'a>,
        m: &Mods<'_>,
        places: [usize; 2],
    ) -> Lowered<TensorTransfer> {
        let shape = m.0.iter().find_map(|word| Shape::by_name(word));
        let shape = shape.ok_or(Fail::Unsupported("this shape"))?;
        let [data, at] = places.map(|place| i.operands.get(place));
        let (Some(data), Some(at)) = (data, at) else {
            return Err(Fail::Operand(
                "registers and an address are needed".to_owned(),
            ));
        };
        let fragments = match places {
            [0, _] => self.fragment_numbers(data),
            _ => Vec::new(),
        };
        let mut rows = self.rows_of(data)?;
        let reduction = match m.has("red") {
            true => Some(reduction(m, shape, rows.pop())?),
            false => None,
        };
        let repeats =
            m.0.iter()
                .find_map(|word| word.strip_prefix('x')?.parse::<usize>().ok());
        let wanted = repeats.unwrap_or(1) * shape.registers();
        if rows.len() != wanted {
            let have = rows.len();
            return Err(Fail::Operand(format!(
                "{have} registers where {wanted} are needed"
            )));
        }
        let is_number = |operand: &&Operand<'_>| matches!(operand, Operand::Int(_));
        let shape = match (shape, i.operands.iter().find(is_number)) {
            (Shape::Halves(_), Some(Operand::Int(distance))) => Shape::Halves(*distance as u32),
            (Shape::Halves(_), _) => {
                return Err(Fail::Operand("a constant distance is needed".to_owned()));
            }
            (shape, _) => shape,
        };
        Ok(TensorTransfer {
            shape,
            packed: m.has("pack::16b") || m.has("unpack::16b"),
            at: self.address(at, Area::Shared)?,
            data: rows,
            fragments,
            reduction,
        })
    }

    /// Lowers `tcgen05.cp`.
    fn tensor_fill(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<TensorMemoryOp> {
        let has = |word: &str| m.has(word);
        let packed_bits = match () {
            () if has("b4x16_p64") => 4,
            () if has("b6x16_p32") => 6,
            () => 0,
        };
        let (rows, bytes) = match () {
            () if has("128x256b") => (128, 32),
            () if has("128x128b") => (128, 16),
            () if has("4x256b") => (4, 32),
            () if has("64x128b") => (64, 16),
            () if has("32x128b") => (32, 16),
            () => return Err(Fail::Unsupported("this shape")),
        };
        let copies = match () {
            () if has("warpx4") => Fill::ALL_QUARTERS,
            () if has("warpx2::02_13") => Fill::ALTERNATING,
            () if has("warpx2::01_23") => Fill::PAIRS,
            () => Fill::ONCE,
        };
        let [at, descriptor, ..] = i.operands.as_slice() else {
            return Err(Fail::Operand(
                "an address and a descriptor are needed".to_owned(),
            ));
        };
        Ok(TensorMemoryOp::Fill {
            at: self.address(at, Area::Shared)?,
            descriptor: self.source(descriptor, Kind::R64)?,
            fill: Fill {
                rows,
                bytes,
                copies,
                packed_bits,
            },
            blocks: blocks(m)?,
        })
    }

    fn tensor_product(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<TensorProduct> {
        if m.has("sp") {
            let why = "sparse: the PTX ISA has figures only of the metadata in tensor memory";
            return Err(Fail::Unsupported(why));
        }
        let kind =
            m.0.iter()
                .find_map(|word| ProductKind::by_name(word.strip_prefix("kind::")?));
        let kind = kind.ok_or(Fail::Unsupported("this kind"))?;
        let missing = || Fail::Operand("operands are missing".to_owned());
        let [d, a, b, form, rest @ ..] = i.operands.as_slice() else {
            return Err(missing());
        };
        let a = match a {
            Operand::Address(..) => TensorSource::Memory(self.address(a, Area::Shared)?),
            _ => TensorSource::Descriptor(self.source(a, Kind::R64)?),
        };
        let mut rest = rest;
        let mut scales = None;
        if let ([sa, sb, more @ ..], true) = (rest, kind.is_scaled()) {
            scales = Some([
                self.address(sa, Area::Shared)?,
                self.address(sb, Area::Shared)?,
            ]);
            rest = more;
        }
        let mut disabled = Vec::new();
        if let [lanes @ Operand::Vector(_), more @ ..] = rest {
            disabled = self.rows_of(lanes)?;
            rest = more;
        }
        let [enable, more @ ..] = rest else {
            return Err(missing());
        };
        let (adds, adds_negated) = self.scale(enable)?;
        let stationary = match m.has("ws") {
            true => Some(self.stationary(m, more.first())?),
            false => None,
        };
        let shift = match more.first() {
            _ if stationary.is_some() => 0,
            None => 0,
            Some(Operand::Int(shift)) => *shift as u32,
            Some(_) => return Err(Fail::Operand("scale-input-d is a constant".to_owned())),
        };
        Ok(TensorProduct {
            kind,
            d: self.address(d, Area::Shared)?,
            a,
            b: self.source(b, Kind::R64)?,
            form: self.source(form, Kind::R32)?,
            scales,
            scales_each: scale_blocks(kind, m)?,
            disabled,
            adds,
            adds_negated,
            shift,
            blocks: blocks(m)?,
            shifts: m.has("ashift"),
            stationary,
        })
    }

    /// Lowers the use of a buffer of B, and a mask of its columns.
    fn stationary(
        &mut self,
        m: &Mods<'_>,
        columns: Option<&'a Operand<'a>>,
    ) -> Lowered<Stationary> {
        let word =
            m.0.iter()
                .find_map(|word| word.strip_prefix("collector::b"));
        let (buffer, usage) = word
            .and_then(|word| word.split_once("::"))
            .unwrap_or(("0", "discard"));
        let buffer = buffer.parse().ok().filter(|buffer| *buffer < 4);
        Ok(Stationary {
            buffer: buffer.ok_or(Fail::Unsupported("this buffer"))?,
            reads: matches!(usage, "use" | "lastuse"),
            keeps: matches!(usage, "fill" | "use"),
            columns: match columns {
                Some(columns) => self.source(columns, Kind::R64)?,
                None => NONE,
            },
        })
    }
}

/// Returns the reduction of a load, whose result is the last of its registers.
fn reduction(m: &Mods<'_>, shape: Shape, dest: Option<u32>) -> Lowered<TensorReduction> {
    if let Shape::Halves(_) = shape {
        let why = "the PTX ISA does not say which halves a reduction combines";
        return Err(Fail::Unsupported(why));
    }
    let numbers = match m.ty() {
        Some(Type::F32) => ReduxNumbers::Floats {
            nan: m.has("NaN"),
            absolute: m.has("abs"),
        },
        Some(Type::S32) => ReduxNumbers::Signed,
        Some(Type::U32) => ReduxNumbers::Unsigned,
        _ => return Err(Fail::Unsupported("this type")),
    };
    Ok(TensorReduction {
        max: m.has("max"),
        numbers,
        dest: dest.ok_or(Fail::Operand("a register is needed".to_owned()))?,
    })
}

/// Returns the scales of a row of a product.
fn scale_blocks(kind: ProductKind, m: &Mods<'_>) -> Lowered<usize> {
    let named = m.0.iter().find_map(|word| match *word {
        "scale_vec::1X" => Some(1),
        "scale_vec::2X" => Some(2),
        "scale_vec::4X" => Some(4),
        "block16" => Some(4),
        "block32" if kind == ProductKind::ScaledF4 => Some(2),
        _ => None,
    });
    match (kind, named) {
        (ProductKind::ScaledF8f6f4, None | Some(1)) => Ok(1),
        (ProductKind::ScaledF4, None) => Ok(2),
        (ProductKind::ScaledF4, Some(blocks @ (2 | 4))) => Ok(blocks),
        (_, None) => Ok(0),
        _ => Err(Fail::Unsupported("this number of scales")),
    }
}

/// Returns the blocks of `.cta_group`.
fn blocks(m: &Mods<'_>) -> Lowered<u32> {
    match () {
        () if m.has("cta_group::1") => Ok(1),
        () if m.has("cta_group::2") => Ok(2),
        () => Err(Fail::Operand("`.cta_group` is missing".to_owned())),
    }
}
