//! O = softmax(scale · Q Kᵀ + mask) V.

use super::panels::Panels;
use super::{Expected, Oracle, OracleError, Problem, Tensor, by_rows};
use std::sync::{Arc, Mutex};
use tuner_core::element::Element;
use tuner_core::panics::lock;

/// Inputs q [B, H, S, D], k and v [B, H, T, D] (in this order), output o [B, H, S, D]. The scalar
/// `scale` defaults to 1/√D. The size `CAUSAL` masks keys after the query, aligned to the last key
/// where T ≠ S.
///
/// `attention_f8` has three more inputs: float32 scales of q [B, H, ⌈S/R⌉], k and v [B, H, ⌈T/R⌉],
/// one for each R = `SCALE_ROWS` rows.
pub(super) struct Attention {
    q: Scaled,
    k: Scaled,
    v: Scaled,
    out: Tensor,
    queries: u64,
    keys: u64,
    depth: u64,
    scale: f64,
    causal: bool,
    /// Scores are sums of 8-bit products.
    eighths: bool,
    /// K and V of the most recently requested heads, as float64, the latest at the end.
    heads: Mutex<Vec<Arc<Head>>>,
}

/// Cached heads: several threads work on neighbours.
const HEADS_KEPT: usize = 16;

/// A matrix for each head, with a scale for each group of rows.
struct Scaled {
    values: Tensor,
    scales: Option<Tensor>,
    /// Rows that share a scale.
    rows: u64,
}

impl Scaled {
    /// Returns row `row` of head `head` of a tensor [B, H, rows, depth].
    fn row(&self, head: u64, row: u64) -> Vec<f64> {
        let (length, depth) = (self.values.shape[2], self.values.shape[3]);
        let scale = self.scales.as_ref().map_or(1.0, |scales| {
            scales.value_at(head * scales.shape[2] + row / self.rows)
        });
        let mut values = self.values.strided((head * length + row) * depth, depth, 1);
        for value in &mut values {
            *value *= scale;
        }
        values
    }

    fn matrix(&self, head: u64) -> Vec<f64> {
        (0..self.values.shape[2])
            .flat_map(|row| self.row(head, row))
            .collect()
    }
}

/// One head's keys and values.
struct Head {
    number: u64,
    k: Panels<f64>,
    v: Vec<f64>,
}

/// Sums over the keys for one output element.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// The element.
    value: f64,
    /// Sum of the squares of its terms.
    squares: f64,
    /// Possible loss through subnormal weights.
    lost: f64,
}

impl Attention {
    /// Builds the oracle of 8-bit inputs with scales.
    pub(super) fn scaled(problem: &Problem) -> Result<Self, OracleError> {
        let form = || OracleError::Form {
            oracle: "attention_f8",
            needs: "inputs q, k, v [B, H, rows, D], their float32 scales [B, H, rows / SCALE_ROWS \
                    rounded up], a size SCALE_ROWS, and an output [B, H, S, D]"
                .into(),
        };
        let rows = problem.sizes.get("SCALE_ROWS").copied().unwrap_or(0.0);
        if problem.inputs.len() != 6 || rows < 1.0 {
            return Err(form());
        }
        let mut plain = Self::new(problem)?;
        plain.eighths = true;
        let parts = [&mut plain.q, &mut plain.k, &mut plain.v];
        for (part, scales) in parts.into_iter().zip(&problem.inputs[3..]) {
            part.rows = rows as u64;
            let shape = &part.values.shape;
            if scales.shape != [shape[0], shape[1], shape[2].div_ceil(part.rows)] {
                return Err(form());
            }
            part.scales = Some(scales.clone());
        }
        Ok(plain)
    }

    pub(super) fn new(problem: &Problem) -> Result<Self, OracleError> {
        let form = || OracleError::Form {
            oracle: "attention",
            needs: "inputs q [B, H, S, D], k and v [B, H, T, D] and an output [B, H, S, D]".into(),
        };
        let ([q, k, v, ..], [out, ..]) = (problem.inputs.as_slice(), problem.outputs.as_slice())
        else {
            return Err(form());
        };
        let (&[b, h, s, d], &[kb, kh, t, kd]) = (&q.shape[..], &k.shape[..]) else {
            return Err(form());
        };
        if k.shape != v.shape || out.shape != q.shape || (b, h, d) != (kb, kh, kd) {
            return Err(form());
        }
        let scale = problem.scalars.get("scale").copied();
        let unscaled = |values: &Tensor| Scaled {
            values: values.clone(),
            scales: None,
            rows: 1,
        };
        Ok(Self {
            q: unscaled(q),
            k: unscaled(k),
            v: unscaled(v),
            eighths: false,
            heads: Mutex::default(),
            out: out.clone(),
            queries: s,
            keys: t,
            depth: d,
            scale: scale.unwrap_or(1.0 / (d as f64).sqrt()),
            causal: problem.sizes.get("CAUSAL").is_some_and(|flag| *flag != 0.0),
        })
    }

