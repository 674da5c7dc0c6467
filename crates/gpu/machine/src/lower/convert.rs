//! Conversions between number formats.

use sass::Instruction;

use super::{Form, Run, small};
use crate::registers::{Origin, Part, Registers, Source};
use gpu_arithmetic::convert::{self, IntType};
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};
use gpu_arithmetic::{Overflow, Round, single};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "F2F" | "UF2F" => float_to_float(i),
        "F2I" | "UF2I" => float_to_int(i),
        "F2IP" => packed_bytes(i),
        "I2F" | "I2FP" | "UI2F" | "UI2FP" => int_to_float(i),
        "FRND" | "UFRND" => integral(i),
        "F2FP" => packed(i),
        "I2IP" => packed_ints(i),
        "I2I" => int_to_int(i),
        _ => None,
    }
}

/// A type named by a modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    F16,
    Bf16,
    F32,
    F64,
    Int(IntType),
}

impl Type {
    fn from_name(name: &str) -> Option<Type> {
        let int = |bits, signed| Some(Type::Int(IntType { bits, signed }));
        match name {
            "F16" => Some(Type::F16),
            "BF16" => Some(Type::Bf16),
            "F32" => Some(Type::F32),
            "F64" => Some(Type::F64),
            "U8" => int(8, false),
            "S8" => int(8, true),
            "U16" => int(16, false),
            "S16" => int(16, true),
            "U32" => int(32, false),
            "S32" => int(32, true),
            "U64" => int(64, false),
            "S64" => int(64, true),
            _ => None,
        }
    }

    /// Returns the named types in their order.
    fn named_types(i: &Instruction) -> Vec<Type> {
        i.modifiers
            .iter()
            .filter_map(|m| Type::from_name(m))
            .collect()
    }

    fn is_wide(self) -> bool {
        match self {
            Type::F64 => true,
            Type::Int(int) => int.bits == 64,
            _ => false,
        }
    }

    /// Converts a float of this type to a double.
    fn widen(self, bits: u64) -> f64 {
        match self {
            Type::F16 => f64::from(half::f16_to_f32(bits as u16)),
            Type::Bf16 => f64::from(half::bf16_to_f32(bits as u16)),
            Type::F64 => f64::from_bits(bits),
            _ => f64::from(f32::from_bits(bits as u32)),
        }
    }
}

fn round(i: &Instruction) -> Round {
    match () {
        () if i.has("TRUNC") || i.has("RZ") => Round::Rz,
        () if i.has("FLOOR") || i.has("RM") => Round::Rm,
        () if i.has("CEIL") || i.has("RP") => Round::Rp,
        () => Round::Rn,
    }
}

/// Reads the bits of a float operand, at most 64.
fn bits(r: &Registers, s: &Source, ty: Type) -> [u64; 32] {
    match ty {
        Type::F64 => r.double(s),
        Type::F16 | Type::Bf16 => {
            // A plain register operand stands for its lower half.
            let part = if s.part == Part::Whole {
                Part::Low
            } else {
                s.part
            };
            r.halves(&Source { part, ..*s })
                .map(|v| u64::from(v & 0xffff))
        }
        _ => r.float(s).map(u64::from),
    }
}

/// Lowers a conversion of each lane's value of any width.
fn each_value(
    form: &Form,
    wide: bool,
    read: impl Fn(&Registers, &Source) -> [u64; 32] + Send + Sync + 'static,
    f: impl Fn(u64) -> u64 + Send + Sync + 'static,
) -> Option<Run> {
    let (d, a) = (form.dest?, form.source(0)?);
    Some(Box::new(move |r, mask| {
        let out = read(r, &a).map(&f);
        if wide {
            r.set_wide(d, mask, &out);
        } else {
            r.set(d, mask, &out.map(|v| v as u32));
        }
    }))
}

