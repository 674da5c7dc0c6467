//! The second half of the gate: what a pass left is compared with what is right.

use super::compare::{self, Comparison};
use super::element::Element;
use super::sampling::thin;
use super::verify::{Gate, Pass, Stop};
use crate::device::plan::{PlanReference, Role};
use crate::device::session::{Blocks, Order, Run};
use crate::record::Verdict;
use std::ops::Range;
use std::sync::Arc;

impl Gate<'_> {
    /// Written, untouched, right.
    pub(super) fn judge(&mut self, seed: u64, pass: &Pass) -> Result<(), Stop> {
        self.inputs_untouched(seed, pass)?;
        let mut total = Comparison::default();
        for (number, (index, bytes)) in pass.outputs.iter().enumerate() {
            let written = self.written(*index, bytes, pass)?;
            if !pass.comparable {
                continue;
            }
            let result = self.compare(seed, number, *index, bytes, &written)?;
            let failed = !result.passed();
            let argument = &self.plan.arguments[*index];
            let detail = failed.then(|| result.describe(&argument.name, &argument.shape));
            total.merge(&result);
            if let Some(detail) = detail {
                self.comparison.get_or_insert_default().merge(&total);
                let detail = format!("{detail} (problem {}, seed {seed})", self.plan.problem);
                return Err(self.reject(Verdict::Incorrect, detail));
            }
        }
        if total.compared > 0 {
            self.comparison.get_or_insert_default().merge(&total);
        }
        Ok(())
    }

    fn inputs_untouched(&mut self, seed: u64, pass: &Pass) -> Result<(), Stop> {
        let inputs = self.references.inputs(self.plan, seed);
        for (index, input) in inputs.iter().enumerate() {
            let (Some(data), Some(slot)) = (input, pass.slots[index]) else {
                continue;
            };
            if self.session.download(slot)?.as_slice() != data.as_ref() {
                let name = &self.plan.arguments[index].name;
                let detail = format!("the kernel changed its input `{name}`");
                return Err(self.reject(Verdict::Incorrect, detail));
            }
        }
        Ok(())
    }

    /// Element ranges of an output that were written; all of them must be when all blocks ran.
    fn written(&self, index: usize, bytes: &[u8], pass: &Pass) -> Result<Vec<Range<u64>>, Stop> {
        let argument = &self.plan.arguments[index];
        let element = Element::from_name(&argument.element).unwrap_or(Element::U8);
        let size = element.size() as u64;
        let count = bytes.len() as u64 / size;
        let Some(holes) = pass.slots[index].and_then(|slot| self.session.unwritten(slot)) else {
            return Ok(std::iter::once(0..count).collect());
        };
        let first = holes.first().map(|hole| hole.start / size);
        if let (Some(first), false) = (first, pass.sampled) {
            let missing: u64 = holes
                .iter()
                .map(|hole| (hole.end - hole.start).div_ceil(size))
                .sum();
            let detail = format!(
                "{missing} of {count} elements of `{}` were written by nobody; the first is element {first} (problem {})",
                argument.name, self.plan.problem
            );
            return Err(self.reject(Verdict::Incorrect, detail));
        }
        let mut written = Vec::new();
        let mut from = 0;
        for hole in holes {
            if hole.start.div_ceil(size) > from {
                written.push(from..hole.start / size);
            }
            from = hole.end.div_ceil(size);
        }
        if from < count {
            written.push(from..count);
        }
        Ok(written)
    }

    fn compare(
        &mut self,
        seed: u64,
        number: usize,
        index: usize,
        bytes: &[u8],
        written: &[Range<u64>],
    ) -> Result<Comparison, Stop> {
        let plan = self.plan;
        let element = Element::from_name(&plan.arguments[index].element).unwrap_or(Element::U8);
        let flat = (plan.gate.atol, plan.gate.rtol);
        match &plan.reference {
            PlanReference::Oracle(name) => {
                let oracle = self
                    .references
                    .oracle(name, plan, seed)
                    .map_err(Stop::Oracle)?;
                let mut result = Comparison::default();
                for range in thin(written) {
                    let part = match flat {
                        (None, None) => compare::with_oracle(
                            oracle.as_ref(),
                            number,
                            element,
                            bytes,
                            range.start,
                            range.end - range.start,
                        ),
                        (atol, rtol) => compare::with_oracle_flat(
                            oracle.as_ref(),
                            number,
                            element,
                            bytes,
                            &range,
                            (atol.unwrap_or(0.0), rtol.unwrap_or(0.0)),
                        ),
                    };
                    result.merge(&part);
                }
                Ok(result)
            }
            PlanReference::Kernel { .. } => {
                let reference = self.reference_outputs(seed)?;
                let (atol, rtol) = (flat.0.unwrap_or(1e-5), flat.1.unwrap_or(1e-5));
                let mut result = Comparison::default();
                let size = element.size() as u64;
                for range in written {
                    let part = |all: &[u8]| -> Vec<u8> {
                        let bounds = [range.start * size, range.end * size]
                            .map(|bound| usize::try_from(bound).unwrap_or(usize::MAX));
                        all.get(bounds[0]..bounds[1]).unwrap_or(&[]).to_vec()
                    };
                    let empty = Vec::new();
                    let wanted = reference.get(number).unwrap_or(&empty);
                    let mut one =
                        compare::with_reference(element, &part(bytes), &part(wanted), atol, rtol);
                    one.shift(range.start);
                    result.merge(&one);
                }
                Ok(result)
            }
        }
    }

    /// What the naive kernel makes of the same inputs, in buffers of its own.
    fn reference_outputs(&mut self, seed: u64) -> Result<Arc<Vec<Vec<u8>>>, Stop> {
        if let Some(outputs) = self.references.outputs(self.plan, seed) {
            return Ok(outputs);
        }
        let PlanReference::Kernel { code, launch } = &self.plan.reference else {
            return Ok(Arc::new(Vec::new()));
        };
        let slots = self.prepare(seed)?;
        let run = Run {
            code,
            launch,
            plan: self.plan,
            slots: &slots,
            blocks: Blocks::All,
            order: Order::Natural,
        };
        let report = self.session.run(&run)?;
        if let Some(hazard) = report.hazards.first() {
            let detail = format!("the reference kernel itself is wrong: {}", hazard.detail);
            return Err(self.reject(hazard.kind, detail));
        }
        let mut outputs = Vec::new();
        for (index, argument) in self.plan.arguments.iter().enumerate() {
            if argument.role == Role::Output
                && let Some(slot) = slots[index]
            {
                outputs.push(self.session.download(slot)?);
            }
        }
        let outputs = Arc::new(outputs);
        self.references.keep_outputs(self.plan, seed, &outputs);
        Ok(outputs)
    }
}
