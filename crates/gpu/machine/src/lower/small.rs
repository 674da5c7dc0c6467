//! Conversions to and from pairs of numbers of a byte or less.

use sass::Instruction;

use super::{Form, Run};
use crate::registers::{Origin, Part, Source};
use gpu_arithmetic::half;
use gpu_arithmetic::small::{self, Small};
use gpu_arithmetic::{Overflow, Round};

/// Format of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    Float(Small),
    /// Powers of two (`ue8m0`).
    Powers,
}

/// Returns the format of the pair that a conversion names.
pub(super) fn format(i: &Instruction) -> Option<Pair> {
    i.modifiers.iter().find_map(|name| match *name {
        "E4M3" => Some(Pair::Float(Small::E4m3)),
        "E5M2" => Some(Pair::Float(Small::E5m2)),
        "E2M3" => Some(Pair::Float(Small::E2m3)),
        "E3M2" => Some(Pair::Float(Small::E3m2)),
        "E2M1" => Some(Pair::Float(Small::E2m1)),
        "E8" => Some(Pair::Powers),
        _ => None,
    })
}

/// Codes of a pair from the bits of two singles, the upper one first.
type Codes = Box<dyn Fn(u32, u32) -> u32 + Send + Sync>;

/// Lowers a conversion.
pub(super) fn lower(i: &Instruction, form: &Form, pair: Pair) -> Option<Run> {
    let brain = i.has("BF16");
    if i.has("UNPACK_B") {
        return match pair {
            Pair::Float(format) if !brain => widened(form, format, i.has("RELU")),
            Pair::Powers if brain => unpacked(form, small::ue8m0_to_bf16),
            _ => None,
        };
    }
    let codes = codes(i, pair)?;
    let halves = i.has("UNPACK_B_MERGE_C");
    let kept = form.source(if halves { 1 } else { 2 })?;
    // The place of what is kept is known for bytes of two formats only.
    let known = matches!(pair, Pair::Float(Small::E4m3 | Small::E5m2));
    if !known && kept.from != Origin::Value(0) {
        return None;
    }
    match (halves, pair) {
        (true, Pair::Float(_)) if i.has("F16") => {
            of_halves(form, kept, codes, |bits| half::f16_to_f32(bits).to_bits())
        }
        (true, Pair::Powers) if brain => of_halves(form, kept, codes, |bits| u32::from(bits) << 16),
        (false, _) if i.has("PACK_AB_MERGE_C") && i.has("F32") => of_singles(form, kept, codes),
        _ => None,
    }
}

fn codes(i: &Instruction, pair: Pair) -> Option<Codes> {
    let relu = i.has("RELU");
    Some(match pair {
        Pair::Float(format) => Box::new(move |high, low| {
            let [high, low] = [high, low].map(f32::from_bits);
            format.pack(high, low, relu).into()
        }),
        Pair::Powers => {
            let round = match () {
                () if i.has("RZ") => Round::Rz,
                () if i.has("RP") => Round::Rp,
                () => return None,
            };
            let overflow = match i.has("SATFINITE") {
                true => Overflow::Finite,
                false => Overflow::Infinite,
            };
            Box::new(move |high, low| {
                let [high, low] = [high, low].map(f32::from_bits);
                small::pack_ue8m0(high, low, round, overflow).into()
            })
        }
    })
}

/// Lowers two singles to a pair in the lower half; another register supplies the upper half.
fn of_singles(form: &Form, kept: Source, codes: Codes) -> Option<Run> {
    let (d, high, low) = (form.dest?, form.source(0)?, form.source(1)?);
    Some(Box::new(move |r, mask| {
        let (high, low, kept) = (r.float(&high), r.float(&low), r.int(&kept));
        let out = std::array::from_fn(|l| kept[l] << 16 | codes(high[l], low[l]));
        r.set(d, mask, &out);
    }))
}

/// Lowers two halves to a pair in the lower half; another register supplies the upper half.
fn of_halves(
    form: &Form,
    kept: Source,
    codes: Codes,
    single: impl Fn(u16) -> u32 + Send + Sync + 'static,
) -> Option<Run> {
    let (d, a) = (form.dest?, form.source(0)?);
    Some(Box::new(move |r, mask| {
        let (a, kept) = (r.halves(&a), r.int(&kept));
        let out = std::array::from_fn(|l| {
            let (low, high) = half::unpack(a[l]);
            kept[l] << 16 | codes(single(high), single(low))
        });
        r.set(d, mask, &out);
    }))
}

/// Lowers a pair to two words of 16 bits.
fn unpacked(form: &Form, words: impl Fn(u16) -> u32 + Send + Sync + 'static) -> Option<Run> {
    let (d, a) = (form.dest?, form.source(0)?);
    let whole = Source {
        part: Part::Whole,
        ..a
    };
    let shift = if a.part == Part::High { 16 } else { 0 };
    Some(Box::new(move |r, mask| {
        let out = r.int(&whole).map(|v| words((v >> shift) as u16));
        r.set(d, mask, &out);
    }))
}

fn widened(form: &Form, format: Small, relu: bool) -> Option<Run> {
    // The upper byte of a pair of four bits has another selector.
    if format == Small::E2m1 && form.source(0)?.part != Part::Whole {
        return None;
    }
    unpacked(form, move |pair| format.to_halves(pair, relu))
}
