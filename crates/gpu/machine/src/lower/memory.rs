//! Loads, stores, atomics and copies.

use sass::{Address, Instruction, Operand, Register};

use crate::atomics::Atomic;
use crate::memory::{Access, AddressOp, Copy, Kind, StateSpace, Window};
use crate::op::Op;
use crate::registers::{Dest, Pred, Source};
use crate::sync::{BulkCopy, CountedStore, Sync};
use gpu_arithmetic::atomic::{AtomOp, AtomType};
use gpu_arithmetic::layout::MatrixRows;

pub(super) fn lower(i: &Instruction) -> Option<Op> {
    Some(match i.opcode {
        "LDG" | "LDS" | "LDL" | "LD" => Op::Memory(Box::new(load(i)?)),
        "STG" | "STS" | "STL" | "ST" => Op::Memory(Box::new(store(i)?)),
        "ATOMG" | "ATOM" | "ATOMS" if !i.has("ARRIVE") => Op::Atomic(Box::new(atomic(i)?)),
        "RED" | "REDG" | "REDS" => Op::Atomic(Box::new(reduction(i)?)),
        "LDGSTS" => Op::Copy(Box::new(copy(i)?)),
        "LDSM" | "STSM" => Op::Memory(Box::new(matrices(i)?)),
        "QSPC" => Op::Space(
            find_address(i, Window::Generic)?,
            Pred::from_operand(i.operands.first()?)?,
            match () {
                () if i.has("S") => StateSpace::Block,
                () if i.has("D") => StateSpace::Cluster,
                () => StateSpace::Global,
            },
        ),
        "ATOMS" | "SYNCS" | "ARRIVES" | "UBLKCP" | "STAS" | "REDAS" | "UMEMSETS" => {
            Op::Sync(Box::new(sync(i)?))
        }
        _ => return None,
    })
}

fn window(i: &Instruction) -> Window {
    match i.opcode {
        "LDS" | "STS" | "ATOMS" | "REDS" | "LDSM" | "STSM" => Window::Shared,
        "LDL" | "STL" => Window::Local,
        "LD" | "ST" | "ATOM" | "QSPC" => Window::Generic,
        _ => Window::Global,
    }
}

/// Returns the operands that are addresses.
pub(super) fn addresses(i: &Instruction) -> Vec<&Address> {
    let all = i.operands.iter().filter_map(|operand| match operand {
        Operand::Address(address) => Some(address),
        _ => None,
    });
    all.collect()
}

pub(super) fn lower_address(address: &Address, window: Window) -> Option<AddressOp> {
    let scale = |r: &Register| match r.selector {
        "X4" => Some(2),
        "X8" => Some(3),
        "X16" => Some(4),
        "" | "U32" | "64" => Some(0),
        _ => None,
    };
    let (mut base, mut uniform) = (address.base, address.uniform);
    // A uniform register in place of the base is the uniform part of the address.
    if let Some(r) = base
        && r.uniform
        && uniform.is_none()
    {
        (base, uniform) = (None, base);
    }
    let long = matches!(window, Window::Global | Window::Generic);
    // Next to a uniform base register, the lane's register may be a 32-bit offset.
    let wide = base.is_some_and(|r| r.wide || long && r.selector != "U32");
    Some(AddressOp {
        window,
        shift: base.as_ref().map_or(Some(0), scale)?,
        base: base.filter(|r| !r.is_zero()).map(|r| r.index),
        wide,
        uniform: uniform.filter(|r| !r.is_zero()).map(|r| r.index),
        uniform_wide: long,
        offset: address.offset,
    })
}

fn find_address(i: &Instruction, window: Window) -> Option<AddressOp> {
    let found = addresses(i);
    if found.first()?.kind.is_empty() {
        return lower_address(found.first()?, window);
    }
    None
}

/// Returns the mask of the words that an access of 256 bits moves: all where it has none.
fn moved_words(i: &Instruction) -> u8 {
    let mask = i.operands.iter().find_map(|operand| match operand {
        Operand::Immediate(mask) => Some(*mask as u8),
        _ => None,
    });
    mask.unwrap_or(u8::MAX)
}

fn load(i: &Instruction) -> Option<Access> {
    let signed = i.has("S8") || i.has("S16");
    let dest = i.operands.iter().find_map(Dest::from_operand)?;
    let asks = i
        .operands
        .iter()
        .any(|o| matches!(o, Operand::Predicate(p) if p.index != 7));
    if asks {
        return None;
    }
    let kind = match i.has("256") {
        false => Kind::Load { dest, signed },
        // The registers of the upper half come first.
        true => Kind::LoadPair {
            dest: [Dest::from_operand(i.operands.get(1)?)?, dest],
            words: moved_words(i),
        },
    };
    Some(Access {
        at: find_address(i, window(i))?,
        bytes: i.access_bytes(),
        kind,
    })
}

