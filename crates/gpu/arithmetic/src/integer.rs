//! Integer operations whose PTX semantics differ from the host's instructions.

/// `lop3.b32`: bit `i` of the result is the table's bit at `(a_i, b_i, c_i)`.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    // Common tables first: three-way xor, and, or, select.
    match table {
        0x96 => a ^ b ^ c,
        0x80 => a & b & c,
        0xfe => a | b | c,
        0xca => (a & b) | (!a & c),
        0xc0 => a & b,
        0xea => (a & b) | c,
        0x6a => (a & b) ^ c,
        0xf8 => a | (b & c),
        _ => {
            // A tree of selections, by `c` first; the leaves do not depend on the lane.
            let leaf = |i: u8| 0_u32.wrapping_sub(u32::from(table >> i & 1));
            let select = |x: u32, zero: u32, one: u32| zero ^ (x & (zero ^ one));
            let by_c = |i: u8| select(c, leaf(i), leaf(i + 1));
            select(a, select(b, by_c(0), by_c(2)), select(b, by_c(4), by_c(6)))
        }
    }
}

/// Mode of `prmt.b32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permute {
    /// Four independent selectors, each with a sign-replication bit.
    Default,
    /// `.f4e`: four bytes upwards from the selected one.
    Forward4,
    /// `.b4e`: four bytes downwards from the selected one.
    Backward4,
    /// `.rc8`: one byte replicated.
    Replicate8,
    /// `.ecl`: edge clamp, left.
    EdgeLeft,
    /// `.ecr`: edge clamp, right.
    EdgeRight,
    /// `.rc16`: one half-word replicated.
    Replicate16,
}

/// `prmt.b32`: picks four bytes of the eight in `b:a`.
#[inline]
pub fn prmt(a: u32, b: u32, selector: u32, mode: Permute) -> u32 {
    let bytes = u64::from(a) | u64::from(b) << 32;
    let s = selector & 3;
    let pick = |index: u32| (bytes >> (8 * (index & 7))) as u8;
    let chosen: [u8; 4] = match mode {
        Permute::Default => {
            let one = |i: u32| {
                let nibble = selector >> (4 * i);
                let byte = pick(nibble);
                if nibble & 8 != 0 {
                    (byte as i8 >> 7) as u8
                } else {
                    byte
                }
            };
            [one(0), one(1), one(2), one(3)]
        }
        Permute::Forward4 => [pick(s), pick(s + 1), pick(s + 2), pick(s + 3)],
        // Seven upwards is one downwards, because `pick` counts modulo eight.
        Permute::Backward4 => [pick(s), pick(s + 7), pick(s + 6), pick(s + 5)],
        Permute::Replicate8 => [pick(s); 4],
        Permute::EdgeLeft => [pick(s), pick(s.max(1)), pick(s.max(2)), pick(3)],
        Permute::EdgeRight => [pick(0), pick(s.min(1)), pick(s.min(2)), pick(s)],
        Permute::Replicate16 => {
            let low = 2 * (selector & 1);
            [pick(low), pick(low + 1), pick(low), pick(low + 1)]
        }
    };
    u32::from_le_bytes(chosen)
}

/// `bfe.{u32,s32,u64,s64}`: `length` bits from `position`, zero- or sign-extended.
///
/// `width` is 32 or 64. Bits beyond the width replicate the sign of the source's highest bit when
/// signed; position and length are taken from their low 8 bits.
#[inline]
pub fn bfe(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    let (position, length) = (position & 255, length & 255);
    if length == 0 {
        return 0;
    }
    let top = width - 1;
    let value = if width == 32 { u64::from(a as u32) } else { a };
    let sign = signed && value >> (position + length - 1).min(top) & 1 == 1;
    let field = if position > top { 0 } else { value >> position };
    // Bits inside the source; the sign fills the rest.
    let present = length.min(width.saturating_sub(position));
    let mask = if present >= 64 {
        u64::MAX
    } else {
        (1 << present) - 1
    };
    let result = if sign { field | !mask } else { field & mask };
    if width == 32 {
        u64::from(result as u32)
    } else {
        result
    }
}

/// `bfi.{b32,b64}`: inserts the low `length` bits of `a` into `b` at `position`.
#[inline]
pub fn bfi(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    let (position, length) = (position & 255, length & 255);
    if position >= width || length == 0 {
        return b;
    }
    let ones = if length >= 64 {
        u64::MAX
    } else {
        (1 << length) - 1
    };
    let mask = ones << position;
    let result = (b & !mask) | (a << position) & mask;
    if width == 32 {
        u64::from(result as u32)
    } else {
        result
    }
}

/// `bfind{.shiftamt}`: position of the highest bit that differs from the sign, `u32::MAX` if none;
/// with `shift_amount` the left shift that would bring it to the top.
#[inline]
pub fn bfind(a: u64, width: u32, signed: bool, shift_amount: bool) -> u32 {
    let extended = match (width, signed) {
        (32, true) => i64::from(a as i32),
        (32, false) => i64::from(a as u32),
        _ => a as i64,
    };
    let value = if signed && extended < 0 {
        !extended
    } else {
        extended
    } as u64;
    if value == 0 {
        return u32::MAX;
    }
    let position = 63 - value.leading_zeros();
    if shift_amount {
        width - 1 - position
    } else {
        position
    }
}

