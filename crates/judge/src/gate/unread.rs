//! Elements of the inputs that a candidate does not read.
//!
//! A maximum or its index is correct on random data even if the kernel stops before the end of its input,
//! unless the maximum is in the unread part. Only elements that a whole run did not read can show this, so
//! the largest and smallest values are swapped with some of them.

use super::adversarial::Data;
use super::extremes::UnreadElements;
use super::naive::Kernel;
use super::ranges::{outside, overlap};
use super::trials::cost;
use super::verify::{Gate, Pass, Stop};
use crate::session::{Order, Slot};
use tuner_core::fill::Fill;
use tuner_core::plan::{PlanArgument, Role};

impl Gate<'_> {
    /// Records the elements of the inputs that no launch of the first whole run has read so far.
    pub(super) fn record_unread(&mut self, slots: &[Option<Slot>]) {
        // Other levels never run the inputs with moved extremes.
        let paid = self.demands.proof_limit.is_some() || self.demands.extra_limit > 0;
        if !paid {
            return;
        }
        let mut found = UnreadElements::new();
        for (index, argument) in self.plan.arguments.iter().enumerate() {
            let slot = slots[index].filter(|_| is_drawn(argument));
            let Some(bytes) = slot.and_then(|slot| self.session.unread(slot)) else {
                continue;
            };
            let (size, count) = (argument.element.size() as u64, argument.count());
            // Words of 4 bytes hold several narrow elements: those at the edges count as read.
            let read = outside(&bytes, 1, argument.bytes());
            let mut elements = outside(&read, size, count);
            if let Some(before) = &self.unread {
                elements = overlap(before.get(&index).map_or(&[], Vec::as_slice), &elements);
            }
            if !elements.is_empty() {
                found.insert(index, elements);
            }
        }
        self.unread = Some(found);
    }

    /// Judges the candidate with the extreme values of its inputs moved to elements that it does not read,
    /// within the limits.
    pub(super) fn unread_extremes(&mut self, data: Data, first: &Pass) -> Result<(), Stop> {
        let unread = self.unread.clone().unwrap_or_default();
        let limit = self.demands.proof_limit.unwrap_or(self.demands.extra_limit);
        let reference = self.references.cost(&self.keyed, data).unwrap_or(0);
        let twice = cost(first).max(reference).saturating_mul(2);
        let compared = Kernel::from_plan(self.plan).is_some();
        if first.sampled || unread.is_empty() || !compared || twice > limit {
            return Ok(());
        }
        let data = Data {
            unread: Some(self.references.keep_unread(unread)),
            ..data
        };
        let pass = self.pass(data, Order::Natural)?;
        self.judge(data, &pass)?;
        self.forget(&pass);
        Ok(())
    }
}

/// Reports whether the elements of an input are drawn independently, so that two of them can be swapped.
fn is_drawn(argument: &PlanArgument) -> bool {
    let drawn = matches!(
        argument.fill,
        Fill::Normal { .. } | Fill::Uniform { .. } | Fill::Permutation | Fill::Sparse { .. }
    );
    drawn && argument.role == Role::Input && argument.layout.is_none()
}