fn store(i: &Instruction) -> Option<Access> {
    let mut sources = i
        .operands
        .iter()
        .skip_while(|operand| !matches!(operand, Operand::Address(_)))
        .skip(1)
        .map(Source::from_operand);
    let source = sources.next()??;
    let kind = match i.has("256") {
        false => Kind::Store { source },
        // PTX has no such store, so that the order of its registers is not known.
        true if moved_words(i) != u8::MAX => return None,
        true => Kind::StorePair {
            source: [source, sources.next()??],
        },
    };
    Some(Access {
        at: find_address(i, window(i))?,
        bytes: i.access_bytes(),
        kind,
    })
}

/// Lowers accesses to one, two or four matrices of 8 by 8 halves, with a row of 16 bytes per lane.
fn matrices(i: &Instruction) -> Option<Access> {
    let count = match *i.modifiers.last()? {
        "4" => 4,
        "2" => 2,
        "M88" | "MT88" | "M816" => 1,
        _ => return None,
    };
    let load = i.opcode == "LDSM";
    let trans = i.has("MT88");
    let rows = match () {
        () if i.has("16") && trans => MatrixRows::TransposedHalves,
        () if i.has("16") && i.has("M88") => MatrixRows::Halves,
        () if load && i.has("U6x16P32TO8") && i.has("M816") => MatrixRows::Packed6,
        () if load && i.has("U4x16P64TO8") && i.has("M816") => MatrixRows::Packed4,
        () => return None,
    };
    let kind = if load {
        Kind::LoadMatrices {
            dest: i.operands.iter().find_map(Dest::from_operand)?,
            count,
            rows,
        }
    } else {
        Kind::StoreMatrices {
            source: Source::from_operand(i.operands.last()?)?,
            count,
            trans,
        }
    };
    Some(Access {
        at: find_address(i, Window::Shared)?,
        bytes: 16,
        kind,
    })
}

pub(super) fn operation(i: &Instruction) -> Option<AtomOp> {
    i.modifiers.iter().find_map(|m| match *m {
        "ADD" => Some(AtomOp::Add),
        "MIN" => Some(AtomOp::Min),
        "MAX" => Some(AtomOp::Max),
        "INC" => Some(AtomOp::Inc),
        "DEC" => Some(AtomOp::Dec),
        "AND" => Some(AtomOp::And),
        "OR" => Some(AtomOp::Or),
        "XOR" => Some(AtomOp::Xor),
        "EXCH" => Some(AtomOp::Exch),
        "CAS" | "CAST" => Some(AtomOp::Cas),
        _ => None,
    })
}

/// The type of an element, and the number of elements of a vector.
fn number(i: &Instruction) -> Option<(AtomType, u8)> {
    let mut found = (AtomType::U32, 1);
    for modifier in &i.modifiers {
        found = match *modifier {
            "S32" => (AtomType::S32, 1),
            "64" | "U64" => (AtomType::U64, 1),
            "S64" => (AtomType::S64, 1),
            "F32" => (AtomType::F32, 1),
            "F32x2" => (AtomType::F32, 2),
            "F32x4" => (AtomType::F32, 4),
            "F64" => (AtomType::F64, 1),
            "F16x2" => (AtomType::F16x2, 1),
            "F16x4" => (AtomType::F16x2, 2),
            "F16x8" => (AtomType::F16x2, 4),
            "BF16x2" | "BF16_V2" => (AtomType::Bf16x2, 1),
            "BF16x4" => (AtomType::Bf16x2, 2),
            "BF16x8" => (AtomType::Bf16x2, 4),
            "U16" | "F16" | "BF16" | "128" => return None,
            _ => continue,
        };
    }
    Some(found)
}

fn values(i: &Instruction) -> Option<Vec<Source>> {
    i.operands
        .iter()
        .skip_while(|operand| !matches!(operand, Operand::Address(_)))
        .skip(1)
        .map(Source::from_operand)
        .collect()
}

fn atomic(i: &Instruction) -> Option<Atomic> {
    let values = values(i)?;
    if i.opcode == "ATOMS" && i.has("POPC") {
        // Each active lane adds one.
        return Some(Atomic {
            at: find_address(i, Window::Shared)?,
            op: AtomOp::Add,
            ty: AtomType::U32,
            elements: 1,
            returns_success: false,
            dest: i.operands.iter().find_map(Dest::from_operand),
            done: None,
            values: [Source::value(1), Source::value(0)],
        });
    }
    let done = match i.operands.first()? {
        predicate @ Operand::Predicate(_) => Pred::from_operand(predicate),
        _ => None,
    };
    let (ty, elements) = number(i)?;
    Some(Atomic {
        at: find_address(i, window(i))?,
        op: operation(i)?,
        ty,
        elements,
        returns_success: i.has("CAST"),
        // A register behind the address is a source.
        dest: i
            .operands
            .iter()
            .take_while(|operand| !matches!(operand, Operand::Address(_)))
            .find_map(Dest::from_operand),
        done,
        values: [
            *values.first()?,
            values.get(1).copied().unwrap_or(Source::value(0)),
        ],
    })
}

