//! Matrix instructions: fragments to and from shared memory, products.

use super::access::{Touch, split};
use super::cta::Cta;
use super::rows::Kind;
use super::transfer::lanes;
use super::warp::Warp;
use crate::exec::regs::Row;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Address, Area, MmaBits, MmaF64, MmaOp, NONE, WmmaMem, WmmaOp};
use gpu_arithmetic::layout::MatrixRows;
use gpu_arithmetic::mma;

/// Part of a lane's register: `bytes` bytes from bit `shift` on.
#[derive(Clone, Copy)]
struct RegisterPart {
    row: u32,
    lane: usize,
    shift: u32,
    bytes: u32,
}

impl Cta<'_> {
    /// Executes `ldmatrix`: lane 8·i + r holds the address of row r of matrix i. Rows of exited
    /// lanes are not read.
    pub(super) fn ldmatrix(&mut self, w: &mut Warp, at: &Address, form: MatrixRows, data: &[u32]) {
        let mask = rows_of(data.len()) & w.alive;
        if form.bytes() == 16
            && let Some(row) = self.row(w, at, mask, 16)
        {
            self.count_row(&row, mask, 16, false);
            let words = self.read_row(w, &row, mask, 16);
            for (i, register) in data.iter().enumerate() {
                let mut rows = [[0u32; 4]; 8];
                for (r, to) in rows.iter_mut().enumerate() {
                    for (to, word) in to.iter_mut().zip(&words) {
                        *to = word[i * 8 + r];
                    }
                }
                w.regs.r32[*register as usize] = form.load(&rows);
            }
            return;
        }
        self.count(w, at, mask, 16, false);
        for (i, row) in data.iter().enumerate() {
            let mut rows = [[0u32; 4]; 8];
            for (r, words) in rows.iter_mut().enumerate() {
                let lane = i * 8 + r;
                if mask >> lane & 1 == 0 {
                    continue;
                }
                let address = w.address(at, lane);
                // Padding is not read, but an address that is not that of a row is an error.
                let (parts, bytes) = match form.bytes() {
                    bytes if bytes < 16 && address.is_multiple_of(16) => (bytes / 4, 4),
                    _ => (1, 16),
                };
                for part in 0..parts {
                    let touch = Touch::read(lane, bytes);
                    let from = address + u64::from(4 * part);
                    let Some(place) = self.touch(w, at.area, from, touch) else {
                        continue;
                    };
                    let words = words[part as usize..].iter_mut();
                    for (k, word) in words.take(bytes as usize / 4).enumerate() {
                        *word = self.get(w, place, k as u32 * 4, 4) as u32;
                    }
                }
            }
            w.regs.r32[*row as usize] = form.load(&rows);
        }
    }

    pub(super) fn stmatrix(&mut self, w: &mut Warp, at: &Address, form: MatrixRows, data: &[u32]) {
        let mask = rows_of(data.len()) & w.alive;
        if let Some(row) = self.row(w, at, mask, 16) {
            self.count_row(&row, mask, 16, true);
            let mut words = [[0; 32]; 4];
            for (i, register) in data.iter().enumerate() {
                let rows = form.store(&w.regs.r32[*register as usize]);
                for (r, from) in rows.iter().enumerate() {
                    for (to, word) in words.iter_mut().zip(from) {
                        to[i * 8 + r] = *word;
                    }
                }
            }
            self.write_row(w, &row, mask, Kind::write(16), &mut words);
            return;
        }
        self.count(w, at, mask, 16, true);
        for (i, row) in data.iter().enumerate() {
            let rows = form.store(&w.regs.r32[*row as usize]);
            for (r, words) in rows.iter().enumerate() {
                let lane = i * 8 + r;
                if mask >> lane & 1 == 0 {
                    continue;
                }
                let address = w.address(at, lane);
                let Some(place) = self.touch(w, at.area, address, Touch::write(lane, 16)) else {
                    continue;
                };
                for (k, word) in words.iter().enumerate() {
                    self.put(w, place, k as u32 * 4, 4, (*word).into());
                }
            }
        }
    }

    pub(super) fn wmma_memory(&mut self, w: &mut Warp, m: &WmmaMem, mask: u32) {
        let bytes = m.bits / 8;
        self.wmma_aligned(w, m, mask);
        for lane in lanes(mask) {
            let base = w.address(&m.at, lane);
            let stride = u64::from(w.regs.r32[m.stride as usize][lane]);
            for (register, row) in m.data.iter().enumerate() {
                let place = |sub: usize| {
                    let (r, c) = m.fragment.element(lane, register, sub);
                    let (r, c) = (r as u64, c as u64);
                    let element = if m.row_major {
                        r * stride + c
                    } else {
                        c * stride + r
                    };
                    base + element * u64::from(bytes)
                };
                let (first, subs) = (place(0), m.fragment.per_register);
                let next_to = |sub| place(sub) == first + sub as u64 * u64::from(bytes);
                if first.is_multiple_of(4) && subs as u32 * bytes == 4 && (1..subs).all(next_to) {
                    // The elements of a register are in one word: fewer accesses, and none narrower
                    // than a word.
                    let part = RegisterPart {
                        row: *row,
                        lane,
                        shift: 0,
                        bytes: 4,
                    };
                    self.wmma_element(w, m, part, first);
                } else {
                    for sub in 0..subs {
                        let part = RegisterPart {
                            row: *row,
                            lane,
                            shift: sub as u32 * m.bits,
                            bytes,
                        };
                        self.wmma_element(w, m, part, place(sub));
                    }
                }
            }
        }
    }

    /// Records a matrix in memory whose rows do not begin where they must. The GPU may move it by
    /// `ldmatrix` or by vectors, whatever the width of the accesses here is.
    fn wmma_aligned(&mut self, w: &Warp, m: &WmmaMem, mask: u32) {
        let askew = lanes(mask).find_map(|lane| {
            let (base, elements) = (w.address(&m.at, lane), w.regs.r32[m.stride as usize][lane]);
            let (area, at) = match m.at.area {
                Area::Generic => split(base),
                area => (area, base),
            };
            let align = m.aligns[usize::from(area != Area::Shared)];
            let stride = u64::from(elements) * u64::from(m.bits / 8);
            let whole = base.is_multiple_of(align) && stride.is_multiple_of(align);
            (!whole).then_some((lane, area, at, stride, align))
        });
        let Some((lane, area, at, stride, align)) = askew else {
            return;
        };
        let space = match area {
            Area::Shared | Area::Cluster => Space::Shared,
            _ => Space::Global,
        };
        let thread = Self::thread(w, lane);
        self.hazard(HazardKind::Misaligned, thread, Location::new(space, at), NONE, || {
            format!(
                "a matrix of `wmma` at {space} address 0x{at:x} with {stride} bytes from one row to the next: both \
                 must be multiples of {align} bytes"
            )
        });
    }

    /// Loads or stores `bytes` bytes of a lane's register from bit `shift` on; the other bits are
    /// kept.
    fn wmma_element(&mut self, w: &mut Warp, m: &WmmaMem, part: RegisterPart, at: u64) {
        let RegisterPart {
            row,
            lane,
            shift,
            bytes,
        } = part;
        let touch = if m.store {
            Touch::write(lane, bytes)
        } else {
            Touch::read(lane, bytes)
        };
        let found = self.touch(w, m.at.area, at, touch);
        let (row, bits) = (
            row as usize,
            u32::MAX >> (32 - 8 * bytes.clamp(1, 4)) << shift,
        );
        match (found, m.store) {
            (Some(place), true) => {
                let word = w.regs.r32[row][lane];
                self.put(w, place, 0, bytes, u64::from(word >> shift));
            }
            (found, false) => {
                let new = found.map_or(0, |place| self.get(w, place, 0, bytes) as u32);
                let word = &mut w.regs.r32[row][lane];
                *word = *word & !bits | new << shift & bits;
            }
            (None, true) => {}
        }
    }
}

