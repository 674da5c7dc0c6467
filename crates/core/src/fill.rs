//! Seeded input data. Every element is a pure function of (seed, buffer, index). Any part can be computed
//! in any process, in any order, on any number of threads, with the same result.

mod csr;
mod normal;
mod recent;

use super::element::Element;
use crate::data::DataFile;
use crate::panics::lock;
use csr::Csr;
pub use csr::LongRow;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Minimum number of elements of a random buffer that is cached.
const MIN_KEPT_ELEMENTS: u64 = 1 << 12;

/// Maximum number of elements that one thread fills faster than several.
const SINGLE_THREAD_ELEMENTS: u64 = 1 << 18;

/// Elements that are computed together: few enough for the first-level cache.
const PIECE_ELEMENTS: u64 = 1 << 9;

/// Period of random values: computing a billion of them would dominate the run time. A prime, so that no
/// row, column or tile has this length.
const RANDOM_PERIOD: u64 = (1 << 24) - 3;

/// Fill of a buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Normally distributed values.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Uniformly distributed values.
    Uniform {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A constant value.
    Constant(f64),
    /// 0, 1, 2, …
    Arange,
    /// Zero everywhere.
    Zeros,
    /// Each number from 0 to the number of elements minus one, once, in random order.
    Permutation,
    /// Ascending random values in this range.
    Sorted {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// Standard normal values (integers: 1 to 100) at random positions, zero elsewhere.
    Sparse {
        /// Share of the elements that are not zero.
        rate: f64,
    },
    /// Axis-aligned boxes: the low corner's coordinates, then the high corner's, each box `2 * axes`
    /// numbers.
    Boxes {
        /// Smallest coordinate.
        min: f64,
        /// Largest coordinate.
        max: f64,
        /// Coordinates of a point.
        axes: u64,
    },
    /// Row offsets of a sparse matrix or a graph (CSR): from 0 to `entries`, ascending; rows differ
    /// in length, and some are empty.
    CsrOffsets {
        /// Entries of all rows.
        entries: u64,
    },
    /// Column indices for [`Fill::CsrOffsets`] with the same number of rows: ascending in each row,
    /// and distinct if there are enough columns.
    CsrIndices {
        /// Rows.
        rows: u64,
        /// Number of columns, above every index.
        columns: u64,
    },
    /// The content of a file.
    File(DataFile),
    /// Data written by the template's kernel of this name.
    Kernel(Arc<str>),
}

/// Mixes 64 bits bijectively with SplitMix64's output function (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns two independent uniform numbers in (0, 1) for one element.
fn uniforms(seed: u64, buffer: u64, index: u64) -> (f64, f64) {
    let index = index % RANDOM_PERIOD;
    // `mix` maps zero to zero, so buffer 0 must not get it.
    let key = mix(seed ^ mix(buffer.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    let first = mix(key ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let second = mix(first ^ 0xd1b5_4a32_d192_ed03);
    // 53 random bits, moved half a step off zero so that the logarithm below is finite.
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) * 2f64.powi(-53);
    (unit(first), unit(second))
}

/// Returns number `index` of a random permutation of `count`: a Feistel network over the next power
/// of four, iterated until the result is in range.
fn permuted(seed: u64, buffer: u64, count: u64, index: u64) -> u64 {
    // Each half of a Feistel network needs at least one bit.
    let bits = (64 - count.saturating_sub(1).leading_zeros())
        .max(2)
        .div_ceil(2);
    let half = (1_u64 << bits) - 1;
    let mut place = index;
    loop {
        let (mut left, mut right) = (place >> bits, place & half);
        for round in 0..4_u64 {
            let key = mix(seed ^ mix(buffer.wrapping_add(round << 56)));
            (left, right) = (right, left ^ (mix(right ^ key) & half));
        }
        place = left << bits | right;
        if place < count {
            return place;
        }
    }
}

/// Builds `count` elements in pieces on all cores. `append` writes those of a range after the given bytes.
#[must_use]
pub fn in_pieces(
    element: Element,
    count: u64,
    append: impl Fn(Range<u64>, &mut Vec<u8>) + Sync,
) -> Arc<[u8]> {
    let mut bytes = zeros(size_of_elements(element, count));
    let pieces = Arc::make_mut(&mut bytes).chunks_mut(size_of_elements(element, PIECE_ELEMENTS));
    let pieces = Mutex::new((0..count).step_by(PIECE_ELEMENTS as usize).zip(pieces));
    let work = || {
        // Elements are appended to a small buffer first, which stays in the cache.
        let mut elements = Vec::new();
        loop {
            let Some((begin, piece)) = lock(&pieces).next() else {
                return;
            };
            let end = begin + (piece.len() / element.size()) as u64;
            elements.clear();
            append(begin..end, &mut elements);
            piece.copy_from_slice(&elements);
        }
    };
    let threads = match count < SINGLE_THREAD_ELEMENTS {
        true => 1,
        false => std::thread::available_parallelism().map_or(1, usize::from),
    };
    std::thread::scope(|scope| {
        // If the system refuses more threads, the existing ones do all the work.
        for _ in 1..threads {
            if std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .is_err()
            {
                break;
            }
        }
        work();
    });
    bytes
}

impl Fill {
    /// Returns the default fill of an argument: a standard normal, for integers 0 to 100, for
    /// booleans either value with equal probability.
    #[must_use]
    pub fn default_for(element: Element) -> Self {
        if element.is_float() {
            Self::Normal {
                mean: 0.0,
                std: 1.0,
            }
        } else {
            // Rounded to the type, half of the numbers from 0 to 1 are `true`.
            let max = if element == Element::Bool { 1.0 } else { 100.0 };
            Self::Uniform { min: 0.0, max }
        }
    }

    /// Returns the value of element `index` of `count` of a type in buffer number `buffer`.
    fn structured(&self, element: Element, seed: u64, buffer: u64, index: u64, count: u64) -> f64 {
        let (first, second) = uniforms(seed, buffer, index);
        match *self {
            Self::Permutation => permuted(seed, buffer, count, index) as f64,
            Self::Sorted { min, max } => {
                min + (max - min) * (index as f64 + first) / count.max(1) as f64
            }
            Self::Sparse { rate } if first >= rate => 0.0,
            Self::Sparse { rate } if element.is_float() => {
                // Box and Muller 1958; the remainder of the first number is uniform again.
                let unit = first / rate.max(f64::MIN_POSITIVE);
                (-2.0 * unit.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
            }
            Self::Sparse { .. } => (1.0 + 99.0 * second).round(),
            Self::Boxes { min, max, axes } => {
                let axes = axes.max(1);
                let (number, axis) = (index / (2 * axes), index % axes);
                let (low, size) = uniforms(seed, buffer, number * axes + axis);
                let corner = min + (max - min) * low;
                match index % (2 * axes) < axes {
                    true => corner,
                    // A fifth of the remainder, on average a tenth: some boxes overlap, most do not.
                    false => corner + (max - corner) * (0.001 + 0.2 * size),
                }
            }
            Self::CsrOffsets { .. } | Self::CsrIndices { .. } => {
                let graph = Csr::of(self, count, None);
                graph.map_or(0.0, |graph| graph.value(self, seed, index) as f64)
            }
            _ => self.value(seed, buffer, index),
        }
    }

    /// Returns the value of element `index` of buffer number `buffer`, before rounding to its type;
    /// zero for a fill that also depends on the number of elements.
    #[must_use]
    pub fn value(&self, seed: u64, buffer: u64, index: u64) -> f64 {
        match *self {
            Self::Normal { mean, std } => {
                let (a, b) = uniforms(seed, buffer, index);
                // Box and Muller 1958, one of the pair.
                mean + std * (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
            }
            Self::Uniform { min, max } => {
                let (a, _) = uniforms(seed, buffer, index);
                min + (max - min) * a
            }
            Self::Constant(value) => value,
            Self::Arange => index as f64,
            _ => 0.0,
        }
    }

    /// Returns the bytes of a whole buffer of `count` elements; zeros if they are produced elsewhere
    /// ([`Fill::File`], [`Fill::Kernel`]).
    #[must_use]
    pub fn bytes(&self, element: Element, seed: u64, buffer: u64, count: u64) -> Arc<[u8]> {
        let total = size_of_elements(element, count);
        if matches!(self, Self::Zeros | Self::File(_) | Self::Kernel(_)) {
            return zeros(total);
        }
        let fresh = match self {
            Self::Normal { .. } | Self::Uniform { .. } | Self::Sparse { .. } => {
                count.min(RANDOM_PERIOD)
            }
            _ => count,
        };
        let make = || self.fresh_bytes(element, seed, buffer, fresh, count);
        // The elements of other fills also depend on their number.
        let kept = matches!(self, Self::Normal { .. } | Self::Uniform { .. });
        let begin = if kept && fresh >= MIN_KEPT_ELEMENTS {
            let key = recent::Key {
                fill: self.clone(),
                element,
                seed,
                buffer,
            };
            recent::at_least(key, size_of_elements(element, fresh), make)
        } else {
            make()
        };
        if begin.len() == total {
            return begin;
        }
        let period = size_of_elements(element, fresh).max(1);
        let mut bytes = zeros(total);
        for chunk in Arc::make_mut(&mut bytes).chunks_mut(period) {
            if let Some(begin) = begin.get(..chunk.len()) {
                chunk.copy_from_slice(begin);
            }
        }
        bytes
    }

    /// Returns the bytes of row offsets or column indices of a graph with this long row; `None` for other fills.
    #[must_use]
    pub fn with_long_row(
        &self,
        element: Element,
        seed: u64,
        count: u64,
        long: LongRow,
    ) -> Option<Arc<[u8]>> {
        let graph = Csr::of(self, count, Some(long))?;
        Some(in_pieces(element, count, |range, bytes| {
            for index in range {
                element.encode(graph.value(self, seed, index) as f64, bytes);
            }
        }))
    }

    /// Computes the first `fresh` elements of `count`.
    fn fresh_bytes(
        &self,
        element: Element,
        seed: u64,
        buffer: u64,
        fresh: u64,
        count: u64,
    ) -> Arc<[u8]> {
        in_pieces(element, fresh, |range, elements| {
            self.append(element, seed, buffer, range, count, elements);
        })
    }

    /// Appends the elements of `range`.
    fn append(
        &self,
        element: Element,
        seed: u64,
        buffer: u64,
        range: Range<u64>,
        count: u64,
        bytes: &mut Vec<u8>,
    ) {
        if let Self::Normal { mean, std } = *self {
            let normal = normal::Normal {
                mean,
                std,
                seed,
                buffer,
            };
            if normal.append(element, range.clone(), bytes) {
                return;
            }
        }
        for index in range {
            element.encode(self.structured(element, seed, buffer, index, count), bytes);
        }
    }
}

/// Returns the bytes of this number of elements.
fn size_of_elements(element: Element, count: u64) -> usize {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    count.saturating_mul(element.size())
}

/// Returns a buffer of zeros, without a copy.
fn zeros(bytes: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, bytes).collect()
}

#[cfg(test)]
mod tests;
