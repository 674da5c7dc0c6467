//! Moves between registers, constants and special registers.

use sass::{Instruction, Operand, Unit};

use super::{Form, Run, lanes_where, lower_unary};
use crate::memory::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::registers::{Dest, Origin, Registers, Source};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "MOV" | "UMOV" | "MOV32I" => moved(i),
        "R2UR" => from_lanes(i),
        "RPCMOV" => return_address(i),
        "LEPC" => own_address(i),
        "LDC" | "ULDC" | "LDCU" => constant(i),
        "S2R" | "S2UR" | "CS2R" | "CS2UR" => special(i),
        "B2R" => reduced(i),
        "BMOV" => barrier(i),
        _ => None,
    }
}

fn moved(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    if form
        .source(1)
        .is_some_and(|mask| mask.from != Origin::Value(0xf))
    {
        return None;
    }
    if i.has("64") {
        let (d, a) = (form.dest?, form.source(0)?);
        return Some(Box::new(move |r, mask| {
            let a = r.wide(&a);
            r.set_wide(d, mask, &a);
        }));
    }
    lower_unary(&form, Registers::int, |a| a)
}

/// Moves the value of the first active lane; a predicate reports lanes with other values.
fn from_lanes(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (d, a, other) = (form.dest?, form.source(0)?, form.out(0));
    let more = i.has("OR");
    if i.modifiers
        .iter()
        .any(|m| !matches!(*m, "OR" | "BROADCAST" | "FILL"))
    {
        return None;
    }
    Some(Box::new(move |r, mask| {
        let a = r.int(&a);
        let chosen = a[mask.trailing_zeros() as usize & 31];
        r.set(d, mask, &a);
        let before = if more { r.truth(other) } else { 0 };
        r.set_truth(other, mask, before | lanes_where(|l| a[l] != chosen));
    }))
}

/// Moves between a register and one of the two words of a thread's return address, which kernels
/// also use as ordinary registers.
fn return_address(i: &Instruction) -> Option<Run> {
    let word = |operand: &Operand| match operand {
        Operand::Text("Rpc.LO") => Some(0),
        Operand::Text("Rpc.HI") => Some(1),
        _ => None,
    };
    let [to, from] = i.operands.as_slice() else {
        return None;
    };
    if let Some(n) = word(to) {
        let from = Source::from_operand(from)?;
        return Some(Box::new(move |r, mask| {
            let row = r.raw(from.from);
            (0..32)
                .filter(|l| mask >> l & 1 == 1)
                .for_each(|l| r.return_address[n][l] = row[l]);
        }));
    }
    let (d, n) = (Dest::from_operand(to)?, word(from)?);
    Some(Box::new(move |r, mask| {
        let row = r.return_address[n];
        r.set(d, mask, &row);
    }))
}

/// Loads the address of an instruction, by default of this one.
fn own_address(i: &Instruction) -> Option<Run> {
    let d = Dest::from_operand(i.operands.first()?)?;
    let address = match i.operands.get(1) {
        Some(Operand::Target(address)) => *address,
        Some(_) => return None,
        None => i.address.into(),
    };
    Some(Box::new(move |r, mask| r.set_wide(d, mask, &[address; 32])))
}

fn constant(i: &Instruction) -> Option<Run> {
    let (d, operand) = match i.operands.as_slice() {
        [d, operand] => (Dest::from_operand(d)?, operand),
        _ => return None,
    };
    if !matches!(operand, Operand::Constant(_)) {
        return None;
    }
    let from = Source::from_operand(operand)?.from;
    let words = match () {
        () if i.has("128") => 4,
        () if i.has("64") => 2,
        () => 1,
    };
    let narrow = i.modifiers.iter().find_map(|m| match *m {
        "U8" => Some((8, false)),
        "S8" => Some((8, true)),
        "U16" => Some((16, false)),
        "S16" => Some((16, true)),
        _ => None,
    });
    let known = |m: &&'static str| matches!(*m, "U8" | "S8" | "U16" | "S16" | "64" | "128");
    if !i.modifiers.iter().all(known) {
        return None;
    }
    Some(Box::new(move |r, mask| {
        // The register of the address may be one of those that are written: all is read first.
        let mut rows: [_; 4] =
            std::array::from_fn(|word| r.raw(advance_origin(from, word as u32 * 4)));
        if let Some((bits, signed)) = narrow {
            let unused = 32 - bits;
            rows[0] = rows[0].map(|v| match signed {
                true => ((v << unused) as i32 >> unused) as u32,
                false => v << unused >> unused,
            });
        }
        for (word, row) in (0..words).zip(&rows) {
            r.set(d.next(word), mask, row);
        }
    }))
}

