//! Shadow values of matrix instructions: `mma`, `wmma` and the loads of their fragments.
//!
//! Not here are `wgmma`, `mma` of doubles and `stmatrix`: their results start again from the ordinary
//! values.

use super::super::cta::Cta;
use super::super::transfer::lanes;
use super::super::warp::Warp;
use super::memory::Place;
use super::{FloatFormat, ShadowWord, plain};
use crate::lower::program::{Address, Data, MmaOp, WmmaMem, WmmaOp};
use gpu_arithmetic::layout::{MatrixRows, a_element, accumulator_element, b_element};
use gpu_arithmetic::mma::{Accumulator, Element, Mma};

/// Bits of a single that a TensorFloat-32 has.
const TF32_BITS: u32 = 0xffff_e000;

/// A position in a matrix.
type Position = (usize, usize);

/// Shadows of the results of a product, by register and lane.
pub(in crate::exec) type ProductShadows = Vec<[[Option<f64>; 2]; 32]>;

/// A matrix in registers.
struct Fragment<'a, F> {
    rows: &'a [u32],
    per_register: usize,
    /// Position of an element by lane, register and place in the register.
    position: F,
}

impl<F: Fn(usize, usize, usize) -> Position> Fragment<'_, F> {
    /// Calls `each` with register, lane, place and position of each element.
    fn for_each(&self, mut each: impl FnMut([usize; 3], Position)) {
        for register in 0..self.rows.len() {
            for lane in 0..32 {
                for sub in 0..self.per_register {
                    each([register, lane, sub], (self.position)(lane, register, sub));
                }
            }
        }
    }
}

impl Warp {
    /// Returns the shadow of an element of a multiplicand; `None` for integers and 8-bit types.
    fn multiplicand(&self, row: u32, lane: usize, sub: usize, element: Element) -> Option<f64> {
        let format = match element {
            Element::F16 => FloatFormat::Half,
            Element::Bf16 => FloatFormat::Bfloat,
            Element::Tf32 => {
                let bits = self.regs.r32[row as usize][lane];
                let shadow = self.shadow_word(row, lane).as_single(bits);
                return Some(shadow.unwrap_or(f32::from_bits(bits & TF32_BITS).into()));
            }
            _ => return None,
        };
        Some(self.half_of(row, lane, sub, format))
    }

    /// Returns the shadow of an element of an accumulator; `None` for integers.
    fn accumulator(&self, row: u32, lane: usize, sub: usize, ty: Accumulator) -> Option<f64> {
        match ty {
            Accumulator::F16 => Some(self.half_of(row, lane, sub, FloatFormat::Half)),
            Accumulator::F32 => {
                let bits = self.regs.r32[row as usize][lane];
                let shadow = self.shadow_word(row, lane).as_single(bits);
                Some(shadow.unwrap_or(f32::from_bits(bits).into()))
            }
            Accumulator::S32 => None,
        }
    }

    fn half_of(&self, row: u32, lane: usize, sub: usize, format: FloatFormat) -> f64 {
        let bits = (self.regs.r32[row as usize][lane] >> (16 * sub)) as u16;
        let shadow = self.shadow_word(row, lane).half(sub == 1, bits);
        shadow.unwrap_or_else(|| plain(format, bits.into()))
    }

    fn shadow_word(&self, row: u32, lane: usize) -> ShadowWord {
        let shadows = self.shadows.as_ref();
        shadows.map_or_else(ShadowWord::default, |all| all.word(Data::R32(row), 0, lane))
    }