/// Returns the lanes that hold the row addresses of `matrices` matrices.
fn rows_of(matrices: usize) -> u32 {
    u32::MAX >> (32 - 8 * matrices.clamp(1, 4))
}

/// Executes `mma.sync` on rows.
pub(super) fn mma(w: &mut Warp, m: &MmaOp) {
    // Results go to a buffer first: the destination may be one of the sources.
    let mut d = [[0; 32]; 8];
    let n = m.d.len();
    {
        let file = &w.regs.r32;
        let mut operands = [&[0; 32]; 24];
        let all = m.a.iter().chain(&m.b).chain(&m.c);
        for (slot, row) in operands.iter_mut().zip(all) {
            *slot = &file[*row as usize];
        }
        let (a, rest) = operands.split_at(m.a.len());
        let (b, rest) = rest.split_at(m.b.len());
        let c = &rest[..m.c.len()];
        match (&m.scales, m.sparse) {
            (None, None) => m.form.run(a, b, c, &mut d[..n]),
            (None, Some((metadata, selector))) => {
                let operands = sparse_operands(file, [a, b, c], metadata, selector);
                m.form.run_sparse(operands, &mut d[..n]);
            }
            (Some(scales), sparse) => {
                let operand = |side: usize| {
                    // The selectors are those of the whole warp.
                    let [byte, thread] = scales.selectors[side].map(|row| file[row as usize][0]);
                    mma::ScaleOperand {
                        words: &file[scales.words[side] as usize],
                        byte,
                        thread,
                    }
                };
                let of_both = [operand(0), operand(1)];
                let (form, d) = (&m.form, &mut d[..n]);
                match sparse {
                    None => scales.form.run(form, [a, b, c], d, of_both),
                    Some((metadata, selector)) => {
                        let operands = sparse_operands(file, [a, b, c], metadata, selector);
                        scales.form.run_sparse(form, operands, d, of_both);
                    }
                }
            }
        }
    }
    for (row, value) in m.d.iter().zip(&d) {
        w.regs.r32[*row as usize] = *value;
    }
}

