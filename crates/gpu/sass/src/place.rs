//! Address and constant operands with special layouts.

use crate::instruction::{Address, Bank, Constant, Operand, Register, ZERO};
use crate::reader::{Reader, choose_text};
use crate::table::UniformAddress;

/// Width of an address register.
#[derive(Clone, Copy)]
enum Width {
    /// 64 bits.
    Wide,
    /// 64 bits if bit 90 is set, else 32 bits.
    Bit90,
}

/// Reads an operand with the named layout of the table.
pub(crate) fn read(reader: &mut Reader, name: &str) -> Option<Operand> {
    Some(match name {
        "shared32" => shared(reader, 32),
        "shared64" => shared(reader, 64),
        "plain32" => plain(reader, 32),
        "plain64" => plain(reader, 64),
        "bare24" => bracket(reader.register(24, false), None, 0),
        "uniform24" => uniform24(reader),
        "wide24" => wide(reader),
        "absolute" => absolute(reader),
        "local32" => local(reader, 32),
        "local64" => local(reader, 64),
        "old32" => old(reader, 32),
        "old64" => old(reader, 64),
        "desc32" => global(reader, 32, 76, Width::Bit90)?,
        "desc64" => global(reader, 64, 76, Width::Bit90)?,
        "sectors32" => sectors(reader, 32, 17)?,
        "sectors64" => sectors(reader, 64, 19)?,
        "atomg" if reader.sm < 80 => atomic_old(reader),
        // The assembler's own code for `tensormap.cp_fenceproxy` has no descriptor.
        "atomg" if !reader.bit(91) => base(reader, 24),
        "atomg" if reader.sm < 100 => {
            // Read only to count as known: the text is the same with either value.
            reader.get(70, 1);
            global(reader, 64, 71, Width::Wide)?
        }
        "atomg" => atomic(reader, 76)?,
        "atomf" if reader.sm < 100 => {
            reader.get(70, 1);
            global(reader, 64, 71, Width::Wide)?
        }
        "atomf" => atomic(reader, 90)?,
        "redg" if reader.sm < 80 => old(reader, 64),
        "redg" if reader.sm < 100 => global(reader, 64, 71, Width::Bit90)?,
        "redg" => global(reader, 64, 81, Width::Bit90)?,
        "ldgsts" => copy_target(reader),
        "source" => copy_source(reader)?,
        "const" => constant(reader, false, 38),
        "uconst" => constant(reader, true, 38),
        "uconst24" => constant(reader, true, 38),
        "scale" => {
            let index = reader.get(60, 3) | reader.get(73, 5) << 3;
            Operand::Register(Register::new(index as u8, true))
        }
        "ldcu" => constant(reader, true, 37),
        _ => return None,
    })
}

/// Reads `[R+offset]` with the offset at bit 40.
pub(crate) fn base(reader: &mut Reader, at: u8) -> Operand {
    let register = reader.register(at, false);
    let offset = reader.signed(40, 24);
    bracket(register, None, offset)
}

/// Creates an address; a zero base is omitted if another part is present.
fn bracket(base: Register, uniform: Option<Register>, offset: i64) -> Operand {
    let alone = uniform.is_none() && offset == 0;
    let written = alone || !base.is_zero() || !base.selector.is_empty();
    Operand::Address(Address {
        kind: "",
        descriptor: None,
        base: written.then_some(base),
        uniform,
        offset,
        suffix: "",
    })
}

/// Reads `[R+UR+offset]` with the uniform register at `at`.
#[expect(clippy::indexing_slicing, reason = "two bits number one of four words")]
fn shared(reader: &mut Reader, at: u8) -> Operand {
    let scale = ["", "X4", "X8", "X16"][reader.get(78, 2) as usize & 3];
    let base = Register {
        selector: scale,
        ..reader.register(24, false)
    };
    let uniform = reader.bit(91).then(|| reader.register(at, true));
    let offset = reader.signed(40, 24);
    bracket(base, uniform, offset)
}

/// Reads the same address without a scale.
fn plain(reader: &mut Reader, at: u8) -> Operand {
    let base = reader.register(24, false);
    let uniform = reader.bit(91).then(|| reader.register(at, true));
    let offset = reader.signed(40, 24);
    bracket(base, uniform, offset)
}

/// Reads `[UR]`, `gdesc[UR].tnspB`, `tmem[UR+offset]`.
pub(crate) fn uniform(reader: &mut Reader, layout: &UniformAddress) -> Option<Operand> {
    let mut uniform = reader.register(layout.at, true);
    uniform.index = uniform.index.wrapping_add(u8::from(layout.next));
    let offset = match layout.offset {
        // 32 bits around the third source.
        true => i64::from((reader.get(72, 8) << 24 | reader.get(40, 24)) as u32 as i32),
        false => 0,
    };
    let suffix = match &layout.suffix {
        Some(choice) => choose_text(reader, choice)?,
        None => "",
    };
    Some(Operand::Address(Address {
        kind: layout.kind,
        descriptor: None,
        base: None,
        uniform: Some(uniform),
        offset,
        suffix,
    }))
}