/// Returns the origin of a load of constants whose address may differ by lane.
pub(super) fn indexed(i: &Instruction) -> Option<Origin> {
    let operand = i.operands.get(1).filter(|_| i.unit == Unit::Constant)?;
    let from = Source::from_operand(operand)?.from;
    matches!(from, Origin::Indexed { .. }).then_some(from)
}

/// Returns the origin `bytes` further on.
fn advance_origin(from: Origin, bytes: u32) -> Origin {
    match from {
        Origin::Constant { bank, offset } => Origin::Constant {
            bank,
            offset: offset.saturating_add(bytes),
        },
        Origin::Indexed {
            bank,
            base,
            uniform,
            offset,
        } => Origin::Indexed {
            bank,
            base,
            uniform,
            offset: offset.saturating_add(i64::from(bytes)),
        },
        other => other,
    }
}

/// Value of a special register in a lane.
#[derive(Clone, Copy)]
enum Special {
    Zero,
    Lane,
    Thread(usize),
    Block(usize),
    Threads(usize),
    Blocks(usize),
    Warp,
    /// Mask of the lanes below, at or above this one.
    LanesBelow,
    LanesUpTo,
    LaneOnly,
    LanesFrom,
    LanesAbove,
    Clock,
    SharedWindow,
    LocalWindow,
    ClusterRank,
}

fn special(i: &Instruction) -> Option<Run> {
    let d = Dest::from_operand(i.operands.first()?)?;
    let name = match i.operands.get(1)? {
        Operand::Special(name) | Operand::Text(name) => *name,
        _ => return None,
    };
    let which = match name {
        "SR_CgaCtaId" => Special::ClusterRank,
        // The PTX executor also has multiprocessor 0 where both are compared.
        "SRZ" | "SR_VIRTCFG" | "SR_VIRTUALSMID" | "SR_SMEMSZ" | "SR_CgaSize" => Special::Zero,
        "SR_LANEID" => Special::Lane,
        "SR_TID.X" => Special::Thread(0),
        "SR_TID.Y" => Special::Thread(1),
        "SR_TID.Z" => Special::Thread(2),
        "SR_CTAID.X" => Special::Block(0),
        "SR_CTAID.Y" => Special::Block(1),
        "SR_CTAID.Z" => Special::Block(2),
        "SR_NTID.X" => Special::Threads(0),
        "SR_NTID.Y" => Special::Threads(1),
        "SR_NTID.Z" => Special::Threads(2),
        "SR_NCTAID.X" => Special::Blocks(0),
        "SR_NCTAID.Y" => Special::Blocks(1),
        "SR_NCTAID.Z" => Special::Blocks(2),
        "SR_VIRTID" => Special::Warp,
        "SR_LTMASK" => Special::LanesBelow,
        "SR_LEMASK" => Special::LanesUpTo,
        "SR_EQMASK" => Special::LaneOnly,
        "SR_GEMASK" => Special::LanesFrom,
        "SR_GTMASK" => Special::LanesAbove,
        "SR_CLOCKLO" | "SR_CLOCKHI" | "SR_GLOBALTIMERLO" | "SR_GLOBALTIMERHI" => Special::Clock,
        "SR_SWINHI" => Special::SharedWindow,
        "SR_LWINHI" => Special::LocalWindow,
        _ => return None,
    };
    let high = name.ends_with("HI") && matches!(which, Special::Clock);
    // `CS2R` writes a register pair unless it has `.32`.
    let wide = i.opcode == "CS2R" && !i.has("32");
    Some(Box::new(move |r, mask| {
        let row: [u64; 32] = std::array::from_fn(|lane| read(r, which, lane));
        if wide {
            r.set_wide(d, mask, &row);
        } else {
            r.set(
                d,
                mask,
                &row.map(|v| if high { (v >> 32) as u32 } else { v as u32 }),
            );
        }
    }))
}

