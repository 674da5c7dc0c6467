//! Products in tensor memory.

use sass::{Address, Instruction, Operand, Register};

use super::memory::addresses;
use crate::op::Op;
use crate::registers::{Dest, Origin, Pred, Source};
use crate::tensor_core::{TensorCoreOp, TensorPlace, TensorProduct, TensorSource, TensorTransfer};
use vgpu::tensor_core::{Fill, ProductKind, Shape};

pub(super) fn lower(i: &Instruction) -> Option<Op> {
    let op = match i.opcode {
        "UTCATOMSWS" if i.has("FIND_AND_SET") => allocate(i)?,
        "UTCATOMSWS" if i.has("AND") => TensorCoreOp::Keep(source(i.operands.get(1)?)?),
        "LDTM" | "STTM" => TensorCoreOp::Transfer(transfer(i)?),
        "UTCCP" => copy(i)?,
        "UTCHMMA" | "UTCIMMA" | "UTCQMMA" | "UTCOMMA" => TensorCoreOp::Product(product(i)?),
        "UTCSHIFT" => TensorCoreOp::Shift {
            at: tensor_place(addresses(i).first()?)?,
            pair: i.has("2CTA"),
        },
        "UTCBAR" => commit(i)?,
        "UGETNEXTWORKID" if i.has("SELFCAST") || i.has("BROADCAST") => {
            let places = addresses(i);
            TensorCoreOp::RequestBlock {
                at: places.first()?.uniform?.index,
                barrier: places.get(1)?.uniform?.index,
                everywhere: i.has("BROADCAST"),
            }
        }
        // Returns threads to a pool, for allocations of other blocks.
        "UVIRTCOUNT" => return Some(Op::Nothing),
        _ => return None,
    };
    Some(Op::TensorCore(Box::new(op)))
}

fn source(operand: &Operand) -> Option<Origin> {
    Some(Source::from_operand(operand)?.from)
}

fn registers(i: &Instruction) -> impl Iterator<Item = &Register> {
    i.operands.iter().filter_map(|operand| match operand {
        Operand::Register(register) => Some(register),
        _ => None,
    })
}

fn allocate(i: &Instruction) -> Option<TensorCoreOp> {
    let [granted, first, units] = i.operands.as_slice() else {
        return None;
    };
    Some(TensorCoreOp::Allocate {
        pair: i.has("2CTA"),
        granted: Pred::from_operand(granted)?,
        first: Dest::from_operand(first)?,
        units: source(units)?,
    })
}

fn tensor_place(address: &Address) -> Option<TensorPlace> {
    (address.kind == "tmem").then_some(())?;
    Some(TensorPlace {
        register: address.uniform?.index,
        offset: address.offset as u32,
    })
}

fn transfer(i: &Instruction) -> Option<TensorTransfer> {
    let (shape, threads) = match () {
        () if i.has("16dp64bit") => (Shape::Lanes16Bits64, u32::MAX),
        () if i.has("16dp128bit") => (Shape::Lanes16Bits128, u32::MAX),
        () if i.has("16dp256bit") => (Shape::Lanes16Bits256, u32::MAX),
        // The halves of `.16x32bx2` are separate instructions.
        () if i.has("16dp32bit_t0_t15") => (Shape::Halves(0), 0xffff),
        () if i.has("16dp32bit_t16_t31") => (Shape::Halves(0), 0xffff_0000),
        () => (Shape::Lanes32Bits32, u32::MAX),
    };
    let repeats = i
        .modifiers
        .iter()
        .find_map(|m| m.strip_prefix('x')?.parse::<usize>().ok());
    Some(TensorTransfer {
        shape,
        threads,
        packed: i.has("PACK16BIT") || i.has("EXPAND16BIT"),
        at: tensor_place(addresses(i).first()?)?,
        registers: (repeats.unwrap_or(1) * shape.registers()) as u8,
        data: registers(i).next()?.index,
        stores: i.opcode == "STTM",
    })
}

fn copy(i: &Instruction) -> Option<TensorCoreOp> {
    let packed_bits = match () {
        () if i.has("U4x16P64") => 4,
        () if i.has("U6x16P32") => 6,
        () => 0,
    };
    let (rows, bytes, copies) = match () {
        () if i.has("4dp256bit") => (4, 32, Fill::ONCE),
        () if i.has("128dp128bit") => (128, 16, Fill::ONCE),
        () if i.has("2x64dp128bit_lw02_lw13") => (64, 16, Fill::ALTERNATING),
        () if i.has("2x64dp128bit_lw01_lw23") => (64, 16, Fill::PAIRS),
        () if i.has("4x32dp128bit") => (32, 16, Fill::ALL_QUARTERS),
        () => (128, 32, Fill::ONCE),
    };
    let places = addresses(i);
    Some(TensorCoreOp::Fill {
        at: tensor_place(places.first()?)?,
        descriptor: places.get(1)?.uniform?.index,
        fill: Fill {
            rows,
            bytes,
            copies,
            packed_bits,
        },
        pair: i.has("2CTA"),
    })
}

fn product(i: &Instruction) -> Option<TensorProduct> {
    let places = addresses(i);
    let [a, b, d, _, form, scales @ ..] = places.as_slice() else {
        return None;
    };
    let scaled = scales.first();
    let (kind, each) = match (i.opcode, scaled) {
        // Or `tf32`, as the instruction descriptor says.
        ("UTCHMMA", None) => (ProductKind::F16, 0),
        ("UTCIMMA", None) => (ProductKind::I8, 0),
        ("UTCQMMA", None) => (ProductKind::F8f6f4, 0),
        ("UTCQMMA", Some(_)) => (ProductKind::ScaledF8f6f4, 1),
        ("UTCOMMA", Some(_)) if i.has("4X") || i.has("BLOCK16") => (ProductKind::ScaledF4, 4),
        ("UTCOMMA", Some(_)) => (ProductKind::ScaledF4, 2),
        _ => return None,
    };
    let first = a.uniform?.index;
    let masks = registers(i).next().map(|register| register.index);
    let stationary = i.has("WS");
    let shift = i.operands.iter().find_map(|operand| match operand {
        Operand::Immediate(shift) => u32::try_from(*shift).ok(),
        _ => None,
    });
    Some(TensorProduct {
        kind,
        pair: i.has("2CTA"),
        a: match a.kind {
            "tmem" => TensorSource::Memory(first),
            _ => TensorSource::Descriptor(first),
        },
        b: b.uniform?.index,
        d: d.uniform?.index,
        form: form.uniform?.index,
        scales: match scaled {
            Some(scales) => Some((scales.uniform?.index, each)),
            None => None,
        },
        disabled: masks.filter(|_| !stationary),
        adds: i.operands.iter().find_map(Pred::from_operand)?,
        shift: shift.unwrap_or_default(),
        shifts: i.has("ASHIFT"),
        stationary: stationary.then_some(masks),
    })
}

fn commit(i: &Instruction) -> Option<TensorCoreOp> {
    let mut registers = registers(i);
    // The meaning of another value is not known.
    registers.next().filter(|register| register.is_zero())?;
    Some(TensorCoreOp::Commit {
        at: addresses(i).first()?.uniform?.index,
        blocks: registers.next().map(|register| register.index),
    })
}
