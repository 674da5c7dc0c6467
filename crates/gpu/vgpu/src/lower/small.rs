//! `cvt` to and from pairs of numbers of a byte or less (PTX ISA, `cvt`).

use super::convert_mode::{FINITE, RELU, overflow, round};
use crate::exec::regs::{Alu, alu};
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};
use gpu_arithmetic::small::{self, Small};
use ptx::ast::Type;

/// Formats by their index in an instruction's constant.
const FORMATS: [(Type, Small); 5] = [
    (Type::E4m3x2, Small::E4m3),
    (Type::E5m2x2, Small::E5m2),
    (Type::E2m3x2, Small::E2m3),
    (Type::E3m2x2, Small::E3m2),
    (Type::E2m1x2, Small::E2m1),
];
/// Position of the index.
const FORMAT: u32 = 8;
const E5M2: u32 = 1 << FORMAT;

/// Selects a conversion with a pair on one side; `k` has rounding, saturation and `.relu`.
pub(super) fn pick(to: Type, from: Type, k: u32) -> Option<(Alu, u32)> {
    let with_format = |ty: Type| {
        let index = FORMATS.iter().position(|(known, _)| *known == ty)?;
        Some(k | (index as u32) << FORMAT)
    };
    if let Some(k) = with_format(to) {
        // `.satfinite` is part of these instructions.
        return Some((narrowing(from)?, k | FINITE));
    }
    if let (Some(k), Type::F16x2) = (with_format(from), to) {
        return Some((
            alu!(k = [0, E5M2]; |a: U16| -> U32 format(k).to_halves(a, k & RELU != 0)),
            k,
        ));
    }
    let alu = match (to, from) {
        (Type::Ue8m0x2, Type::F32) => {
            alu!(k; |a: F32, b: F32| -> U16 small::pack_ue8m0(a, b, round(k), overflow(k)))
        }
        (Type::Ue8m0x2, Type::Bf16x2) => alu!(k; |a: U32| -> U16 {
            let (low, high) = half::unpack(a);
            let [high, low] = [high, low].map(Bfloat16::widen);
            small::pack_ue8m0(high, low, round(k), overflow(k))
        }),
        (Type::Bf16x2, Type::Ue8m0x2) => alu!(|a: U16| -> U32 small::ue8m0_to_bf16(a)),
        _ => return None,
    };
    Some((alu, k))
}

fn narrowing(from: Type) -> Option<Alu> {
    Some(match from {
        Type::F32 => alu!(k; |a: F32, b: F32| -> U16 format(k).pack(a, b, k & RELU != 0)),
        Type::F16x2 => alu!(k; |a: U32| -> U16 {
            let (low, high) = half::unpack(a);
            format(k).pack(Fp16::widen(high), Fp16::widen(low), k & RELU != 0)
        }),
        _ => return None,
    })
}

#[inline(always)]
fn format(k: u32) -> Small {
    FORMATS[(k >> FORMAT) as usize % FORMATS.len()].1
}