fn float_to_float(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let &[to, from] = Type::named_types(i).as_slice() else {
        return None;
    };
    let (ftz, round, sat) = (i.has("FTZ"), round(i), i.has("SAT"));
    let read = move |r: &Registers, s: &Source| {
        let row = bits(r, s, from);
        match ftz && from == Type::F32 {
            true => row.map(|v| single::ftz(f32::from_bits(v as u32)).to_bits().into()),
            false => row,
        }
    };
    if from == to && from == Type::F32 || sat {
        return None;
    }
    each_value(&form, to.is_wide(), read, move |bits| match (to, from) {
        (Type::F32, Type::F64) => {
            let x = convert::f64_to_f32(f64::from_bits(bits), round);
            (if ftz { single::ftz(x) } else { x }).to_bits().into()
        }
        (Type::F64, _) => {
            // Exact, because the source is a half or a single.
            let x = from.widen(bits) as f32;
            convert::f32_to_f64(if ftz { single::ftz(x) } else { x }).to_bits()
        }
        (Type::F16, Type::F64) => f64_to_half(bits, round, gpu_arithmetic::soft::F16),
        (Type::Bf16, Type::F64) => f64_to_half(bits, round, gpu_arithmetic::soft::BF16),
        (Type::F16, _) => {
            half::from_f32::<Fp16>(from.widen(bits) as f32, round, Overflow::Infinite).into()
        }
        (Type::Bf16, _) => {
            half::from_f32::<Bfloat16>(from.widen(bits) as f32, round, Overflow::Infinite).into()
        }
        _ => single::canonical(from.widen(bits) as f32).to_bits().into(),
    })
}

fn f64_to_half(bits: u64, round: Round, to: gpu_arithmetic::soft::Format) -> u64 {
    use gpu_arithmetic::soft;
    if f64::from_bits(bits).is_nan() {
        return u64::from(half::NAN);
    }
    soft::convert(soft::F64, to, bits, round, Overflow::Infinite)
}

fn float_to_int(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let mut to = IntType {
        bits: 32,
        signed: true,
    };
    let mut from = Type::F32;
    for ty in Type::named_types(i) {
        match ty {
            Type::Int(int) => to = int,
            float => from = float,
        }
    }
    let (round, ftz, zero) = (round(i), i.has("FTZ"), i.has("NTZ"));
    let read = move |r: &Registers, s: &Source| bits(r, s, from);
    each_value(&form, to.bits == 64, read, move |bits| {
        let mut x = from.widen(bits);
        if ftz && from == Type::F32 {
            x = f64::from(single::ftz(x as f32));
        }
        // The instruction selects the result of NaN: zero or the highest bit.
        if x.is_nan() && zero {
            return 0;
        }
        // As from a double, so that NaN becomes the highest bit.
        convert::float_to_int(x, true, to, round)
    })
}

fn int_to_float(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let mut from = IntType {
        bits: 32,
        signed: true,
    };
    let mut to = Type::F32;
    for ty in Type::named_types(i) {
        match ty {
            Type::Int(int) => from = int,
            float => to = float,
        }
    }
    let round = round(i);
    let wide = from.bits == 64;
    let read = move |r: &Registers, s: &Source| match wide {
        true => r.wide(s),
        false => r.int(s).map(u64::from),
    };
    each_value(&form, to.is_wide(), read, move |v| match to {
        Type::F64 => convert::int_to_f64(v, from, round).to_bits(),
        Type::F16 => convert::int_to_f16(v, from, round).into(),
        Type::Bf16 => convert::int_to_float(v, from, gpu_arithmetic::soft::BF16, round),
        _ => convert::int_to_f32(v, from, round).to_bits().into(),
    })
}

fn integral(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let ty = Type::named_types(i).first().copied().unwrap_or(Type::F32);
    let (round, ftz) = (round(i), i.has("FTZ"));
    let read = move |r: &Registers, s: &Source| bits(r, s, ty);
    each_value(&form, ty.is_wide(), read, move |bits| match ty {
        Type::F64 => convert::integral_f64(f64::from_bits(bits), round).to_bits(),
        Type::F16 => {
            half::f32_to_f16(convert::integral_f32(half::f16_to_f32(bits as u16), round)).into()
        }
        Type::Bf16 => {
            half::f32_to_bf16(convert::integral_f32(half::bf16_to_f32(bits as u16), round)).into()
        }
        _ => {
            let x = f32::from_bits(bits as u32);
            let x = if ftz { single::ftz(x) } else { x };
            convert::integral_f32(x, round).to_bits().into()
        }
    })
}

