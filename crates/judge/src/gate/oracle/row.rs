//! Operations on rows: softmax, layer normalisation, sum.

use super::{Expected, Oracle, OracleError, Problem, Sums, Tensor, by_rows, rows_together};
use tuner_core::element::Element;

/// Operation on each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Softmax,
    LayerNorm,
    Sum,
}

/// An operation over the last dimension of the first input.
pub(super) struct Row {
    operation: Operation,
    x: Tensor,
    gamma: Option<Tensor>,
    beta: Option<Tensor>,
    out: Tensor,
    length: u64,
    epsilon: f64,
    sums: Sums,
}

impl Row {
    /// Builds y = softmax(x) over the last dimension; y has x's shape.
    pub(super) fn softmax(problem: &Problem) -> Result<Self, OracleError> {
        Self::new(
            problem,
            Operation::Softmax,
            "softmax",
            "an input and an output of one shape",
        )
    }

    /// Builds y = (x − mean) / √(variance + eps) · gamma + beta; gamma and beta are the optional
    /// second and third inputs, `eps` a scalar (default 1e-5).
    pub(super) fn layernorm(problem: &Problem) -> Result<Self, OracleError> {
        let needs = "inputs x [.., N] and, where used, gamma [N] and beta [N], and y of x's shape";
        let oracle = Self::new(problem, Operation::LayerNorm, "layernorm", needs)?;
        let fits =
            |tensor: &Option<Tensor>| tensor.as_ref().is_none_or(|t| t.count() == oracle.length);
        if fits(&oracle.gamma) && fits(&oracle.beta) {
            return Ok(oracle);
        }
        Err(OracleError::Form {
            oracle: "layernorm",
            needs: needs.into(),
        })
    }

    /// Builds the sum of each row, or of all elements if the output has one element.
    pub(super) fn reduce_sum(problem: &Problem) -> Result<Self, OracleError> {
        Self::new(
            problem,
            Operation::Sum,
            "reduce_sum",
            "an input [.., N] and an output [..] or [1]",
        )
    }

    fn new(
        problem: &Problem,
        operation: Operation,
        oracle: &'static str,
        needs: &str,
    ) -> Result<Self, OracleError> {
        let form = || OracleError::Form {
            oracle,
            needs: needs.into(),
        };
        let ([x, ..], [out, ..]) = (problem.inputs.as_slice(), problem.outputs.as_slice()) else {
            return Err(form());
        };
        let length = if operation == Operation::Sum {
            x.count().checked_div(out.count()).ok_or_else(form)?
        } else {
            *x.shape.last().ok_or_else(form)?
        };
        let fits = match operation {
            Operation::Sum => length * out.count() == x.count(),
            _ => x.shape == out.shape,
        };
        if !fits || length == 0 {
            return Err(form());
        }
        Ok(Self {
            operation,
            x: x.clone(),
            gamma: problem.inputs.get(1).cloned(),
            beta: problem.inputs.get(2).cloned(),
            out: out.clone(),
            length,
            sums: Sums::new(length, &[x], out),
            epsilon: problem.scalars.get("eps").copied().unwrap_or(1e-5),
        })
    }

    fn row(&self, row: u64) -> Vec<Expected> {
        let x = self.x.strided(row * self.length, self.length, 1);
        match self.operation {
            Operation::Softmax => self.softmax_row(&x),
            Operation::LayerNorm => self.layernorm_row(&x),
            Operation::Sum => {
                let root = x.iter().map(|v| v * v).sum::<f64>().sqrt();
                let sum: f64 = x.iter().sum();
                let u = self.out.element.unit_roundoff();
                vec![Expected {
                    value: sum,
                    tolerance: 1.05 * u * sum.abs()
                        + self.sums.plain(root, sum)
                        + self.out.element.smallest_step(),
                    rms: (0.6 * u * sum).hypot(self.sums.plain_rms(root, sum)),
                }]
            }
        }
    }

    fn softmax_row(&self, x: &[f64]) -> Vec<Expected> {
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = x.iter().map(|v| (v - top).exp()).sum();
        // ex2.approx is good to 2 ulp of its result and its argument carries |x - top| roundings;
        // the total is a sum of positive terms, in any order.
        let (u, walk) = (self.sums.u, self.sums.walk(1.0));
        let least = match self.out.element {
            Element::F64 => f64::MIN_POSITIVE,
            _ => f64::from(f32::MIN_POSITIVE),
        };
        x.iter()
            .map(|v| {
                let p = (v - top).exp() / total;
                // Minus infinity has zero weight. Below the smallest normal number a kernel may
                // flush to zero.
                let distance = if v.is_infinite() {
                    0.0
                } else {
                    (v - top).abs()
                };
                self.bound(p, p * ((8.0 + distance) * 4.0 * u + walk) + least)
            })
            .collect()
    }

    fn layernorm_row(&self, x: &[f64]) -> Vec<Expected> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let inverse = 1.0 / (variance + self.epsilon).sqrt();
        let units = 16.0 * self.sums.u;
        let spread = x.iter().map(|v| v.abs()).fold(0.0, f64::max) * inverse;
        // A sum of equal signs in sequence has the error of a random walk, which the mean passes on.
        let walk = 2.0 * self.sums.u * n.sqrt() * mean.abs() * inverse;
        (0u64..)
            .zip(x)
            .map(|(i, v)| {
                let gamma = self.gamma.as_ref().map_or(1.0, |t| t.value_at(i));
                let beta = self.beta.as_ref().map_or(0.0, |t| t.value_at(i));
                let normal = (v - mean) * inverse;
                let slack = (gamma.abs() * (spread + normal.abs()) + beta.abs()) * units
                    + gamma.abs() * walk;
                self.bound(normal * gamma + beta, slack)
            })
            .collect()
    }

    fn bound(&self, value: f64, slack: f64) -> Expected {
        let u = self.out.element.unit_roundoff();
        Expected {
            value,
            tolerance: 1.05 * u * value.abs() + slack + self.out.element.smallest_step(),
            rms: ((0.7 * u * value).powi(2) + slack.powi(2)).sqrt(),
        }
    }
}

impl Oracle for Row {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        // A sum has one element for each row.
        let columns = match self.operation {
            Operation::Sum => 1,
            _ => self.length,
        };
        by_rows(start..start + count, columns, |row| self.row(row))
    }

    fn work(&self) -> u64 {
        // The other operations compute a row once for all of its elements.
        if self.operation == Operation::Sum {
            self.length
        } else {
            1
        }
    }

    fn tile(&self, _output: usize) -> u64 {
        if self.operation == Operation::Sum {
            rows_together(1)
        } else {
            rows_together(self.length)
        }
    }
}

#[cfg(test)]
mod tests;
