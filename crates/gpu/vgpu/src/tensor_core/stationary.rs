//! Weight-stationary products, `tcgen05.mma.ws` (PTX ISA, 9.7.16.10.9.3), and their masks of columns (9.7.16.4.3).

use super::{Form, LANES, ProductKind};

impl Form {
    /// Decodes the descriptor of a weight-stationary product.
    ///
    /// # Errors
    /// A field that is not valid.
    pub fn decode_stationary(kind: ProductKind, bits: u32) -> Result<Self, String> {
        let form = Self {
            stationary: true,
            ..Self::fields(kind, bits)?
        };
        let (m, n) = (form.m, form.n);
        if !matches!(m, 32 | 64 | 128) || !matches!(n, 64 | 128 | 256) {
            return Err(format!(
                "has M = {m} and N = {n}; `.ws` has 32, 64 or 128 rows and 64, 128 or 256 columns"
            ));
        }
        Ok(form)
    }

    /// Returns the columns of D that lie beside each other. The lanes have its rows once for each such part, as
    /// CUTLASS lays them out (`tmem_frg_ws`).
    pub(super) fn part(&self) -> u32 {
        self.n * self.m / LANES
    }
}

/// A zero-column mask descriptor: the columns of B that count as zero, and a shift of B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnMask(pub u64);

impl ColumnMask {
    fn field(self, low: u32, count: u32) -> u32 {
        (self.0 >> low) as u32 & ((1 << count) - 1)
    }

    /// Returns the first column of B that takes part.
    ///
    /// # Errors
    /// A shift that is larger than the rows of D allow.
    pub fn shift(self, form: &Form) -> Result<u32, String> {
        let (shift, most) = (self.field(56, 6), if form.m == 32 { 16 } else { 32 });
        if shift > most {
            return Err(format!(
                "shifts B by {shift} columns; up to {most} are possible with M = {}",
                form.m
            ));
        }
        Ok(shift)
    }

    /// Reports whether a column of the product takes zeros in place of those of B. Runs of used and of zeroed
    /// columns alternate in each part of D; the table of the PTX ISA exchanges their names, its examples
    /// and CUTLASS (`MaskAndShiftB`) do not.
    #[must_use]
    pub fn zeroes(self, form: &Form, column: u32) -> bool {
        let (part, within) = (column / form.part(), column % form.part());
        let [zeroed, used] = [40, 48].map(|low| self.field(low, 8) + 1);
        let at = (within + self.field(8 * part, 8)) % (zeroed + used);
        let is_zeroed = match self.field(32 + part, 1) {
            0 => at >= used,
            _ => at < zeroed,
        };
        self.field(39, 1) == 1 && is_zeroed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(m: u32, n: u32) -> Form {
        let bits = 1 << 4 | (n / 8) << 17 | (m / 16) << 24;
        Form::decode_stationary(ProductKind::F16, bits).unwrap()
    }

    fn mask(counts: [u64; 4], first: u64) -> ColumnMask {
        let counts = counts.iter().rev().fold(0, |all, count| all << 8 | count);
        ColumnMask(counts | first << 32 | 1 << 39 | 2 << 40 | 3 << 48)
    }

    /// The mask of a part, the last column first, as the PTX ISA writes it.
    fn shown(mask: ColumnMask, form: &Form, part: u32, digits: u32) -> String {
        let columns = (0..digits).rev().map(|n| part * form.part() + n);
        columns
            .map(|n| if mask.zeroes(form, n) { '1' } else { '0' })
            .collect()
    }

    #[test]
    fn masks_are_those_of_the_examples_of_the_isa() {
        let single = form(128, 64);
        let none = ColumnMask(4 << 40 | 3 << 48);
        assert_eq!(shown(none, &single, 0, 14), "00000000000000");
        assert_eq!(shown(mask([0; 4], 0), &single, 0, 14), "11100001110000");
        let halves = form(64, 128);
        let second = mask([0; 4], 1);
        assert_eq!(shown(second, &halves, 0, 17), "11100001110000111");
        assert_eq!(shown(second, &halves, 1, 18), "000011100001110000");
        let quarters = form(32, 128);
        let fourth = mask([0, 1, 2, 1], 3);
        for (part, wanted) in [
            (0, "00001110000111"),
            (1, "0000111000011"),
            (2, "111000011100"),
            (3, "1110000111000"),
        ] {
            assert_eq!(shown(fourth, &quarters, part, wanted.len() as u32), wanted);
        }
        assert_eq!(ColumnMask(2 << 56).shift(&quarters), Ok(2));
        assert!(ColumnMask(17 << 56).shift(&quarters).is_err());
        assert_eq!(ColumnMask(17 << 56).shift(&halves), Ok(17));
    }

    #[test]
    fn rows_and_columns_have_cells_of_their_own() {
        for (m, n) in [(32, 64), (32, 256), (64, 128), (128, 64)] {
            let form = form(m, n);
            let mut cells: Vec<_> = (0..m)
                .flat_map(|row| (0..n).map(move |column| (row, column)))
                .map(|(row, column)| form.cell(1, row, column))
                .collect();
            cells.sort_unstable();
            cells.dedup();
            let (lanes, columns) = form.extent(1);
            assert_eq!(cells.len() as u32, lanes * columns);
            assert_eq!(cells.last(), Some(&(lanes - 1, columns - 1)));
        }
        assert_eq!(form(32, 128).cell(1, 5, 70), (69, 6));
        assert_eq!(form(64, 128).cell(1, 5, 70), (69, 6));
        let bits = 1 << 4 | (32 / 8) << 17 | (64 / 16) << 24;
        assert!(Form::decode_stationary(ProductKind::F16, bits).is_err());
    }
}