/// `fns.b32`: position of the `offset`-th set bit at or above (below, if negative) `base`.
#[inline]
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 {
            base
        } else {
            u32::MAX
        };
    }
    let step = offset.signum();
    let mut left = offset.unsigned_abs();
    let mut position = base as i32;
    while (0..32).contains(&position) {
        if mask >> position & 1 == 1 {
            left -= 1;
            if left == 0 {
                return position as u32;
            }
        }
        position += step;
    }
    u32::MAX
}

/// `szext{.clamp,.wrap}`: sign- or zero-extension from the low `bits` bits.
#[inline]
pub fn szext(a: u32, bits: u32, signed: bool, wrap: bool) -> u32 {
    let n = if wrap { bits & 31 } else { bits.min(32) };
    if n == 0 {
        return 0;
    }
    let unused = 32 - n;
    if signed {
        ((a << unused) as i32 >> unused) as u32
    } else {
        (a << unused) >> unused
    }
}

/// `bmsk{.clamp,.wrap}`: `length` ones from `position`.
#[inline]
pub fn bmsk(position: u32, length: u32, wrap: bool) -> u32 {
    let (p, n) = if wrap {
        (position & 31, length & 31)
    } else {
        (position.min(32), length.min(32))
    };
    // Clamped, both shifts may be by 32.
    ((((1_u64 << n) - 1) << p) & 0xffff_ffff) as u32
}

/// `shf.{l,r}.{wrap,clamp}.b32`: one half of the 64-bit funnel `high:low` shifted.
#[inline(always)]
pub fn shf(low: u32, high: u32, amount: u32, left: bool, wrap: bool) -> u32 {
    let n = if wrap { amount & 31 } else { amount.min(32) };
    let funnel = u64::from(high) << 32 | u64::from(low);
    if left {
        ((funnel << n) >> 32) as u32
    } else {
        (funnel >> n) as u32
    }
}

#[inline(always)]
fn byte(x: u32, i: u32, signed: bool) -> i32 {
    let b = (x >> (8 * i)) as u8;
    if signed {
        i32::from(b as i8)
    } else {
        i32::from(b)
    }
}

/// `dp4a`: `c` plus the dot product of four bytes, wrapping.
#[inline(always)]
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let mut sum = c as i32;
    for i in 0..4 {
        sum = sum.wrapping_add(byte(a, i, a_signed) * byte(b, i, b_signed));
    }
    sum as u32
}

/// `dp2a.{lo,hi}`: `c` plus the dot product of `a`'s halves with two bytes of `b`, wrapping.
#[inline(always)]
pub fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, high: bool) -> u32 {
    let mut sum = c as i32;
    for i in 0..2 {
        let half = (a >> (16 * i)) as u16;
        let x = if a_signed {
            i32::from(half as i16)
        } else {
            i32::from(half)
        };
        let y = byte(b, i + if high { 2 } else { 0 }, b_signed);
        sum = sum.wrapping_add(x.wrapping_mul(y));
    }
    sum as u32
}

/// `sad.{u32,s32}`: `c + |a - b|`, wrapping.
#[inline(always)]
pub fn sad(a: u32, b: u32, c: u32, signed: bool) -> u32 {
    let wide = |x: u32| if signed { x as i32 as u64 } else { x.into() };
    sad64(wide(a), wide(b), c.into(), signed) as u32
}

/// `sad.{u64,s64}`.
#[inline(always)]
pub fn sad64(a: u64, b: u64, c: u64, signed: bool) -> u64 {
    let distance = if signed {
        (a as i64).abs_diff(b as i64)
    } else {
        a.abs_diff(b)
    };
    c.wrapping_add(distance)
}

/// The 48-bit product of the low 24 bits: `mul24.lo` is its bits 0–31, `mul24.hi` bits 16–47.
#[inline(always)]
pub fn mul24(a: u32, b: u32, signed: bool, high: bool) -> u32 {
    let product = if signed {
        let narrow = |x: u32| i64::from((x << 8) as i32 >> 8);
        narrow(a) * narrow(b)
    } else {
        i64::from(a & 0xff_ffff) * i64::from(b & 0xff_ffff)
    };
    (if high { product >> 16 } else { product }) as u32
}

/// `mad24.hi.sat.s32`: [`mul24`] high plus `c`, clamped.
#[inline(always)]
pub fn mad24_hi_sat(a: u32, b: u32, c: u32) -> u32 {
    (mul24(a, b, true, true) as i32).saturating_add(c as i32) as u32
}

/// `add.sat.s32`.
#[inline(always)]
pub fn add_sat(a: u32, b: u32) -> u32 {
    (a as i32).saturating_add(b as i32) as u32
}

/// `sub.sat.s32`.
#[inline(always)]
pub fn sub_sat(a: u32, b: u32) -> u32 {
    (a as i32).saturating_sub(b as i32) as u32
}

/// `mad.hi.sat.s32`.
#[inline(always)]
pub fn mad_hi_sat(a: u32, b: u32, c: u32) -> u32 {
    let high = (i64::from(a as i32) * i64::from(b as i32)) >> 32;
    (high as i32).saturating_add(c as i32) as u32
}