    /// Computes the shadows of D = A · B + C.
    fn product<P: Fn(usize, usize, usize) -> Position>(
        &self,
        form: &Mma,
        [a, b, c, d]: [Fragment<'_, P>; 4],
    ) -> Option<ProductShadows> {
        let (m, n, k) = (form.m, form.n, form.k);
        let mut left = vec![0.0; m * k];
        let mut right = vec![0.0; k * n];
        let mut sums = vec![0.0; m * n];
        let mut known = true;
        a.for_each(|[register, lane, sub], (row, column)| {
            let value = self.multiplicand(a.rows[register], lane, sub, form.a);
            left[row * k + column] = value.unwrap_or_default();
            known &= value.is_some();
        });
        b.for_each(|[register, lane, sub], (row, column)| {
            let value = self.multiplicand(b.rows[register], lane, sub, form.b);
            right[row * n + column] = value.unwrap_or_default();
            known &= value.is_some();
        });
        c.for_each(|[register, lane, sub], (row, column)| {
            let value = self.accumulator(c.rows[register], lane, sub, form.c);
            sums[row * n + column] = value.unwrap_or_default();
            known &= value.is_some();
        });
        if !known {
            return None;
        }
        for (sum, at) in sums.iter_mut().zip(0..) {
            let (row, column) = (at / n, at % n);
            *sum += (0..k)
                .map(|i| left[row * k + i] * right[i * n + column])
                .sum::<f64>();
        }
        let mut results = vec![[[None; 2]; 32]; d.rows.len()];
        d.for_each(|[register, lane, sub], (row, column)| {
            results[register][lane][sub] = Some(sums[row * n + column]);
        });
        Some(results)
    }

    /// Computes the shadows of `mma.sync` before it is executed; `None` where there are none, and
    /// for a product with scales or a sparse A.
    pub(in crate::exec) fn mma_shadows(&self, m: &MmaOp) -> Option<ProductShadows> {
        self.shadows.as_ref()?;
        if m.scales.is_some() || m.sparse.is_some() {
            return None;
        }
        let form = &m.form;
        let per = [
            form.a.per_register(),
            form.b.per_register(),
            form.c.per_register(),
            form.d.per_register(),
        ];
        let position = |operand: usize| {
            move |lane: usize, register: usize, sub: usize| match operand {
                0 => a_element(form.m, per[0], lane, register, sub),
                1 => b_element(per[1], lane, register, sub),
                operand => accumulator_element(per[operand], lane, register, sub),
            }
        };
        let rows = [&m.a, &m.b, &m.c, &m.d];
        let fragments = std::array::from_fn(|operand| Fragment {
            rows: rows[operand].as_slice(),
            per_register: per[operand],
            position: position(operand),
        });
        self.product(form, fragments)
    }

    /// Computes the shadows of `wmma.mma` before it is executed; `None` where there are none.
    pub(in crate::exec) fn wmma_shadows(&self, m: &WmmaOp) -> Option<ProductShadows> {
        self.shadows.as_ref()?;
        let layouts = m.form.fragments()?;
        let rows = [&m.a, &m.b, &m.c, &m.d];
        let fragments = std::array::from_fn(|operand| {
            let layout = layouts[operand];
            Fragment {
                rows: rows[operand].as_slice(),
                per_register: layout.per_register,
                position: move |lane, register, sub| layout.element(lane, register, sub),
            }
        });
        self.product(&m.form.0, fragments)
    }

    /// Sets the shadows of the results of a product.
    pub(in crate::exec) fn set_product(
        &mut self,
        rows: &[u32],
        results: Option<ProductShadows>,
        ty: Accumulator,
    ) {
        let Some(shadows) = &mut self.shadows else {
            return;
        };
        let results = results.unwrap_or_default();
        for (row, values) in rows.iter().zip(&results) {
            for (lane, [low, high]) in values.iter().copied().enumerate() {
                let bits = self.regs.r32[*row as usize][lane];
                let mut word = ShadowWord::default();
                match (ty, low) {
                    (Accumulator::F16, _) => {
                        word.set_half(false, bits as u16, low);
                        word.set_half(true, (bits >> 16) as u16, high);
                    }
                    (_, Some(value)) => word = ShadowWord::single(bits, value),
                    (_, None) => {}
                }
                shadows.set_word(Data::R32(*row), 0, lane, word);
            }
        }
    }
}

impl Cta<'_> {
    /// Executes `ldmatrix` with shadow values of the 16-bit numbers in shared memory.
    pub(in crate::exec) fn ldmatrix_shadowed(
        &mut self,
        w: &mut Warp,
        at: &Address,
        rows: MatrixRows,
        data: &[u32],
    ) {
        // Addresses before the load, which may overwrite their register.
        let places: Vec<Place> = (0..32).map(|lane| Place::new(w, at, lane)).collect();
        self.ldmatrix(w, at, rows, data);
        let trans = match rows {
            MatrixRows::Halves => false,
            MatrixRows::TransposedHalves => true,
            MatrixRows::Packed6 | MatrixRows::Packed4 | MatrixRows::TransposedBytes => return,
        };
        for (matrix, row) in data.iter().enumerate() {
            for lane in lanes(w.alive) {
                let (g, t) = (lane / 4, lane % 4);
                let mut word = ShadowWord::default();
                for high in [false, true] {
                    let part = usize::from(high);
                    let (line, column) = if trans {
                        (2 * t + part, g)
                    } else {
                        (g, 2 * t + part)
                    };
                    let place = places[(8 * matrix + line) & 31].plus(2 * column as u64);
                    let half = self.shadow_at(w, place).only_half(place.in_high_half());
                    let bits = half.bits as u16;
                    word.set_half(high, bits, half.half(false, bits));
                }
                if let Some(shadows) = &mut w.shadows {
                    shadows.set_word(Data::R32(*row), 0, lane, word);
                }
            }
        }
    }

    /// Moves the shadows of 32-bit elements as `wmma.store` stores them.
    pub(in crate::exec) fn wmma_store_shadows(&mut self, w: &mut Warp, m: &WmmaMem, mask: u32) {
        if w.shadows.is_none() || !m.store || m.bits != 32 {
            return;
        }
        for lane in lanes(mask) {
            let first = Place::new(w, &m.at, lane);
            let stride = u64::from(w.regs.r32[m.stride as usize][lane]);
            for (register, row) in m.data.iter().enumerate() {
                let (r, c) = m.fragment.element(lane, register, 0);
                let (r, c) = (r as u64, c as u64);
                let element = if m.row_major {
                    r * stride + c
                } else {
                    c * stride + r
                };
                let word = w.shadow_word(*row, lane);
                self.change_shadow(w, first.plus(4 * element), |old| *old = word);
            }
        }
    }
}
