//! Linear algebra of the model: dense, double precision, in a fixed order of operations, so that results
//! are equal on every machine.

/// Computes the sum of products in eight partial sums.
#[must_use]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Independent sums allow vector instructions without a change of the order.
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a_chunks
        .remainder()
        .iter()
        .zip(b_chunks.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Computes the squared Euclidean distance.
#[must_use]
pub fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// A symmetric matrix.
#[derive(Debug)]
pub(super) struct Symmetric {
    pub(super) n: usize,
    /// Strict lower triangle, row by row.
    pub(super) triangle: Vec<f64>,
    pub(super) diagonal: Vec<f64>,
}

impl Symmetric {
    /// Returns the start of row `at` in the triangle.
    pub(super) fn start(at: usize) -> usize {
        at * at.saturating_sub(1) / 2
    }

    /// Computes the full inverse, row by row; `None` unless the matrix is positive definite.
    pub(super) fn inverse(&self) -> Option<Vec<f64>> {
        Some(invert(&self.cholesky()?, self.n))
    }

    /// Computes the full lower Cholesky factor, row by row.
    fn cholesky(&self) -> Option<Vec<f64>> {
        let n = self.n;
        let mut factor = vec![0.0; n * n];
        for at in 0..n {
            let start = Self::start(at);
            let (above, row) = factor.split_at_mut(at * n);
            for other in 0..at {
                let known = dot(&row[..other], &above[other * n..other * n + other]);
                row[other] = (self.triangle[start + other] - known) / above[other * n + other];
            }
            let rest = self.diagonal[at] - dot(&row[..at], &row[..at]);
            if rest <= 0.0 {
                return None;
            }
            row[at] = rest.sqrt();
        }
        Some(factor)
    }
}

/// Computes the inverse of `L L'`.
fn invert(factor: &[f64], n: usize) -> Vec<f64> {
    // Row `c` holds column `c` of the inverse of L.
    let mut columns = vec![0.0; n * n];
    for at in 0..n {
        let line = &mut columns[at * n..(at + 1) * n];
        line[at] = 1.0 / factor[at * n + at];
        for row in at + 1..n {
            let known = dot(&factor[row * n + at..row * n + row], &line[at..row]);
            line[row] = -known / factor[row * n + row];
        }
    }
    let mut inverse = vec![0.0; n * n];
    for a in 0..n {
        for b in 0..=a {
            // Above row `a`, column `a` of the inverse of L has only zeros.
            let value = dot(
                &columns[a * n + a..(a + 1) * n],
                &columns[b * n + a..(b + 1) * n],
            );
            inverse[a * n + b] = value;
            inverse[b * n + a] = value;
        }
    }
    inverse
}

#[cfg(test)]
mod tests;
