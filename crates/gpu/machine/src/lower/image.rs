//! Texture fetches and surface accesses. NVIDIA does not document their operands; their order was read from the code
//! that `ptxas` 13.0 makes of each PTX form.

use sass::{Instruction, Operand, Register};

use crate::images::{Fetch, ImageOp, Surface, SurfaceData};
use crate::op::Op;
use crate::registers::{Dest, Origin, Pred, Source};
use vgpu::exec::fetcher::FetchKind;
use vgpu::{Boundary, ImageShape};

pub(super) fn lower(i: &Instruction) -> Option<Op> {
    let op = match i.opcode {
        "TEX" | "TLD" | "TLD4" | "TXD" => ImageOp::Fetch(fetch(i)?),
        "SULD" | "SUST" => ImageOp::Surface(surface(i)?),
        "TXQ" => query(i)?,
        _ => return None,
    };
    Some(Op::Image(Box::new(op)))
}

/// Returns the registers of the lanes, in the order of the operands.
fn registers(i: &Instruction) -> Vec<Register> {
    let all = i.operands.iter().filter_map(|operand| match operand {
        Operand::Register(r) if !r.uniform => Some(*r),
        _ => None,
    });
    all.collect()
}

/// Returns the handle in a constant bank or a uniform register.
fn handle(i: &Instruction) -> Option<Source> {
    let uniform = i.operands.iter().find_map(|operand| match operand {
        Operand::Register(r) if r.uniform => Source::from_operand(operand),
        _ => None,
    });
    if uniform.is_some() {
        return uniform;
    }
    let mut numbers = i.operands.iter().filter_map(immediate);
    let (bank, word) = (numbers.next()?, numbers.next()?);
    let from = Origin::Constant {
        bank: u8::try_from(bank).ok()?,
        offset: u32::try_from(4 * word).ok()?,
    };
    Some(Source {
        from,
        ..Source::value(0)
    })
}

fn immediate(operand: &Operand) -> Option<i64> {
    match operand {
        Operand::Immediate(value) => Some(*value),
        _ => None,
    }
}

/// Returns the consecutive registers from `first` on.
fn from(first: &Register, count: usize) -> Option<Vec<Source>> {
    let first = Source::from_operand(&Operand::Register(*first))?;
    let nth = |n| Source {
        from: first.from.nth(n as u8),
        ..first
    };
    Some((0..count).map(nth).collect())
}

/// Returns the registers of the channels of a mask: two from the second operand on, the others from
/// the first.
fn masked(i: &Instruction, registers: &[Register]) -> Option<Vec<(usize, Dest)>> {
    let [upper, lower, ..] = registers else {
        return None;
    };
    let dest = |r: &Register| Dest::from_operand(&Operand::Register(*r));
    let (upper, lower) = (dest(upper)?, dest(lower)?);
    // All channels where the mask is not written.
    let mask = i.operands.last().and_then(immediate).unwrap_or(15);
    let set = (0..4).filter(|channel| mask >> channel & 1 == 1);
    let places = set.enumerate().map(|(n, channel)| match n {
        0 | 1 => (channel, lower.next(n as u8)),
        _ => (channel, upper.next(n as u8 - 2)),
    });
    Some(places.collect())
}

fn fetch(i: &Instruction) -> Option<Fetch> {
    let shape = i.operands.iter().find_map(|operand| match *operand {
        Operand::Text("1D") => Some(ImageShape::D1),
        Operand::Text("2D") => Some(ImageShape::D2),
        Operand::Text("3D") => Some(ImageShape::D3),
        Operand::Text("ARRAY_1D") => Some(ImageShape::Layers1),
        Operand::Text("ARRAY_2D") => Some(ImageShape::Layers2),
        Operand::Text("CUBE") => Some(ImageShape::Cube),
        Operand::Text("ARRAY_CUBE") => Some(ImageShape::Cubes),
        _ => None,
    })?;
    // Derivatives of other lanes have no meaning without a second level, but a special shuffle.
    if i.has("NDV") || i.opcode == "TLD4" && shape != ImageShape::D2 {
        return None;
    }
    let named = registers(i);
    let (mut coordinates, rest) = sources(i, shape, &named)?;
    if i.opcode == "TXD" && matches!(shape, ImageShape::Layers1 | ImageShape::Layers2) {
        // The layer stands last.
        coordinates.rotate_right(1);
    }
    let missing = i.operands.first().and_then(Pred::from_operand);
    Some(Fetch {
        handle: match is_bindless(i) {
            true => *rest.first()?,
            false => handle(i)?,
        },
        shape,
        kind: match i.opcode {
            "TLD" => FetchKind::Numbered,
            "TLD4" => FetchKind::Gathered(gathered(i)?),
            _ => FetchKind::Sampled,
        },
        coordinates,
        channels: masked(i, &named)?,
        missing: missing.unwrap_or(Pred::ALWAYS),
    })
}

