//! A run on a sparse matrix or graph with one long row and empty ones.
//!
//! Rows of generated graphs differ in length, but not by much: none has many times the entries of an average
//! one, and hardly one is empty, as rows of a real matrix may be. A kernel that reads the first 32 entries
//! of a row, or one entry at least, is right on them. Beside a reference kernel, one row gets half of all
//! entries, and the first row, the last one and each fifth have none.

use super::adversarial::{Case, Data};
use super::naive::KnownElements;
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

    /// Returns the reference's outputs on inputs of a case that the declared fills do not have; `None` where it
    /// fails on them, or where they do not suit the plan, the device or the limits.
    pub(super) fn hard_reference(&mut self, data: Data, first: &Pass) -> Option<KnownElements> {
        // A GPU does not survive an index that leaves a buffer.
        let affordable = self.session.can_sample() && self.affords_another(first);
        if !affordable || self.references.hard(&self.keyed, data).is_none() {
            return None;
        }
        let (index, _) = first.outputs.first()?;
        let all = 0..self.plan.arguments[*index].count();
        self.naive(data, 0, &[all], first).ok().flatten()
    }
}

/// Returns a finding with the name of the inputs.
pub(super) fn named(found: Result<(), Stop>, data: Data) -> Result<(), Stop> {
    match found {
        // A hazard does not say on which data it was found.
        Err(Stop::Rejected(mut found)) if !found.detail.contains(&data.to_string()) => {
            found.detail = format!("{} ({data})", found.detail);
            Err(Stop::Rejected(found))
        }
        found => found,
    }
}
