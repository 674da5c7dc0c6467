//! C = alpha · A B.

use super::panels::Panels;
use super::{Expected, Oracle, OracleError, Problem, Sums, Tensor, rows_together};
use std::sync::OnceLock;
use tuner_core::element::Element;

/// Row-major A [M, K] (first input), B [K, N] (second input), C [M, N] (first output); optionally
/// multiplied by a scalar `alpha`.
pub(super) struct Gemm {
    a: Tensor,
    b: Tensor,
    out: Tensor,
    n: u64,
    k: u64,
    alpha: f64,
    sums: Sums,
    /// B by columns, decoded on first use.
    columns: OnceLock<Columns>,
}

/// B by columns, in a type that represents its elements.
enum Columns {
    Single(Panels<f32>),
    Double(Panels<f64>),
    /// Too large to cache.
    Fetched,
}

/// Largest B that is decoded once, elements.
const KEEP_COLUMNS: u64 = 1 << 26;

impl Gemm {
    pub(super) fn new(problem: &Problem) -> Result<Self, OracleError> {
        let form = || OracleError::Form {
            oracle: "gemm",
            needs: "two inputs of shapes [M, K] and [K, N] and one output of shape [M, N]".into(),
        };
        let ([a, b, ..], [out]) = (problem.inputs.as_slice(), problem.outputs.as_slice()) else {
            return Err(form());
        };
        let (&[m, k], &[k2, n], &[m2, n2]) = (&a.shape[..], &b.shape[..], &out.shape[..]) else {
            return Err(form());
        };
        if (m, k, n) != (m2, k2, n2) {
            return Err(form());
        }
        let alpha = problem.scalars.get("alpha").copied().unwrap_or(1.0);
        Ok(Self {
            a: a.clone(),
            b: b.clone(),
            out: out.clone(),
            sums: Sums::new(k, &[a, b], out),
            n,
            k,
            alpha,
            columns: OnceLock::new(),
        })
    }

    /// Reports whether float32 represents every element of B.
    fn is_single(&self) -> bool {
        use Element as E;
        !matches!(self.b.element, E::F64 | E::I32 | E::U32 | E::I64)
    }

    fn keeps_columns(&self) -> bool {
        self.k.saturating_mul(self.n) <= KEEP_COLUMNS
    }

    fn columns(&self) -> &Columns {
        self.columns.get_or_init(|| {
            if !self.keeps_columns() {
                return Columns::Fetched;
            }
            let [k, n] = [self.k, self.n].map(|size| usize::try_from(size).unwrap_or(0));
            let at = |column: usize, place: usize| self.b.value_at((place * n + column) as u64);
            // Float32 halves the memory; the products are computed in float64 in both cases.
            if self.is_single() {
                Columns::Single(Panels::new(k, n, |column, place| at(column, place) as f32))
            } else {
                Columns::Double(Panels::new(k, n, at))
            }
        })
    }

    /// Computes elements `columns` of a row of C from its row of A.
    fn elements(&self, row: &[f64], columns: std::ops::Range<u64>, expected: &mut Vec<Expected>) {
        let range = [columns.start, columns.end].map(|j| usize::try_from(j).unwrap_or(0));
        let range = range[0]..range[1];
        let each = |sum, squares| expected.push(self.element(sum, squares));
        match self.columns() {
            Columns::Single(panels) => panels.products(range, row, each),
            Columns::Double(panels) => panels.products(range, row, each),
            Columns::Fetched => {
                for column in columns {
                    let column = self.b.strided(column, self.k, self.n);
                    let (mut sum, mut squares) = (0.0f64, 0.0f64);
                    for (x, y) in row.iter().zip(&column) {
                        let product = x * y;
                        sum += product;
                        squares += product * product;
                    }
                    expected.push(self.element(sum, squares));
                }
            }
        }
    }

    /// Returns an element from the sum of its products and the sum of their squares.
    fn element(&self, sum: f64, squares: f64) -> Expected {
        let root = self.alpha.abs() * squares.sqrt();
        let element = self.out.element;
        self.sums.of_products(element, root, self.alpha * sum)
    }
}

impl Oracle for Gemm {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        let mut expected = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        let (mut at, end) = (start, start + count);
        while at < end {
            let (i, j) = (at / self.n, at % self.n);
            let last = (j + end - at).min(self.n);
            let row = self.a.strided(i * self.k, self.k, 1);
            self.elements(&row, j..last, &mut expected);
            at += last - j;
        }
        expected
    }

    fn work(&self) -> u64 {
        // Columns of a very large B are decoded again for each element.
        self.k * if self.keeps_columns() { 1 } else { 8 }
    }

    fn bytes(&self) -> u64 {
        let size = if self.is_single() { 4 } else { 8 };
        match self.columns.get() {
            None | Some(Columns::Fetched) => 0,
            Some(_) => self.k * self.n * size,
        }
    }

    fn tile(&self, _output: usize) -> u64 {
        rows_together(self.n)
    }
}

#[cfg(test)]
mod tests;
