//! Lane-contiguous registers of a warp, and the loops over them.
//!
//! Immediates and constant special registers are rows too, filled once per warp. Every operand is
//! therefore a row, and every instruction one loop that the compiler can vectorise.

use super::rounding::Coins;

/// A 32-bit register of all lanes.
pub(crate) type Row = [u32; 32];
/// A 64-bit register of all lanes.
pub(crate) type Row64 = [u64; 32];
/// Bit of each lane in a mask: a table, because variable shifts do not vectorise with plain SSE2.
const BITS: Row = {
    let mut bits = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};
/// All lanes active.
pub(crate) const FULL: u32 = u32::MAX;

/// Registers of one warp. A predicate is one bit per lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct Regs {
    /// Random coins; unused unless the module is loaded for random rounding.
    pub(crate) coins: Coins,
    pub(crate) r32: Vec<Row>,
    pub(crate) r64: Vec<Row64>,
    pub(crate) preds: Vec<u32>,
}

/// Operand rows of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Destination.
    pub(crate) d: u32,
    /// Sources.
    pub(crate) s: [u32; 4],
    /// A constant of the instruction, such as the table of `lop3`.
    pub(crate) imm: u32,
}

/// Function that executes a register-only instruction for the lanes of a mask.
pub(crate) type AluFn = fn(&mut Regs, &Slots, u32);

/// Register file of an operand, and its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// 8 or 16 bits, kept zero-extended in the 32-bit file.
    R16,
    /// 32 bits.
    R32,
    /// 64 bits.
    R64,
    /// A predicate.
    P,
}

/// A register-only operation and the files of its operands.
#[derive(Clone, Copy)]
pub(crate) struct Alu {
    pub(crate) run: AluFn,
    pub(crate) sources: &'static [Kind],
    pub(crate) dest: Kind,
}

/// Conversion between a lane of a row and a Rust value.
pub(crate) trait Lane {
    const KIND: Kind;
    type Value: Copy;
    type Rows;
    fn rows(regs: &Regs, slot: u32) -> &Self::Rows;
    fn get(rows: &Self::Rows, lane: usize) -> Self::Value;
    fn empty() -> Self::Rows;
    fn set(rows: &mut Self::Rows, lane: usize, value: Self::Value);
    fn put(regs: &mut Regs, slot: u32, mask: u32, rows: &Self::Rows);
}

macro_rules! lanes {
    ($($name:ident: $value:ty, $kind:ident, $file:ident, $row:ty, $word:ty,
       |$bits:ident| $from:expr, |$v:ident| $into:expr;)*) => {$(
        #[doc = concat!("Lanes as `", stringify!($value), "`.")]
        pub(crate) struct $name;
        impl Lane for $name {
            const KIND: Kind = Kind::$kind;
            type Value = $value;
            type Rows = $row;
            #[inline(always)]
            fn rows(regs: &Regs, slot: u32) -> &$row {
                &regs.$file[slot as usize]
            }
            #[inline(always)]
            fn get(rows: &$row, lane: usize) -> $value {
                let $bits = rows[lane];
                $from
            }
            #[inline(always)]
            fn empty() -> $row {
                [0; 32]
            }
            #[inline(always)]
            fn set(rows: &mut $row, lane: usize, $v: $value) {
                rows[lane] = $into;
            }
            #[inline(always)]
            fn put(regs: &mut Regs, slot: u32, mask: u32, rows: &$row) {
                let to = &mut regs.$file[slot as usize];
                if mask == FULL {
                    *to = *rows;
                // Branch-free selection: a loop over set lanes would not vectorise.
                } else {
                    for lane in 0..32 {
                        let keep: $word = if mask & BITS[lane] != 0 { !0 } else { 0 };
                        to[lane] = (rows[lane] & keep) | (to[lane] & !keep);
                    }
                }
            }
        }
    )*};
}

lanes! {
    U16: u16, R16, r32, Row, u32, |b| b as u16, |v| u32::from(v);
    S16: i16, R16, r32, Row, u32, |b| b as i16, |v| u32::from(v as u16);
    U32: u32, R32, r32, Row, u32, |b| b, |v| v;
    S32: i32, R32, r32, Row, u32, |b| b as i32, |v| v as u32;
    F32: f32, R32, r32, Row, u32, |b| f32::from_bits(b), |v| v.to_bits();
    U64: u64, R64, r64, Row64, u64, |b| b, |v| v;
    S64: i64, R64, r64, Row64, u64, |b| b as i64, |v| v as u64;
    F64: f64, R64, r64, Row64, u64, |b| f64::from_bits(b), |v| v.to_bits();
}

/// Lanes of a predicate.
pub(crate) struct P;

impl Lane for P {
    const KIND: Kind = Kind::P;
    type Value = bool;
    type Rows = u32;
    #[inline(always)]
    fn rows(regs: &Regs, slot: u32) -> &u32 {
        &regs.preds[slot as usize]
    }
    #[inline(always)]
    fn get(rows: &u32, lane: usize) -> bool {
        rows & BITS[lane] != 0
    }
    #[inline(always)]
    fn empty() -> u32 {
        0
    }
    #[inline(always)]
    fn set(rows: &mut u32, lane: usize, value: bool) {
        *rows |= u32::from(value) << lane;
    }
    #[inline(always)]
    fn put(regs: &mut Regs, slot: u32, mask: u32, rows: &u32) {
        let to = &mut regs.preds[slot as usize];
        *to = (*rows & mask) | (*to & !mask);
    }
}