fn gathered(i: &Instruction) -> Option<usize> {
    let last = i.modifiers.iter().rev().find(|m| **m != "NODEP")?;
    ["R", "G", "B", "A"].iter().position(|name| name == last)
}

/// Reports whether the handle is in a register: `.B`, which is also a channel of `TLD4`.
fn is_bindless(i: &Instruction) -> bool {
    matches!(i.word & 0x1ff, 0x161 | 0x164 | 0x167)
}

/// Returns the coordinates, and the handle and level that follow them. They are in one list of consecutive registers
/// each; with `SCR` they share two lists of at most two.
fn sources(
    i: &Instruction,
    shape: ImageShape,
    named: &[Register],
) -> Option<(Vec<Source>, Vec<Source>)> {
    let (first, second) = (named.get(2)?, named.get(3));
    let own = shape.coordinates();
    let more = usize::from(is_bindless(i)) + usize::from(i.has("LL") || i.has("LB"));
    let in_second = |count: usize| match (count, second) {
        (0, _) => Some(Vec::new()),
        (_, Some(second)) => from(second, count),
        _ => None,
    };
    if !i.has("SCR") {
        return Some((from(first, own)?, in_second(more)?));
    }
    let all = own + more;
    let in_first = all.div_ceil(2);
    if in_first > 2 {
        return None;
    }
    let mut coordinates = from(first, in_first)?;
    coordinates.extend(in_second(all - in_first)?);
    let rest = coordinates.split_off(own);
    Some((coordinates, rest))
}

fn surface(i: &Instruction) -> Option<Surface> {
    let shapes = [
        ("1D", ImageShape::D1),
        ("1D_ARRAY", ImageShape::Layers1),
        ("2D", ImageShape::D2),
        ("2D_ARRAY", ImageShape::Layers2),
        ("3D", ImageShape::D3),
    ];
    let (_, shape) = *shapes.iter().find(|(name, _)| i.has(name))?;
    let place = i.operands.iter().find_map(|operand| match operand {
        Operand::Address(address) => address.base,
        _ => None,
    })?;
    let mut coordinates = from(&place, shape.coordinates())?;
    if matches!(shape, ImageShape::Layers1 | ImageShape::Layers2) {
        // The layer stands last.
        coordinates.rotate_right(1);
    }
    let named = registers(i);
    let operand = Operand::Register(*named.first()?);
    let data = match (i.opcode, i.has("P")) {
        ("SULD", false) => SurfaceData::Load {
            dest: Dest::from_operand(&operand)?,
            signed: i.has("S8") || i.has("S16"),
        },
        ("SUST", false) => SurfaceData::Store(Source::from_operand(&operand)?),
        ("SUST", true) => {
            let count = match () {
                () if i.has("R") => 1,
                () if i.has("RG") => 2,
                () => 4,
            };
            SurfaceData::StoreFormatted(Source::from_operand(&operand)?, count)
        }
        _ => return None,
    };
    let asks = |operand: &Operand| matches!(operand, Operand::Predicate(_));
    if i.operands.first().is_some_and(asks) {
        return None;
    }
    Some(Surface {
        handle: handle(i)?,
        shape,
        boundary: match () {
            () if i.has("IGN") => Boundary::Zero,
            () if i.has("TRAP") => Boundary::Trap,
            () => Boundary::Clamp,
        },
        coordinates,
        bytes: i.access_bytes(),
        data,
    })
}

fn query(i: &Instruction) -> Option<ImageOp> {
    let extents = masked(i, &registers(i))?;
    if extents.iter().any(|(extent, _)| *extent > 2) {
        return None;
    }
    Some(ImageOp::Query(handle(i)?, extents))
}