/// Reads `[UR+offset]`.
fn uniform24(reader: &mut Reader) -> Operand {
    let uniform = reader.register(24, true);
    let offset = reader.signed(40, 24);
    bracket(Register::new(ZERO, false), Some(uniform), offset)
}

/// Reads `[R.64+offset]`.
fn wide(reader: &mut Reader) -> Operand {
    // The bit is known but does not change the text.
    reader.get(90, 1);
    let base = Register {
        wide: true,
        ..reader.register(24, false)
    };
    let offset = reader.signed(40, 24);
    bracket(base, None, offset)
}

/// Reads `[R+offset]` with a 32-bit offset.
fn absolute(reader: &mut Reader) -> Operand {
    if reader.sm >= 80 {
        reader.get(76, 1);
    }
    let base = reader.register(24, false);
    let offset = reader.signed(32, 32);
    bracket(base, None, offset)
}

fn local(reader: &mut Reader, at: u8) -> Operand {
    // Bits 77 to 79 do not affect the address.
    reader.get(76, 4);
    let base = reader.register(24, false);
    let uniform = reader.bit(91).then(|| reader.register(at, true));
    let offset = reader.signed(40, 24);
    bracket(base, uniform, offset)
}

/// Reads a global address before compute capability 8.0: `[R.64+UR+offset]`, without a descriptor.
fn old(reader: &mut Reader, at: u8) -> Operand {
    let uniform = reader.bit(91).then(|| reader.register(at, true));
    let wide = uniform.is_some() && reader.bit(90);
    let narrow = uniform.is_some() && !wide;
    let base = Register {
        wide,
        selector: if narrow { "U32" } else { "" },
        ..reader.register(24, false)
    };
    let offset = reader.signed(40, 24);
    bracket(base, uniform, offset)
}

fn atomic_old(reader: &mut Reader) -> Operand {
    let uniform = reader.bit(91).then(|| {
        reader.get(70, 1);
        reader.register(64, true)
    });
    let base = Register {
        wide: uniform.is_some(),
        ..reader.register(24, false)
    };
    let offset = reader.signed(40, 24);
    bracket(base, uniform, offset)
}

/// Reads `desc[UR][R.64+offset]`, or `[R.64+UR+offset]` if the bit `by_descriptor` is clear. Up to
/// compute capability 8.9 the descriptor is encoded but not printed.
fn global(reader: &mut Reader, at: u8, by_descriptor: u8, width: Width) -> Option<Operand> {
    let offset = reader.signed(40, 24);
    described(reader, at, offset, by_descriptor, width)
}

/// Reads the same address with an offset of `bits` bits in sectors of 32 bytes. The bits after it are a mask of words.
fn sectors(reader: &mut Reader, at: u8, bits: u8) -> Option<Operand> {
    let offset = reader.signed(40, bits) * 32;
    described(reader, at, offset, 76, Width::Wide)
}

/// Reads the address of an atomic since compute capability 10.0: bit 63 is not part of the offset.
fn atomic(reader: &mut Reader, by_descriptor: u8) -> Option<Operand> {
    reader.get(63, 1);
    let offset = reader.signed(40, 23);
    described(reader, 64, offset, by_descriptor, Width::Wide)
}

fn described(
    reader: &mut Reader,
    at: u8,
    offset: i64,
    by_descriptor: u8,
    width: Width,
) -> Option<Operand> {
    if !reader.bit(91) {
        return None;
    }
    let base = reader.register(24, false);
    let uniform = reader.register(at, true);
    let wide = match width {
        Width::Wide => true,
        Width::Bit90 => reader.bit(90),
    };
    let base = Register {
        wide,
        selector: if wide { "" } else { "U32" },
        ..base
    };
    if !reader.bit(by_descriptor) {
        return Some(bracket(base, Some(uniform), offset));
    }
    let written = reader.sm >= 90 || reader.bit(101);
    Some(Operand::Address(Address {
        kind: "",
        descriptor: written.then_some(uniform),
        base: Some(base),
        uniform: None,
        offset,
        suffix: "",
    }))
}

/// Reads the destination of an asynchronous copy: `[R+offset]`.
fn copy_target(reader: &mut Reader) -> Operand {
    let base = reader.register(16, false);
    let offset = reader.signed(44, 20);
    bracket(base, None, offset)
}

/// Reads the source of an asynchronous copy.
fn copy_source(reader: &mut Reader) -> Option<Operand> {
    if reader.sm < 100 {
        reader.get(70, 1);
    }
    let offset = reader.signed(32, 12);
    described(reader, 64, offset, 76, Width::Wide)
}

/// Reads `c[bank][R+offset]`; the offset ends at bit 53.
fn constant(reader: &mut Reader, uniform: bool, at: u8) -> Operand {
    let base = if uniform && reader.form == 5 && !reader.bit(91) {
        Register::new(ZERO, true)
    } else {
        reader.register(24, uniform)
    };
    let length = 54 - at;
    let offset = reader.signed(at, length);
    let indexed = !uniform || at == 37;
    let shown = !base.is_zero() || (indexed && offset == 0);
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
