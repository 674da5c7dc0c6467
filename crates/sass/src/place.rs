//! Addresses and constants with layouts of their own.

use crate::decode::Reader;
use crate::instruction::{Address, Bank, Constant, Operand, Register, ZERO};

/// An operand by the name of its layout in the table.
pub(crate) fn read(reader: &mut Reader, name: &str) -> Option<Operand> {
    Some(match name {
        "shared32" => shared(reader, 32, false),
        "shared64" => shared(reader, 64, false),
        "shared64z" => shared(reader, 64, true),
        "local32" => local(reader, 32),
        "local64" => local(reader, 64),
        "old32" => old(reader, 32),
        "old64" => old(reader, 64),
        "desc32" => global(reader, 32, 76)?,
        "desc64" => global(reader, 64, 76)?,
        "atomg" if reader.sm < 80 => atomic_old(reader),
        "atomg" if reader.sm < 100 => {
            reader.get(70, 1);
            global(reader, 64, 71)?
        }
        "atomg" => global(reader, 64, 76)?,
        "atomf" if reader.sm < 100 => {
            reader.get(70, 1);
            global(reader, 64, 71)?
        }
        "atomf" => global(reader, 64, 90)?,
        "redg" if reader.sm < 80 => old(reader, 64),
        "redg" if reader.sm < 100 => global(reader, 64, 71)?,
        "redg" => global(reader, 64, 81)?,
        "ldgsts" => copy_target(reader),
        "source" => copy_source(reader)?,
        "const" => constant(reader, false, 38),
        "uconst" => constant(reader, true, 38),
        "uconst24" => constant(reader, true, 38),
        "ldcu" => constant(reader, true, 37),
        _ => return None,
    })
}

/// `[R+offset]`, the offset at bit 40.
pub(crate) fn base(reader: &mut Reader, at: u8) -> Operand {
    let register = reader.register(at, false);
    let offset = reader.signed(40, 24);
    bracket(register, None, offset, false)
}

/// An address; a base that is zero is not written where something else is.
fn bracket(base: Register, uniform: Option<Register>, offset: i64, always: bool) -> Operand {
    let alone = uniform.is_none() && offset == 0;
    let written = always || alone || !base.is_zero() || !base.selector.is_empty();
    Operand::Address(Address {
        kind: "",
        descriptor: None,
        base: written.then_some(base),
        uniform,
        offset,
    })
}

/// `[R+UR+offset]`; the uniform register stands at `at`.
fn shared(reader: &mut Reader, at: u8, always: bool) -> Operand {
    let scale = ["", "X4", "X8", "X16"][reader.get(78, 2) as usize & 3];
    let base = Register {
        selector: scale,
        ..reader.register(24, false)
    };
    let uniform = reader.bit(91).then(|| reader.register(at, true));
    let offset = reader.signed(40, 24);
    let _ = always;
    bracket(base, uniform, offset, false)
}

fn local(reader: &mut Reader, at: u8) -> Operand {
    // Bits 77 to 79 say nothing about the address.
    reader.get(76, 4);
    let base = reader.register(24, false);
    let uniform = reader.bit(91).then(|| reader.register(at, true));
    let offset = reader.signed(40, 24);
    bracket(base, uniform, offset, false)
}

/// Global memory before compute capability 8.0: `[R+UR+offset]`, without a descriptor.
fn old(reader: &mut Reader, at: u8) -> Operand {
    let base = reader.register(24, false);
    let uniform = reader.bit(91).then(|| reader.register(at, true));
    let offset = reader.signed(40, 24);
    reader.get(90, 1);
    bracket(base, uniform, offset, false)
}

fn atomic_old(reader: &mut Reader) -> Operand {
    reader.get(70, 1);
    let base = reader.register(24, false);
    let uniform = reader.bit(91).then(|| reader.register(64, true));
    let offset = reader.signed(40, 24);
    bracket(base, uniform, offset, false)
}

/// `desc[UR][R.64+offset]`, or without a descriptor `[R.64+UR+offset]`: which of the two, the bit
/// `by_descriptor` says. Until compute capability 8.9 the descriptor is there but not written.
fn global(reader: &mut Reader, at: u8, by_descriptor: u8) -> Option<Operand> {
    if !reader.bit(91) {
        return None;
    }
    if by_descriptor != 90 {
        reader.get(90, 1);
    }
    let base = reader.register(24, false);
    let uniform = reader.register(at, true);
    let offset = reader.signed(40, 24);
    Some(described(reader, base, uniform, offset, by_descriptor))
}

fn described(
    reader: &mut Reader,
    base: Register,
    uniform: Register,
    offset: i64,
    by_descriptor: u8,
) -> Operand {
    let base = Register { wide: true, ..base };
    if !reader.bit(by_descriptor) {
        return bracket(base, Some(uniform), offset, false);
    }
    let written = reader.sm >= 90 || reader.bit(101);
    Operand::Address(Address {
        kind: "",
        descriptor: written.then_some(uniform),
        base: Some(base),
        uniform: None,
        offset,
    })
}

/// Where an asynchronous copy writes: `[R+offset]`.
fn copy_target(reader: &mut Reader) -> Operand {
    let base = reader.register(16, false);
    let offset = reader.get(44, 20) as i64;
    bracket(base, None, offset, false)
}

/// Where an asynchronous copy reads.
fn copy_source(reader: &mut Reader) -> Option<Operand> {
    if !reader.bit(91) {
        return None;
    }
    if reader.sm < 100 {
        reader.get(70, 1);
    }
    let base = reader.register(24, false);
    let uniform = reader.register(64, true);
    let offset = reader.signed(32, 12);
    Some(described(reader, base, uniform, offset, 76))
}

/// `c[bank][R+offset]`; the offset ends at bit 53.
fn constant(reader: &mut Reader, uniform: bool, at: u8) -> Operand {
    let base = if uniform && reader.form == 5 && !reader.bit(91) {
        Register::new(ZERO, true)
    } else {
        reader.register(24, uniform)
    };
    let offset = reader.get(at, 54 - at) as i64;
    let shown = !base.is_zero() || (!uniform && offset == 0);
    Operand::Constant(Constant {
        bank: Bank::Number(reader.get(54, 5) as u8),
        base: shown.then_some(base),
        offset,
        negate: false,
        absolute: false,
        invert: false,
        wide: false,
        spaced: false,
        selector: "",
    })
}
