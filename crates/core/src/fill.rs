//! Seeded input data. Every element is a pure function of (seed, buffer, index), so any part can
//! be made anywhere, in any order, on any number of threads, and is the same each time.

use super::element::Element;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Elements of a buffer that one thread fills faster than several.
const ALONE: u64 = 1 << 18;

/// Random values come again after so many elements: to compute a thousand million of them would
/// take longer than everything else. A prime, so that no row, column or tile has the length.
const PERIOD: u64 = (1 << 24) - 3;

/// How a buffer is filled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
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
    /// The same value everywhere.
    Constant(f64),
    /// 0, 1, 2, …
    Arange,
    /// Zero everywhere.
    Zeros,
}

/// SplitMix64's output function (Steele, Lea, Flood 2014): a bijective mix of 64 bits.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Two independent uniform numbers in (0, 1) for one element.
fn uniforms(seed: u64, buffer: u64, index: u64) -> (f64, f64) {
    let index = index % PERIOD;
    let key = mix(seed ^ mix(buffer.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    let first = mix(key ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let second = mix(first ^ 0xd1b5_4a32_d192_ed03);
    // 53 random bits, moved half a step off zero so that the logarithm below is finite.
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) * 2f64.powi(-53);
    (unit(first), unit(second))
}

impl Fill {
    /// What an argument is filled with whose space does not say: a standard normal, or, for whole
    /// numbers, 0 to 100.
    #[must_use]
    pub fn default_for(element: Element) -> Self {
        if element.is_float() {
            Self::Normal {
                mean: 0.0,
                std: 1.0,
            }
        } else {
            Self::Uniform {
                min: 0.0,
                max: 100.0,
            }
        }
    }

    /// The value of element `index` of buffer number `buffer`, before rounding to its type.
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
            Self::Zeros => 0.0,
        }
    }

    /// The bytes of a whole buffer of `count` elements.
    #[must_use]
    pub fn bytes(&self, element: Element, seed: u64, buffer: u64, count: u64) -> Vec<u8> {
        let size = element.size();
        let total = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .saturating_mul(size);
        if *self == Self::Zeros {
            return vec![0; total];
        }
        let fresh = match *self {
            Self::Normal { .. } | Self::Uniform { .. } => count.min(PERIOD),
            _ => count,
        };
        let part = |range: Range<u64>, bytes: &mut Vec<u8>| {
            for index in range {
                element.encode(self.value(seed, buffer, index), bytes);
            }
        };
        let mut bytes = Vec::with_capacity(total);
        if fresh < ALONE {
            part(0..fresh, &mut bytes);
            return bytes;
        }
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let each = fresh.div_ceil(threads);
        std::thread::scope(|scope| {
            let parts = (0..threads).map(|thread| {
                let range = (thread * each).min(fresh)..((thread + 1) * each).min(fresh);
                let its = range.clone();
                let work = move || {
                    let elements = usize::try_from(its.end - its.start).unwrap_or(0);
                    let mut bytes = Vec::with_capacity(elements.saturating_mul(size));
                    part(its, &mut bytes);
                    bytes
                };
                (range, std::thread::Builder::new().spawn_scoped(scope, work))
            });
            let parts: Vec<_> = parts.collect();
            for (range, thread) in parts {
                match thread.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(part)) => bytes.extend(part),
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // The system gives no more threads.
                    Err(_) => part(range, &mut bytes),
                }
            }
        });
        let period = bytes.len();
        while bytes.len() < total {
            bytes.extend_from_within(..period.min(total - bytes.len()));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        let fill = Fill::Normal {
            mean: 0.0,
            std: 1.0,
        };
        let one = fill.bytes(Element::F16, 1, 0, 1000);
        assert_eq!(one, fill.bytes(Element::F16, 1, 0, 1000));
        assert_ne!(one, fill.bytes(Element::F16, 2, 0, 1000));
        assert_ne!(one, fill.bytes(Element::F16, 1, 1, 1000));
        let long = fill.bytes(Element::F16, 1, 0, 2 * ALONE + 1);
        assert_eq!(
            (&long[..2000], long.len() as u64),
            (&one[..], 4 * ALONE + 2)
        );
        let very_long = Fill::Uniform {
            min: 0.0,
            max: 256.0,
        };
        let very_long = very_long.bytes(Element::U8, 1, 0, PERIOD + 1000);
        let (first, again) = (&very_long[..1000], &very_long[PERIOD as usize..]);
        assert_eq!(first, again);
        let value = |at| Fill::Uniform { min: 0.0, max: 1.0 }.value(1, 0, at);
        assert!(value(PERIOD + 7) == value(7) && value(PERIOD - 1) != value(7));
    }

    #[test]
    fn normal_values_have_their_mean_and_deviation() {
        let fill = Fill::Normal {
            mean: 3.0,
            std: 2.0,
        };
        let n = 100_000u64;
        let values: Vec<f64> = (0..n).map(|i| fill.value(7, 3, i)).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let var = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        assert!((mean - 3.0).abs() < 0.03, "{mean}");
        assert!((var.sqrt() - 2.0).abs() < 0.03, "{var}");
    }

    #[test]
    fn uniform_values_stay_inside_their_bounds_and_fill_them() {
        let fill = Fill::Uniform {
            min: -1.0,
            max: 1.0,
        };
        let values: Vec<f64> = (0..10_000).map(|i| fill.value(9, 0, i)).collect();
        assert!(values.iter().all(|v| (-1.0..=1.0).contains(v)));
        assert!(values.iter().any(|v| *v < -0.99) && values.iter().any(|v| *v > 0.99));
    }
}