/// Lowers a conversion of two numbers into one register.
fn packed(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    if let Some(format) = small::format(i) {
        return small::lower(i, &form, format);
    }
    let relu = i.has("RELU");
    let round = round(i);
    let overflow = if i.has("SATFINITE") {
        Overflow::Finite
    } else {
        Overflow::Infinite
    };
    let d = form.dest?;
    if i.has("TF32") {
        return tensor_float(&form, round, overflow, relu);
    }
    let (high, low) = (form.source(0)?, form.source(1)?);
    let merged = i.has("MERGE_C");
    // A single result is supported only with zero in the other half.
    if merged && low.from != Origin::Value(0) || !merged && !i.has("PACK_AB") {
        return None;
    }
    let brain = i.has("BF16") || i.has("BF16_V2");
    Some(Box::new(move |r, mask| {
        let (high, low) = (r.float(&high), r.float(&low));
        let out = std::array::from_fn(|l| {
            let code = |bits: u32| match brain {
                true => code::<Bfloat16>(bits, round, overflow, relu),
                false => code::<Fp16>(bits, round, overflow, relu),
            };
            match merged {
                true => code(high[l]),
                false => code(high[l]) << 16 | code(low[l]),
            }
        });
        r.set(d, mask, &out);
    }))
}

fn code<H: Half>(bits: u32, round: Round, overflow: Overflow, relu: bool) -> u32 {
    let x = half::from_f32::<H>(f32::from_bits(bits), round, overflow);
    u32::from(if relu { half::relu::<H>(x) } else { x })
}

fn tensor_float(form: &Form, round: Round, overflow: Overflow, relu: bool) -> Option<Run> {
    let (d, source) = (form.dest?, form.source(0)?);
    Some(Box::new(move |r, mask| {
        let out = r.float(&source).map(|bits| {
            let x = f32::from_bits(bits);
            // NaN stays NaN.
            gpu_arithmetic::small::to_tf32(if relu && x <= 0.0 { 0.0 } else { x }, round, overflow)
        });
        r.set(d, mask, &out);
    }))
}

/// Lowers two floats to two integer bytes, followed by the lower half of another register.
fn packed_bytes(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (d, [a, b, kept]) = (form.dest?, form.first_three()?);
    let to = IntType {
        bits: 8,
        signed: i.has("S8"),
    };
    if i.has("RELU") || !i.has("NTZ") || kept.part != Part::Whole {
        return None;
    }
    let round = round(i);
    Some(Box::new(move |r, mask| {
        let (a, b, kept) = (r.float(&a), r.float(&b), r.int(&kept));
        let out = std::array::from_fn(|l| {
            let code = |bits: u32| match f32::from_bits(bits) {
                x if x.is_nan() => 0,
                x => convert::float_to_int(x.into(), true, to, round) as u32 & 0xff,
            };
            kept[l] << 16 | code(a[l]) << 8 | code(b[l])
        });
        r.set(d, mask, &out);
    }))
}

/// Lowers two integers to a narrower type, followed by the lower part of another register.
fn packed_ints(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (d, [a, b, kept]) = (form.dest?, form.first_three()?);
    let (bits, signed) = match i.modifiers.first().copied()? {
        "U16" => (16, false),
        "S16" => (16, true),
        "U8" => (8, false),
        "S8" => (8, true),
        "U4" => (4, false),
        "S4" => (4, true),
        "U2" => (2, false),
        "S2" => (2, true),
        _ => return None,
    };
    if !i.has("SAT") || kept.part != Part::Whole {
        return None;
    }
    let (least, most) = match signed {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    };
    Some(Box::new(move |r, mask| {
        let (a, b, kept) = (r.int(&a), r.int(&b), r.int(&kept));
        let out = std::array::from_fn(|l| {
            let code = |v: u32| (v as i32).clamp(least, most) as u32 & (u32::MAX >> (32 - bits));
            // Two numbers of 16 bits leave no room for another register.
            let above = if bits == 16 { 0 } else { kept[l] << (2 * bits) };
            above | code(a[l]) << bits | code(b[l])
        });
        r.set(d, mask, &out);
    }))
}

fn int_to_int(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let types: Vec<IntType> = Type::named_types(i)
        .into_iter()
        .filter_map(|ty| match ty {
            Type::Int(int) => Some(int),
            _ => None,
        })
        .collect();
    let &[to, from] = types.as_slice() else {
        return None;
    };
    let sat = i.has("SAT");
    let wide = from.bits == 64;
    let read = move |r: &Registers, s: &Source| match wide {
        true => r.wide(s),
        false => r.int(s).map(u64::from),
    };
    each_value(&form, to.bits == 64, read, move |v| {
        convert::int_to_int(v, from, to, sat)
    })
}
