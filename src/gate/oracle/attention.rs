//! O = softmax(scale · Q Kᵀ + mask) V.

use super::{Expected, Oracle, OracleError, Problem, Tensor};

/// Inputs q [B, H, S, D], k and v [B, H, T, D] (in this order), output o [B, H, S, D]. The scalar
/// `scale` is used where there is one, else 1/√D. The size `CAUSAL` masks keys after the query,
/// aligned to the last key where T ≠ S.
pub(super) struct Attention {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    queries: u64,
    keys: u64,
    depth: u64,
    scale: f64,
    causal: bool,
}

impl Attention {
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
        Ok(Self {
            q: q.clone(),
            k: k.clone(),
            v: v.clone(),
            out: out.clone(),
            queries: s,
            keys: t,
            depth: d,
            scale: scale.unwrap_or(1.0 / (d as f64).sqrt()),
            causal: problem.sizes.get("CAUSAL").is_some_and(|flag| *flag != 0.0),
        })
    }

    /// The whole row of query `row` (counted over batch, head and position).
    fn row(&self, row: u64) -> Vec<Expected> {
        let (head, position) = (row / self.queries, row % self.queries);
        let query = self.q.strided(row * self.depth, self.depth, 1);
        let visible = if self.causal {
            (position + 1 + self.keys)
                .saturating_sub(self.queries)
                .min(self.keys)
        } else {
            self.keys
        };
        let base = head * self.keys * self.depth;
        let scores: Vec<f64> = (0..visible)
            .map(|j| {
                let start = base + j * self.depth;
                let dot: f64 = (0..self.depth)
                    .zip(&query)
                    .map(|(d, x)| x * self.k.at(start + d))
                    .sum();
                dot * self.scale
            })
            .collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|s| (s - top).exp()).sum();
        let columns = usize::try_from(self.depth).unwrap_or(0);
        let (mut value, mut squares) = (vec![0.0; columns], vec![0.0; columns]);
        for (j, score) in (0..visible).zip(&scores) {
            let p = (score - top).exp() / total;
            let start = base + j * self.depth;
            for (d, (sum, square)) in (0..self.depth).zip(value.iter_mut().zip(&mut squares)) {
                let term = p * self.v.at(start + d);
                *sum += term;
                *square += term * term;
            }
        }
        value
            .into_iter()
            .zip(squares)
            .map(|(v, square)| self.bound(v, square.sqrt()))
            .collect()
    }

    /// |o − ref| ≤ 3u(|ref| + A₂) + (T/16)·2⁻²²·A₂ with A₂ = √Σ(p v)²; the tile's norm within
    /// 0.8 u of the reference's. P is held in the input's type, so its roundoff counts.
    fn bound(&self, value: f64, root: f64) -> Expected {
        let u = self
            .out
            .element
            .unit_roundoff()
            .max(self.v.element.unit_roundoff());
        let steps = (self.keys as f64 / 16.0).max(4.0);
        Expected {
            value,
            tolerance: 3.0 * u * (value.abs() + root)
                + steps * 2f64.powi(-22) * root
                + self.out.element.smallest_step(),
            rms: ((0.8 * u * value).powi(2) + (steps.sqrt() * 2f64.powi(-22) * root).powi(2))
                .sqrt(),
        }
    }
}

impl Oracle for Attention {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        let mut expected = Vec::new();
        let mut current = (u64::MAX, Vec::new());
        for index in start..start + count {
            let row = index / self.depth;
            if current.0 != row {
                current = (row, self.row(row));
            }
            let column = usize::try_from(index % self.depth).unwrap_or(0);
            expected.extend(current.1.get(column).copied());
        }
        expected
    }

    fn tile(&self, _output: usize) -> u64 {
        // A Q tile of 16 rows: the smallest that a tensor-core kernel can get wrong as a whole.
        16 * self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{input, output};
    use super::*;
    use crate::gate::element::Element;
    use std::collections::BTreeMap;

    fn problem(causal: f64, s: u64, t: u64) -> Problem {
        let half = Element::F16;
        Problem {
            inputs: vec![
                input("q", half, &[1, 2, s, 16], 1),
                input("k", half, &[1, 2, t, 16], 2),
                input("v", half, &[1, 2, t, 16], 3),
            ],
            outputs: vec![output("o", half, &[1, 2, s, 16])],
            scalars: BTreeMap::new(),
            sizes: BTreeMap::from([("CAUSAL".to_owned(), causal)]),
        }
    }

    #[test]
    fn a_constant_v_comes_out_unchanged() {
        let mut problem = problem(0.0, 5, 9);
        let ones: Vec<u8> = (0..2 * 9 * 16)
            .flat_map(|_| 0x3c00u16.to_le_bytes())
            .collect();
        problem.inputs[2].bytes = ones.into();
        let oracle = Attention::new(&problem).unwrap();
        assert!(
            oracle
                .span(0, 0, 2 * 5 * 16)
                .iter()
                .all(|e| (e.value - 1.0).abs() < 1e-12)
        );
    }

    #[test]
    fn the_first_causal_row_sees_only_the_first_key() {
        let problem = problem(1.0, 6, 6);
        let oracle = Attention::new(&problem).unwrap();
        for (d, expected) in oracle.span(0, 0, 16).iter().enumerate() {
            assert_eq!(expected.value, problem.inputs[2].at(d as u64));
        }
    }

    #[test]
    fn a_longer_key_sequence_aligns_the_causal_mask_to_its_end() {
        let problem = problem(1.0, 1, 9);
        let full = Problem {
            sizes: BTreeMap::new(),
            ..problem.clone()
        };
        let causal = Attention::new(&problem).unwrap().span(0, 0, 32);
        assert_eq!(causal, Attention::new(&full).unwrap().span(0, 0, 32));
    }
}