/// Makes an [`Alu`] from an expression over lanes: `alu!(|a: S32, b: S32| -> S32 a.min(b))`.
///
/// A leading `k;` names the instruction's constant. `k = [0, 4];` also compiles separate loops for
/// these values, in which the constant folds and the lanes vectorise.
macro_rules! alu {
    (|$($x:ident: $t:ident),*| -> $o:ident $e:expr) => {
        $crate::exec::regs::alu!(_imm = []; |$($x: $t),*| -> $o $e)
    };
    ($imm:ident; |$($x:ident: $t:ident),*| -> $o:ident $e:expr) => {
        $crate::exec::regs::alu!($imm = []; |$($x: $t),*| -> $o $e)
    };
    ($imm:ident = [$($value:expr),*]; |$($x:ident: $t:ident),*| -> $o:ident $e:expr) => {{
        fn go(r: &mut $crate::exec::regs::Regs, o: &$crate::exec::regs::Slots, mask: u32) {
            #[inline(always)]
            fn lanes(
                r: &mut $crate::exec::regs::Regs,
                o: &$crate::exec::regs::Slots,
                mask: u32,
                $imm: u32,
            ) {
                use $crate::exec::regs::Lane;
                let _ = $imm;
                let mut _source = o.s.iter();
                $(let $x = <$crate::exec::regs::$t as Lane>::rows(r, *_source.next().unwrap_or(&0));)*
                let mut out = <$crate::exec::regs::$o as Lane>::empty();
                for lane in 0..32 {
                    $(let $x = <$crate::exec::regs::$t as Lane>::get($x, lane);)*
                    <$crate::exec::regs::$o as Lane>::set(&mut out, lane, $e);
                }
                <$crate::exec::regs::$o as Lane>::put(r, o.d, mask, &out);
            }
            gpu_arithmetic::host::vectorised(#[inline(always)] || {
                $(if o.imm == $value {
                    return lanes(r, o, mask, $value);
                })*
                lanes(r, o, mask, o.imm);
            });
        }
        $crate::exec::regs::Alu {
            run: go,
            sources: &[$(<$crate::exec::regs::$t as $crate::exec::regs::Lane>::KIND),*],
            dest: <$crate::exec::regs::$o as $crate::exec::regs::Lane>::KIND,
        }
    }};
}
pub(crate) use alu;

/// Like [`alu!`], with randomly rounded results: `$toss` is the
/// [`Toss`](gpu_arithmetic::random::Toss) of each lane.
macro_rules! random {
    ($toss:ident, $imm:ident; |$($x:ident: $t:ident),*| -> $o:ident $e:expr) => {{
        fn go(r: &mut $crate::exec::regs::Regs, o: &$crate::exec::regs::Slots, mask: u32) {
            use $crate::exec::regs::Lane;
            let $imm = o.imm;
            let _ = $imm;
            let tosses = r.coins.draw();
            let mut _source = o.s.iter();
            $(let $x = <$crate::exec::regs::$t as Lane>::rows(r, *_source.next().unwrap_or(&0));)*
            let mut out = <$crate::exec::regs::$o as Lane>::empty();
            gpu_arithmetic::host::vectorised(#[inline(always)] || {
                for lane in 0..32 {
                    let $toss = tosses.of_lane(lane);
                    $(let $x = <$crate::exec::regs::$t as Lane>::get($x, lane);)*
                    <$crate::exec::regs::$o as Lane>::set(&mut out, lane, $e);
                }
            });
            <$crate::exec::regs::$o as Lane>::put(r, o.d, mask, &out);
        }
        $crate::exec::regs::Alu {
            run: go,
            sources: &[$(<$crate::exec::regs::$t as $crate::exec::regs::Lane>::KIND),*],
            dest: <$crate::exec::regs::$o as $crate::exec::regs::Lane>::KIND,
        }
    }};
}
pub(crate) use random;

/// Makes an [`Alu`] from a function of whole 32-bit rows.
macro_rules! rows {
    (|$($x:ident),*| $e:expr) => {{
        fn go(r: &mut $crate::exec::regs::Regs, o: &$crate::exec::regs::Slots, mask: u32) {
            use $crate::exec::regs::Lane;
            let mut _source = o.s.iter();
            $(let $x = &r.r32[*_source.next().unwrap_or(&0) as usize];)*
            let out = gpu_arithmetic::host::vectorised(#[inline(always)] || $e);
            $crate::exec::regs::U32::put(r, o.d, mask, &out);
        }
        $crate::exec::regs::Alu {
            run: go,
            sources: &[$($crate::exec::regs::row_kind!($x)),*],
            dest: $crate::exec::regs::Kind::R32,
        }
    }};
}
pub(crate) use rows;

/// Expands to the kind of a whole-row operand, once for each name.
macro_rules! row_kind {
    ($x:ident) => {
        $crate::exec::regs::Kind::R32
    };
}
pub(crate) use row_kind;