fn reduction(i: &Instruction) -> Option<Atomic> {
    let (ty, elements) = number(i)?;
    Some(Atomic {
        at: find_address(
            i,
            if i.opcode == "REDS" {
                Window::Shared
            } else {
                Window::Global
            },
        )?,
        op: operation(i)?,
        ty,
        elements,
        returns_success: i.has("CAST"),
        dest: None,
        done: None,
        values: [*values(i)?.first()?, Source::value(0)],
    })
}

fn copy(i: &Instruction) -> Option<Copy> {
    let found = addresses(i);
    let &[to, from] = found.as_slice() else {
        return None;
    };
    let last = i.operands.last().and_then(Pred::from_operand);
    Some(Copy {
        to: lower_address(to, Window::Shared)?,
        from: lower_address(from, Window::Global)?,
        bytes: i.access_bytes(),
        partial: i.has("ZFILL"),
        present: last.unwrap_or(Pred::ALWAYS),
    })
}

fn sync(i: &Instruction) -> Option<Sync> {
    let found = addresses(i);
    let at = |n: usize| lower_address(found.get(n)?, Window::Shared);
    Some(match i.opcode {
        "ATOMS" => Sync::Arrive {
            at: at(0)?,
            dest: i.operands.iter().find_map(Dest::from_operand),
            arrivals: Source::value(1),
            bytes: None,
            masks: false,
        },
        "ARRIVES" if i.has("LDGSTSBAR") => Sync::Copied {
            at: at(0)?,
            expected: i.has("ARVCNT"),
        },
        "SYNCS" if i.has("EXCH") => Sync::Exchange {
            at: at(0)?,
            value: Source::from_operand(i.operands.last()?)?,
        },
        "SYNCS" if i.has("ARRIVE") => Sync::Arrive {
            at: at(0)?,
            dest: i.operands.iter().find_map(Dest::from_operand),
            // `A` and `T` select the number of arrivals and bytes: 0, 1 or a register's value.
            arrivals: match () {
                () if i.has("ART0") => Source::from_operand(i.operands.last()?)?,
                () if i.has("A0T1") || i.has("A0TR") => Source::value(0),
                () => Source::value(1),
            },
            bytes: match () {
                () if i.has("A1T0") || i.has("ART0") => None,
                () => Some(Source::from_operand(i.operands.last()?)?),
            },
            masks: i.has("TMASK"),
        },
        "SYNCS" if i.has("CCTL") => Sync::Nothing,
        "SYNCS" if i.has("PHASECHK") => Sync::Check {
            at: at(0)?,
            out: Pred::from_operand(i.operands.first()?)?,
            phase: Source::from_operand(i.operands.last()?)?,
        },
        "UBLKCP" => bulk(i)?,
        "UMEMSETS" => Sync::Clear {
            at: at(0)?,
            units: Source::from_operand(i.operands.last()?)?,
        },
        "STAS" | "REDAS" => async_store(i)?,
        _ => return None,
    })
}

/// Lowers a bulk copy; registers hold both addresses, the barrier and the number of 16-byte units.
fn bulk(i: &Instruction) -> Option<Sync> {
    let registers: Vec<u8> = i
        .operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::Address(address) => address.uniform.or(address.base).map(|r| r.index),
            Operand::Register(r) => Some(r.index),
            _ => None,
        })
        .collect();
    let &[to, from, units] = registers.as_slice() else {
        return None;
    };
    let copy = |shared, other, into_shared| BulkCopy {
        shared,
        other,
        units,
        into_shared,
        between_blocks: false,
        multicast: false,
    };
    let copy = match i.modifiers.as_slice() {
        ["S", "G"] => copy(to, from, true),
        ["S", "G", "MULTICAST"] => BulkCopy {
            multicast: true,
            ..copy(to, from, true)
        },
        ["G", "S"] => copy(from, to, false),
        ["S", "S"] => BulkCopy {
            between_blocks: true,
            ..copy(to, from, true)
        },
        _ => return None,
    };
    Some(Sync::Bulk(copy))
}

/// Lowers a store or a reduction that a barrier counts (`st.async`, `red.async`).
fn async_store(i: &Instruction) -> Option<Sync> {
    let pair = i.operands.iter().find_map(|operand| match operand {
        Operand::Address(address) => address.base.map(|r| r.index),
        _ => None,
    })?;
    let reduce = match i.opcode {
        "REDAS" => Some(operation(i)?),
        _ => None,
    };
    // Signed and wide reductions have other forms.
    if reduce.is_some() && i.modifiers.len() != 1 {
        return None;
    }
    Some(Sync::Store(CountedStore {
        pair,
        value: Source::from_operand(i.operands.last()?)?,
        bytes: match () {
            () if i.has("128") => 16,
            () if i.has("64") => 8,
            () => 4,
        },
        reduce,
    }))
}
