//! A run on a sparse matrix or graph with one long row and empty ones.
//!
//! Rows of generated graphs differ in length, but not by much: none has many times the entries of an average
//! one, and hardly one is empty, as rows of a real matrix may be. A kernel that reads the first 32 entries
//! of a row, or one entry at least, is right on them. Beside a reference kernel, one row gets half of all
//! entries, and the first row, the last one and each fifth have none.

use super::adversarial::{Case, Data};
use super::hard_reference::named;
use super::verify::{Gate, Pass, Stop};
use crate::session::Order;

impl Gate<'_> {
    /// Judges the candidate on a graph with a long row, as far as the limits allow. A reference that
    /// fails on it says nothing: its rows may be known to be short.
    pub(super) fn long_row(&mut self, first_data: Data, first: &Pass) -> Result<(), Stop> {
        let data = Data {
            case: Some(Case::LongRow),
            ..first_data
        };
        if self.hard_reference(data, first).is_none() {
            return Ok(());
        }
        let found = self.pass(data, Order::Natural).and_then(|pass| {
            let judged = self.judge(data, &pass);
            self.forget(&pass);
            judged
        });
        named(found, data)
    }
}