/// Returns the operands of a product with a sparse A, whose metadata are in this row.
fn sparse_operands<'a>(
    file: &'a [Row],
    [a, b, c]: [&'a [&'a Row]; 3],
    metadata: u32,
    selector: u32,
) -> mma::SparseOperands<'a> {
    mma::SparseOperands {
        a,
        b,
        c,
        metadata: &file[metadata as usize],
        selector,
    }
}

/// Executes `mma.sync` on matrices of bits.
pub(super) fn mma_bits(w: &mut Warp, m: &MmaBits) {
    on_rows(w, [&m.a, &m.b, &m.c], &m.d, |[a, b, c], d| {
        m.form.run(&a, &b, &c, d);
    });
}

/// Executes `mma.sync` in double precision.
pub(super) fn mma_f64(w: &mut Warp, m: &MmaF64) {
    let take =
        |rows: &[u32]| -> Vec<[u64; 32]> { rows.iter().map(|r| w.regs.r64[*r as usize]).collect() };
    let (a, b, c) = (take(&m.a), take(&m.b), take(&m.c));
    let mut d = vec![[0; 32]; m.d.len()];
    mma::mma_f64(m.m, m.k, &a, &b, &c, &mut d, m.round);
    for (row, value) in m.d.iter().zip(&d) {
        w.regs.r64[*row as usize] = *value;
    }
}

/// Executes `wmma.mma` on rows.
pub(super) fn wmma(w: &mut Warp, m: &WmmaOp) {
    on_rows(w, [&m.a, &m.b, &m.c], &m.d, |[a, b, c], d| {
        m.form.run(&a, &b, &c, d);
    });
}

/// Runs a product of the rows of A, B and C, and stores the rows of D.
fn on_rows(
    w: &mut Warp,
    operands: [&[u32]; 3],
    result: &[u32],
    run: impl FnOnce([Vec<&Row>; 3], &mut [Row]),
) {
    let file = &w.regs.r32;
    let operands = operands.map(|rows| rows.iter().map(|r| &file[*r as usize]).collect());
    let mut d = vec![[0; 32]; result.len()];
    run(operands, &mut d);
    for (row, value) in result.iter().zip(&d) {
        w.regs.r32[*row as usize] = *value;
    }
}
