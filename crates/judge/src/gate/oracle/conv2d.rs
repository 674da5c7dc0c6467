//! `y[r][c] = Σ x[r + i][c + j] f[i][j]`: a convolution of one image in machine-learning terms (a
//! correlation), without padding.

use super::{Expected, Oracle, OracleError, Problem, Sums, Tensor, rows_together};

/// x [H + FH - 1, W + FW - 1] (first input), f [FH, FW] (second), y [H, W] (first output).
pub(super) struct Conv2d {
    x: Tensor,
    filter: Vec<f64>,
    out: Tensor,
    taps: [u64; 2],
    sums: Sums,
}

impl Conv2d {
    pub(super) fn new(problem: &Problem) -> Result<Self, OracleError> {
        let form = || OracleError::Form {
            oracle: "conv2d",
            needs: "inputs x [H + FH - 1, W + FW - 1] and f [FH, FW] and an output y [H, W]".into(),
        };
        let ([x, filter, ..], [out]) = (problem.inputs.as_slice(), problem.outputs.as_slice())
        else {
            return Err(form());
        };
        let (&[rows, columns], &[taps_y, taps_x], &[height, width]) =
            (&x.shape[..], &filter.shape[..], &out.shape[..])
        else {
            return Err(form());
        };
        let fits = taps_y > 0
            && taps_x > 0
            && height > 0
            && width > 0
            && rows == height + taps_y - 1
            && columns == width + taps_x - 1;
        if !fits {
            return Err(form());
        }
        Ok(Self {
            x: x.clone(),
            filter: filter.strided(0, taps_y * taps_x, 1),
            out: out.clone(),
            taps: [taps_y, taps_x],
            sums: Sums::new(taps_y * taps_x, &[x, filter], out),
        })
    }

    fn element(&self, index: u64) -> Expected {
        let (width, columns) = (self.out.shape[1], self.x.shape[1]);
        let corner = index / width * columns + index % width;
        let mut weights = self.filter.iter();
        let (mut sum, mut squares) = (0.0f64, 0.0f64);
        for row in 0..self.taps[0] {
            let values = self.x.strided(corner + row * columns, self.taps[1], 1);
            for (value, weight) in values.iter().zip(&mut weights) {
                let product = value * weight;
                sum += product;
                squares += product * product;
            }
        }
        self.sums.of_products(self.out.element, squares.sqrt(), sum)
    }
}

impl Oracle for Conv2d {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        (start..start + count)
            .map(|index| self.element(index))
            .collect()
    }

    fn work(&self) -> u64 {
        self.taps[0] * self.taps[1]
    }

    fn tile(&self, _output: usize) -> u64 {
        rows_together(self.out.shape[1])
    }
}

#[cfg(test)]
mod tests;
