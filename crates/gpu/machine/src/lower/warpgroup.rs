//! Products of warp-groups, and copies of boxes of tensors.

use sass::{Address, Instruction, Operand};

use super::matrix::types;
use super::memory::operation;
use crate::boxes::{BoxCopy, Direction};
use crate::op::{Control, Op};
use crate::registers::{Dest, Origin, Pred, Source};
use crate::warpgroup::Product;
use gpu_arithmetic::mma::Mma;
use vgpu::tensor_box::CopyMode;

pub(super) fn lower(i: &Instruction) -> Option<Op> {
    Some(match i.opcode {
        "HGMMA" | "QGMMA" | "IGMMA" => Op::Product(Box::new(product(i)?)),
        // Orders registers, which are in order here.
        "WARPGROUP" if i.has("ARRIVE") => Op::Nothing,
        "WARPGROUP" if i.has("DEPBAR") => Op::Control(Control::Products(groups_left(i)?)),
        "UTMALDG" | "UTMASTG" | "UTMAREDG" => Op::Tensor(Box::new(copy(i)?)),
        _ => return None,
    })
}

/// Returns the number of groups that may be unfinished after a wait.
fn groups_left(i: &Instruction) -> Option<u32> {
    i.operands.iter().find_map(|operand| match operand {
        Operand::Immediate(left) => u32::try_from(*left).ok(),
        _ => None,
    })
}

/// Returns the columns of a shape such as `64x128x16`.
fn columns(i: &Instruction) -> Option<u32> {
    let mut shapes = i.modifiers.iter().filter(|m| **m != "SP");
    let mut numbers = shapes.next()?.split('x');
    (numbers.next()? == "64").then_some(())?;
    numbers.next()?.parse().ok()
}

fn form(i: &Instruction) -> Option<Mma> {
    let (a, b, accumulator) = types(i)?;
    Some(Mma {
        m: 16,
        n: 8,
        // Every type has 32 bytes of a row in one step, and a sparse A leaves out half of them.
        k: 8 * a.per_register() * (1 + usize::from(i.has("SP"))),
        a,
        b,
        c: accumulator,
        d: accumulator,
        saturate: i.has("SAT"),
    })
}

fn find_address<'i>(i: &'i Instruction, kind: &str) -> Option<&'i Address> {
    i.operands.iter().find_map(|operand| match operand {
        Operand::Address(address) if address.kind == kind => Some(address),
        _ => None,
    })
}

fn product(i: &Instruction) -> Option<Product> {
    let address = find_address(i, "gdesc")?;
    let behind = |mark: &str| address.suffix.contains(mark);
    let mut before = i.operands.iter();
    let mut before = before
        .by_ref()
        .take_while(|o| !matches!(o, Operand::Address(_)));
    let d = Dest::from_operand(before.next()?)?;
    let (a, negated) = match before.next() {
        Some(Operand::Register(r)) => (Some(Origin::Row(r.index)), r.negate),
        _ => (None, false),
    };
    // The accumulators that are added, or zero.
    let added = i
        .operands
        .iter()
        .skip_while(|o| !matches!(o, Operand::Address(_)));
    let from_zero = added
        .clone()
        .skip(1)
        .take(1)
        .any(|o| matches!(o, Operand::Register(r) if r.is_zero()));
    let never = Pred {
        invert: true,
        ..Pred::ALWAYS
    };
    let adds = match from_zero {
        true => never,
        false => added
            .clone()
            .find_map(Pred::from_operand)
            .unwrap_or(Pred::ALWAYS),
    };
    // Behind the accumulators.
    let mut registers = added.clone().filter_map(|o| match o {
        Operand::Register(r) => Some(Origin::Row(r.index)),
        _ => None,
    });
    let places = match i.has("SP") {
        true => {
            let selector = added.clone().find_map(|o| match o {
                Operand::Immediate(selector) => u32::try_from(*selector).ok(),
                _ => None,
            });
            Some((registers.nth(1)?, selector.unwrap_or_default()))
        }
        false => None,
    };
    Some(Product {
        form: form(i)?,
        columns: columns(i)?,
        d,
        a,
        descriptors: address.uniform?.index,
        adds,
        negate: [negated || behind(".negA"), behind(".negB")],
        transposed: [behind(".tnspA"), behind(".tnspB")],
        places,
        commits: i.operands.contains(&Operand::Text("gsb0")),
    })
}

fn copy(i: &Instruction) -> Option<BoxCopy> {
    // Im2col along the width only, with a halo, is not executed.
    if i.has("W") || i.has("W128") {
        return None;
    }
    let mode = match () {
        () if i.has("IM2COL") => CopyMode::Im2col(Vec::new()),
        () if i.has("GATHER4") || i.has("SCATTER4") => CopyMode::Rows,
        () => CopyMode::Tile,
    };
    let direction = match i.opcode {
        "UTMALDG" => Direction::Load,
        "UTMASTG" => Direction::Store,
        _ => Direction::Reduce(operation(i)?),
    };
    let dimensions = i
        .modifiers
        .iter()
        .find_map(|m| m.strip_suffix('D')?.parse().ok())?;
    let mut addresses = i.operands.iter().filter_map(|operand| match operand {
        Operand::Address(address) if address.kind.is_empty() => address.uniform.or(address.base),
        _ => None,
    });
    let (place, map) = (addresses.next()?.index, addresses.next()?.index);
    let mut registers = i.operands.iter();
    let extra = registers.find(|o| matches!(o, Operand::Register(_)));
    let extra = match extra {
        Some(extra) => Some(Source::from_operand(extra)?),
        None => None,
    };
    Some(BoxCopy {
        direction,
        mode,
        dimensions,
        place,
        map,
        extra,
        multicast: i.has("MULTICAST"),
    })
}
