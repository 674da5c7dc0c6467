//! Rows of tensor memory that move by a lane (`tcgen05.shift`, `.ashift`), and B of weight-stationary products
//! (`tcgen05.mma.ws`).

use super::cta::Cta;
use super::tensor_core::Issue;
use super::tensor_memory::Region;
use super::transfer::lanes;
use super::warp::Warp;
use crate::lower::program::{Address, NONE, Stationary};
use crate::tensor_core::{ColumnMask, Form, Shifted};
use crate::warpgroup::Step;

/// Lanes of a quarter, which a shift moves.
const QUARTER: u32 = 32;

impl Cta<'_> {
    /// Executes `tcgen05.shift` of each active lane.
    pub(super) fn tensor_shift(&mut self, w: &mut Warp, at: &Address, blocks: u32, active: u32) {
        for lane in lanes(active) {
            let Some(issue) = self.issue(w, lane, blocks) else {
                continue;
            };
            let at = self.tensor_address(w, at, lane);
            if !at.lane.is_multiple_of(QUARTER) {
                let why = format!(
                    "tcgen05.shift from lane {} on, not a multiple of 32",
                    at.lane
                );
                self.refuse(issue.thread, why);
                continue;
            }
            for rank in issue.ranks.clone() {
                let lanes = QUARTER;
                self.shift_rows(&issue, rank, Shifted { at, lanes });
            }
        }
    }

    /// Moves rows of a block.
    pub(super) fn shift_rows(&mut self, issue: &Issue, rank: usize, rows: Shifted) {
        let region = Region::new(rank, rows.extent());
        if !self.has_cells(issue.thread, &region) {
            return;
        }
        let next = rows.cells().map(|(lane, column)| (lane + 1, column));
        self.read_cells(issue, rank, next);
        self.write_cells(issue, rank, rows.cells(), false);
        rows.write(&mut self.tensor[rank].words);
        self.note_region(issue.thread, region);
    }

    /// Reads one step along K of the columns of B, without those that the mask leaves out. Its buffer must hold
    /// the same matrix where the product may take it from there.
    pub(super) fn stationary_columns(
        &mut self,
        w: &Warp,
        stationary: &Stationary,
        issue: &Issue,
        form: &Form,
        b: u64,
    ) -> Option<Vec<Step>> {
        let rank = *issue.ranks.first()?;
        let buffer = self.tensor[rank].buffers.get_mut(stationary.buffer)?;
        let held = std::mem::replace(buffer, stationary.keeps.then_some(b));
        if stationary.reads && held != Some(b) {
            let has = match held {
                Some(other) => format!("holds the matrix of the descriptor 0x{other:016x}"),
                None => "holds none".to_owned(),
            };
            let number = stationary.buffer;
            self.refuse(
                issue.thread,
                format!("a tcgen05.mma.ws takes B (0x{b:016x}) from buffer {number}, which {has}"),
            );
            return None;
        }
        let mask = ColumnMask(match stationary.columns {
            NONE => 0,
            row => w.regs.r64[row as usize][issue.lane],
        });
        let shift = match mask.shift(form) {
            Ok(shift) => shift,
            Err(why) => {
                self.refuse(
                    issue.thread,
                    format!(
                        "the zero-column mask 0x{:016x} of a tcgen05.mma.ws {why}",
                        mask.0
                    ),
                );
                return None;
            }
        };
        let mut steps = self.matrix(issue, rank, b, shift..shift + form.n, form.sides()[1]);
        for (column, step) in (0..).zip(&mut steps) {
            if mask.zeroes(form, column) {
                step.fill(0);
            }
        }
        Some(steps)
    }
}
