//! Vectors packed eight side by side. Eight products with one vector are computed at a time, each
//! sum in the order of its terms.

/// Vectors side by side.
const LANES: usize = 8;

/// Packed vectors of one length.
pub(super) struct Panels<T> {
    length: usize,
    values: Vec<T>,
}

/// Sums of products and of their squares.
pub(super) type Dots = ([f64; LANES], [f64; LANES]);

impl<T: Copy + Default + Into<f64>> Panels<T> {
    /// Packs `count` vectors; `at(vector, position)` returns an element.
    pub(super) fn new(length: usize, count: usize, at: impl Fn(usize, usize) -> T) -> Self {
        let mut values = vec![T::default(); length * count.next_multiple_of(LANES)];
        for (panel, values) in values.chunks_mut((length * LANES).max(1)).enumerate() {
            for (place, lanes) in values.chunks_mut(LANES).enumerate() {
                let vectors = panel * LANES..count.min((panel + 1) * LANES);
                for (lane, vector) in lanes.iter_mut().zip(vectors) {
                    *lane = at(vector, place);
                }
            }
        }
        Self { length, values }
    }

    /// Multiplies the vectors from `8 * panel` on by `other`.
    pub(super) fn dots(&self, panel: usize, other: &[f64]) -> Dots {
        let size = self.length * LANES;
        let values = self.values.get(panel * size..).unwrap_or(&[]);
        let (mut sums, mut squares) = ([0.0; LANES], [0.0; LANES]);
        for (x, lanes) in other.iter().zip(values.chunks_exact(LANES)) {
            for ((y, sum), square) in lanes.iter().zip(&mut sums).zip(&mut squares) {
                let product = x * (*y).into();
                *sum += product;
                *square += product * product;
            }
        }
        (sums, squares)
    }

    /// Multiplies the vectors `range` by `other`: sum and sum of squares, in their order.
    pub(super) fn products(
        &self,
        range: std::ops::Range<usize>,
        other: &[f64],
        mut each: impl FnMut(f64, f64),
    ) {
        let mut at = range.start;
        while at < range.end {
            let (sums, squares) = self.dots(at / LANES, other);
            let end = ((at / LANES + 1) * LANES).min(range.end);
            for lane in at % LANES..(at % LANES + end - at) {
                each(sums[lane], squares[lane]);
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests;