    /// Returns K and V of a head, decoded once for consecutive rows.
    fn head(&self, number: u64) -> Arc<Head> {
        if let Some(head) = lock(&self.heads).iter().find(|head| head.number == number) {
            return Arc::clone(head);
        }
        // Two threads may decode the same head; threads that work on another head are not blocked.
        let [depth, keys] = [self.depth, self.keys].map(|n| usize::try_from(n).unwrap_or(0));
        let k = self.k.matrix(number);
        let head = Arc::new(Head {
            number,
            k: Panels::new(depth, keys, |key, place| k[key * depth + place]),
            v: self.v.matrix(number),
        });
        let mut kept = lock(&self.heads);
        if kept.len() >= HEADS_KEPT {
            kept.remove(0);
        }
        kept.push(Arc::clone(&head));
        head
    }

    /// Computes the output row of query `row` (counted over batch, head and position).
    fn row(&self, row: u64) -> Vec<Expected> {
        let (number, position) = (row / self.queries, row % self.queries);
        let head = self.head(number);
        let query = self.q.row(number, position);
        let visible = if self.causal {
            (position + 1 + self.keys)
                .saturating_sub(self.queries)
                .min(self.keys)
        } else {
            self.keys
        };
        let visible = usize::try_from(visible).unwrap_or(0);
        let columns = usize::try_from(self.depth).unwrap_or(0);
        let (mut scores, mut spread, mut furthest) = (Vec::with_capacity(visible), 0f64, 0f64);
        head.k.products(0..visible, &query, |dot, squares| {
            scores.push(dot * self.scale);
            spread = spread.max(squares.sqrt() * self.scale.abs());
            furthest = furthest.max((dot * self.scale).abs());
        });
        // Without subtracting the maximum, scores of 10⁴ in hard inputs overflow the exponential in
        // float64.
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut sums = vec![Sums::default(); columns];
        for (weight, values) in weights.iter().zip(head.v.chunks(columns.max(1))) {
            let (p, lost) = (weight / total, self.lost(*weight) / total);
            for (v, sums) in values.iter().zip(&mut sums) {
                let term = p * v;
                sums.value += term;
                sums.squares += term * term;
                sums.lost += lost * v.abs();
            }
        }
        // Float32 sums of products err as in a matrix product.
        // Tensor cores of sm_89 and sm_90 keep about 13 bits below the largest of a step's 8-bit
        // products; an error of a score is a relative error of its weight.
        let unit = self.unit();
        let scores = if self.eighths {
            2f64.powi(-13) * spread
        } else {
            (self.depth as f64 / 16.0).max(4.0) * unit * spread
        };
        // Scaling to the base of the exponential and subtracting the maximum round numbers up to the
        // largest score distance.
        let weights = scores + unit * furthest;
        sums.iter().map(|sums| self.bound(sums, weights)).collect()
    }

    /// Returns the type of P: the input's, or the output's for 8-bit inputs.
    fn held(&self) -> Element {
        let (out, v) = (self.out.element, self.v.values.element);
        let coarser = |a: &Element, b: &Element| a.unit_roundoff().total_cmp(&b.unit_roundoff());
        match self.eighths {
            true => out,
            false => [out, v].into_iter().max_by(coarser).unwrap_or(out),
        }
    }

    /// Returns the possible loss of a weight (relative to a largest weight of 1) beyond its type's
    /// relative roundoff: half a step if it is subnormal, and at most the weight itself.
    fn lost(&self, weight: f64) -> f64 {
        let held = self.held();
        let step = held.smallest_step();
        let normal = step / (2.0 * held.unit_roundoff());
        if weight < normal {
            weight.min(step / 2.0)
        } else {
            0.0
        }
    }

    /// Returns the loss of a running sum in a tensor-core step of 16 terms: 2⁻²² if it is float32.
    fn unit(&self) -> f64 {
        4.0 * self.out.element.accumulator().unit_roundoff()
    }

    /// Bounds the error: |o − ref| ≤ 3u(|ref| + A₂) + (T/16)·2⁻²²·A₂ + L with A₂ = √Σ(p v)², and L = Σ l
    /// |v|, the [loss](Self::lost) of subnormal weights; the tile's norm within 0.8 u of the reference's.
    /// `weights` is an additional relative error of P.
    fn bound(&self, sums: &Sums, weights: f64) -> Expected {
        let (value, root) = (sums.value, sums.squares.sqrt());
        let u = weights + self.held().unit_roundoff();
        let steps = (self.keys as f64 / 16.0).max(4.0);
        let parts = [
            0.8 * u * value,
            steps.sqrt() * self.unit() * root,
            sums.lost,
        ];
        Expected {
            value,
            tolerance: 3.0 * u * (value.abs() + root)
                + steps * self.unit() * root
                + sums.lost
                + self.out.element.smallest_step(),
            rms: parts.iter().map(|part| part * part).sum::<f64>().sqrt(),
        }
    }
}

impl Oracle for Attention {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        by_rows(start..start + count, self.depth, |row| self.row(row))
    }

    fn together(&self) -> u64 {
        // A row's weights are rounded once for all its columns.
        self.depth
    }

    fn work(&self) -> u64 {
        2 * self.keys
    }

    fn bytes(&self) -> u64 {
        let heads = lock(&self.heads);
        heads.len() as u64 * 16 * self.keys * self.depth
    }

    fn tile(&self, _output: usize) -> u64 {
        // A Q tile of 16 rows: the smallest that a tensor-core kernel can get wrong as a whole.
        16 * self.depth
    }
}

#[cfg(test)]
mod tests;
