//! The `wmma.*` forms, composed of `mma.sync` tiles.
//!
//! The ISA does not specify the distribution of a fragment. Here a fragment is a list of `mma.sync`
//! fragments (layout in [`super::layout`]): m16n16 is two tiles of 8 columns, m32n8 two tiles of 16
//! rows, and m8n32 the transpose of m32n8. The f16 multiplicands have more registers than elements;
//! the surplus registers repeat the first ones.

use super::layout::{a_element, accumulator_element, b_element};
use super::mma::{Accumulator, Element, Mma};
use super::{Lanes, half, single};

/// Operand of the product that a fragment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Left multiplicand, m×k.
    A,
    /// Right multiplicand, k×n.
    B,
    /// Accumulator C or D, m×n.
    Accumulator,
}

/// One form of `wmma.mma.sync` with 32-bit registers: shape and types of an [`Mma`], with `wmma`'s
/// own set of shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wmma(pub Mma);

/// Distribution of one fragment over lanes and registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Operand of the product.
    pub operand: Operand,
    /// Number of 32-bit registers of a lane, as PTX counts them.
    pub registers: usize,
    /// Elements in a register, lowest bits first.
    pub per_register: usize,
    m: usize,
    n: usize,
    k: usize,
    /// Number of registers with distinct elements; later ones repeat them.
    distinct: usize,
}

impl Fragment {
    /// Returns the fragment of a multiplicand; `None` where `wmma` has no such shape.
    pub fn multiplicand(
        operand: Operand,
        (m, n, k): (usize, usize, usize),
        element: Element,
    ) -> Option<Fragment> {
        let tall = matches!((m, n), (16, 16) | (32, 8) | (8, 32));
        let fits = match element {
            Element::F16 | Element::Bf16 | Element::S8 | Element::U8 => tall && k == 16,
            Element::Tf32 => (m, n, k) == (16, 16, 8),
            Element::S4 | Element::U4 => (m, n, k) == (8, 8, 32),
            // Floats of a byte or less have no `wmma`.
            _ => false,
        };
        let rows = match operand {
            Operand::A => m,
            Operand::B => n,
            Operand::Accumulator => return None,
        };
        let per_register = element.per_register();
        let distinct = rows * k / 32 / per_register;
        let registers = if element == Element::F16 { 8 } else { distinct };
        fits.then_some(Fragment {
            operand,
            registers,
            per_register,
            m,
            n,
            k,
            distinct,
        })
    }

    /// Returns the fragment of an accumulator; `None` where `wmma` has no such shape.
    pub fn accumulator((m, n, k): (usize, usize, usize), element: Accumulator) -> Option<Fragment> {
        let fits = matches!(
            (m, n, k),
            (16, 16, 16 | 8) | (32, 8, 16) | (8, 32, 16) | (8, 8, 32 | 128)
        );
        let per_register = element.per_register();
        let registers = m * n / 32 / per_register;
        let operand = Operand::Accumulator;
        fits.then_some(Fragment {
            operand,
            registers,
            per_register,
            m,
            n,
            k,
            distinct: registers,
        })
    }

    /// Returns the fragment of a multiplicand of m8n8 whose rows along K have four words.
    pub const fn words(operand: Operand) -> Fragment {
        Fragment {
            operand,
            registers: 1,
            per_register: 1,
            m: 8,
            n: 8,
            k: 4,
            distinct: 1,
        }
    }

    /// Returns row and column of an element in its matrix (A is m×k, B is k×n, C is m×n).
    pub fn element(&self, lane: usize, register: usize, sub: usize) -> (usize, usize) {
        let per = self.per_register;
        let register = register % self.distinct;
        let transposed = (self.m, self.n) == (8, 32);
        // The fragments of m8n32 are those of m32n8 transposed, with A and B exchanged.
        let (row, column) = match (self.operand, transposed) {
            (Operand::A, false) => tiled_a(self.m, self.k, per, lane, register, sub),
            (Operand::B, true) => tiled_a(self.n, self.k, per, lane, register, sub),
            (Operand::B, false) | (Operand::A, true) => tiled_b(self.k, per, lane, register, sub),
            (Operand::Accumulator, false) => tiled_accumulator(self.m, per, lane, register, sub),
            (Operand::Accumulator, true) => tiled_accumulator(self.n, per, lane, register, sub),
        };
        if transposed {
            (column, row)
        } else {
            (row, column)
        }
    }
}