fn read(r: &Registers, which: Special, lane: usize) -> u64 {
    let at = lane as u32;
    let linear = r.place.warp * 32 + at;
    let [x, y, _] = r.place.block.map(|extent| extent.max(1));
    let value = match which {
        Special::Zero => 0,
        Special::Lane => at,
        Special::Thread(0) => linear % x,
        Special::Thread(1) => linear / x % y,
        Special::Thread(_) => linear / x / y,
        Special::Block(axis) => r.place.block_at[axis],
        Special::Threads(axis) => r.place.block[axis],
        Special::Blocks(axis) => r.place.grid[axis],
        // `SR_VIRTID` holds the warp number from bit 8 on.
        Special::Warp => r.place.warp << 8,
        Special::LanesBelow => (1 << at) - 1,
        Special::LanesUpTo => u32::MAX >> (31 - at),
        Special::LaneOnly => 1 << at,
        Special::LanesFrom => u32::MAX << at,
        Special::LanesAbove => u32::MAX << at << 1,
        Special::Clock => return r.clock,
        Special::SharedWindow => (SHARED_WINDOW >> 32) as u32,
        Special::LocalWindow => (LOCAL_WINDOW >> 32) as u32,
        Special::ClusterRank => r.place.rank,
    };
    value.into()
}

/// Reads the result of a reduction at a block-wide barrier.
fn reduced(i: &Instruction) -> Option<Run> {
    let d = Dest::from_operand(i.operands.first()?)?;
    let out = i
        .operands
        .get(1)
        .and_then(crate::registers::Pred::from_operand);
    if !i.has("RESULT") {
        return None;
    }
    Some(Box::new(move |r, mask| {
        let value = r.reduced;
        r.set(d, mask, &[value; 32]);
        if let Some(out) = out {
            r.set_truth(out, mask, if value == 0 { 0 } else { u32::MAX });
        }
    }))
}

/// Moves between a convergence barrier and a register.
fn barrier(i: &Instruction) -> Option<Run> {
    let clear = i.has("CLEAR");
    match i.operands.as_slice() {
        [d @ Operand::Register(_), Operand::Barrier(b)] => {
            let (d, b) = (Dest::from_operand(d)?, usize::from(b & 15));
            Some(Box::new(move |r, mask| {
                let row = r.barriers[b];
                r.set(d, mask, &row);
                if clear {
                    (0..32)
                        .filter(|l| mask >> l & 1 == 1)
                        .for_each(|l| r.barriers[b][l] = 0);
                }
            }))
        }
        [Operand::Barrier(b), a] => {
            let (a, b) = (Source::from_operand(a)?, usize::from(b & 15));
            Some(Box::new(move |r, mask| {
                let row = r.int(&a);
                (0..32)
                    .filter(|l| mask >> l & 1 == 1)
                    .for_each(|l| r.barriers[b][l] = row[l]);
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_registers_are_spilled_to_registers_and_filled() {
        let spill = 0x000f_e200_0900_0f00_0000_0033_0006_7c02;
        let fill = 0x001f_e200_004e_0000_0000_0000_002b_72ca;
        for (word, text) in [(spill, "MOV.SPILL"), (fill, "R2UR.FILL")] {
            let instruction = sass::decode(word, 0, 100).unwrap();
            assert!(instruction.to_string().contains(text));
            assert!(lower(&instruction).is_some(), "{text}");
        }
    }
}
