//! C = alpha · A B.

use super::{Expected, Oracle, OracleError, Problem, Sums, Tensor, rows_together};

/// Row-major A [M, K] (first input), B [K, N] (second input), C [M, N] (first output); a scalar
/// `alpha` multiplies, where there is one.
pub(super) struct Gemm {
    a: Tensor,
    b: Tensor,
    out: Tensor,
    n: u64,
    k: u64,
    alpha: f64,
    sums: Sums,
    /// B transposed to columns when the whole of it is small enough to keep in float64.
    columns: Option<Vec<f64>>,
}

/// Below this many elements B is decoded once.
const KEEP_COLUMNS: u64 = 1 << 22;

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
        let columns = (k * n <= KEEP_COLUMNS).then(|| {
            (0..n)
                .flat_map(|j| b.strided(j, k, n))
                .collect::<Vec<f64>>()
        });
        let alpha = problem.scalars.get("alpha").copied().unwrap_or(1.0);
        Ok(Self {
            a: a.clone(),
            b: b.clone(),
            out: out.clone(),
            sums: Sums::new(k, &[a, b], out),
            n,
            k,
            alpha,
            columns,
        })
    }

    fn element(&self, row: &[f64], j: u64) -> Expected {
        let k = usize::try_from(self.k).unwrap_or(usize::MAX);
        let fetched;
        let column = match &self.columns {
            Some(all) => {
                let start = usize::try_from(j).unwrap_or(usize::MAX).saturating_mul(k);
                all.get(start..start + k).unwrap_or(&[])
            }
            None => {
                fetched = self.b.strided(j, self.k, self.n);
                &fetched[..]
            }
        };
        let (mut sum, mut squares) = (0.0f64, 0.0f64);
        for (x, y) in row.iter().zip(column) {
            let product = x * y;
            sum += product;
            squares += product * product;
        }
        let value = self.alpha * sum;
        let root = self.alpha.abs() * squares.sqrt();
        let u = self.out.element.unit_roundoff();
        Expected {
            value,
            tolerance: 1.05 * u * value.abs()
                + self.sums.products(root, value)
                + self.out.element.smallest_step(),
            rms: (0.6 * u * value).hypot(self.sums.products_rms(root, value)),
        }
    }
}

impl Oracle for Gemm {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        let mut expected = Vec::new();
        let mut row = (u64::MAX, Vec::new());
        for index in start..start + count {
            let (i, j) = (index / self.n, index % self.n);
            if row.0 != i {
                row = (i, self.a.strided(i * self.k, self.k, 1));
            }
            expected.push(self.element(&row.1, j));
        }
        expected
    }

    fn work(&self) -> u64 {
        // Columns of a large B are gathered anew for each element.
        self.k * if self.columns.is_some() { 1 } else { 8 }
    }

    fn tile(&self, _output: usize) -> u64 {
        rows_together(self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{input, output};
    use super::*;
    use std::collections::BTreeMap;
    use tuner_core::element::Element;
    use tuner_core::fill::Fill;

    fn problem(m: u64, n: u64, k: u64, element: Element) -> Problem {
        Problem {
            inputs: vec![
                input("a", element, &[m, k], 1),
                input("b", element, &[k, n], 2),
            ],
            outputs: vec![output("c", element, &[m, n])],
            scalars: BTreeMap::new(),
            sizes: BTreeMap::new(),
        }
    }

    /// Largest |honest kernel − value| / tolerance, where the kernel may drop the last `drop` terms.
    fn worst(problem: &Problem, drop: u64) -> f64 {
        let oracle = Gemm::new(problem).unwrap();
        let (a, b) = (&problem.inputs[0], &problem.inputs[1]);
        let (m, n, k) = (a.shape[0], b.shape[1], a.shape[1]);
        let element = problem.outputs[0].element;
        let expected = oracle.span(0, 0, m * n);
        let mut worst = 0.0f64;
        for i in 0..m {
            for j in 0..n {
                let mut sum = 0.0f32;
                for t in 0..k - drop {
                    sum = (a.at(i * k + t) as f32).mul_add(b.at(t * n + j) as f32, sum);
                }
                let want = expected[(i * n + j) as usize];
                worst =
                    worst.max((element.round(f64::from(sum)) - want.value).abs() / want.tolerance);
            }
        }
        worst
    }

    #[test]
    fn an_honest_float32_kernel_passes_and_one_that_drops_a_term_does_not() {
        for element in [Element::F32, Element::F16, Element::Bf16] {
            for k in [1, 2, 3, 17, 64, 300] {
                let problem = problem(9, 7, k, element);
                assert!(worst(&problem, 0) <= 1.0, "{element:?} K={k}");
                if k > 1 {
                    assert!(worst(&problem, 1) > 3.0, "{element:?} K={k}");
                }
            }
        }
    }

    /// 4 in 32768 elements of a correct float32 kernel once left a bound that knew `root` alone.
    #[test]
    fn elements_far_from_zero_may_carry_the_roundings_of_their_partial_sums() {
        let mut problem = problem(64, 128, 64, Element::F32);
        let fill = Fill::Uniform {
            min: -1.0,
            max: 1.0,
        };
        for seed in 0..8 {
            for (i, tensor) in problem.inputs.iter_mut().enumerate() {
                let count = tensor.shape.iter().product();
                tensor.bytes = fill
                    .bytes(Element::F32, seed * 2 + i as u64, 0, count)
                    .into();
            }
            let worst = worst(&problem, 0);
            assert!(worst <= 1.0, "seed {seed}: {worst}");
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused_with_what_is_needed() {
        let mut wrong = problem(4, 5, 6, Element::F32);
        wrong.inputs[1].shape = vec![5, 6];
        let error = Gemm::new(&wrong).err().unwrap();
        assert!(error.to_string().contains("[K, N]"), "{error}");
    }
}