fn tiled_a(
    m: usize,
    k: usize,
    per: usize,
    lane: usize,
    register: usize,
    sub: usize,
) -> (usize, usize) {
    let tile_rows = m.min(16);
    let each = tile_rows * k / 32 / per;
    let (row, column) = a_element(tile_rows, per, lane, register % each, sub);
    (row + 16 * (register / each), column)
}

fn tiled_b(k: usize, per: usize, lane: usize, register: usize, sub: usize) -> (usize, usize) {
    let each = k / 4 / per;
    let (row, column) = b_element(per, lane, register % each, sub);
    (row, column + 8 * (register / each))
}

/// Returns row and column in tiles of 16×8 (8×8 for m = 8), down the rows for m = 32, otherwise
/// along the columns.
fn tiled_accumulator(
    m: usize,
    per: usize,
    lane: usize,
    register: usize,
    sub: usize,
) -> (usize, usize) {
    let each = m.min(16) / 4 / per;
    let (row, column) = accumulator_element(per, lane, register % each, sub);
    let tile = register / each;
    if m == 32 {
        (row + 16 * tile, column)
    } else {
        (row, column + 8 * tile)
    }
}

impl Wmma {
    /// Returns the fragments of A, B, C and D; `None` where PTX has no such form.
    pub fn fragments(&self) -> Option<[Fragment; 4]> {
        let form = &self.0;
        let shape = (form.m, form.n, form.k);
        let integer = |e| matches!(e, Element::S8 | Element::U8 | Element::S4 | Element::U4);
        let accumulators_fit = match (form.c, form.d) {
            (Accumulator::S32, Accumulator::S32) => integer(form.a),
            (Accumulator::F32, Accumulator::F32) => !integer(form.a),
            (Accumulator::S32, _) | (_, Accumulator::S32) => false,
            _ => form.a == Element::F16,
        };
        (accumulators_fit && form.a == form.b).then_some(())?;
        Some([
            Fragment::multiplicand(Operand::A, shape, form.a)?,
            Fragment::multiplicand(Operand::B, shape, form.b)?,
            Fragment::accumulator(shape, form.c)?,
            Fragment::accumulator(shape, form.d)?,
        ])
    }

    /// Computes D = A·B + C. The slices must have the register counts of [`Wmma::fragments`].
    pub fn run(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
        let form = &self.0;
        if (form.m, form.n) == (8, 32) {
            // (A·B)ᵀ = Bᵀ·Aᵀ, and the fragments are those of the transposes.
            let turned = Mma {
                m: 32,
                n: 8,
                a: form.b,
                b: form.a,
                ..*form
            };
            return Self(turned).run(b, a, c, d);
        }
        let rows = form.m.min(16);
        let tile = Mma {
            m: rows,
            n: 8,
            ..*form
        };
        let per = form.a.per_register();
        let (a_each, b_each) = (rows * form.k / 32 / per, form.k / 4 / per);
        let c_each = rows / 4 / form.c.per_register();
        let d_each = rows / 4 / form.d.per_register();
        let tall = form.m / rows;
        for i in 0..tall * form.n / 8 {
            let (row, column) = if tall == 2 { (i, 0) } else { (0, i) };
            tile.run(
                &a[a_each * row..][..a_each],
                &b[b_each * column..][..b_each],
                &c[c_each * i..][..c_each],
                &mut d[d_each * i..][..d_each],
            );
        }
        if form.saturate {
            self.make_finite(d);
        }
    }

    /// Applies `.satfinite` to floating-point results: infinities become the largest finite value,
    /// NaN becomes +0.
    fn make_finite(&self, d: &mut [Lanes]) {
        for word in d.iter_mut().flatten() {
            *word = match self.0.d {
                Accumulator::S32 => *word,
                Accumulator::F32 => finite_f32(*word),
                Accumulator::F16 => half::map1(*word, finite_f16),
            };
        }
    }
}

fn finite_f32(bits: u32) -> u32 {
    let x = f32::from_bits(bits);
    if x.is_nan() {
        0
    } else {
        single::canonical(x.clamp(f32::MIN, f32::MAX)).to_bits()
    }
}

fn finite_f16(bits: u16) -> u16 {
    match bits & 0x7fff {
        0x7c00 => bits - 1,
        magnitude if magnitude > 0x7c00 => 0,
        _ => bits,
    }
}
