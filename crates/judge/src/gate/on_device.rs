//! Comparing on the device: what is wanted is worked out here once, and stays there. Only what is found
//! right is taken from the device; anything else is compared again here, which can say what is wrong.

use super::adversarial::{Data, oracle_of};
use super::compare::Comparison;
use super::expected::ExpectedValues;
use super::tolerance::Tolerance;
use super::verify::{Gate, Pass, Stop};
use super::wanted::wanted;
use crate::session::{Kept, Wanted};
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::plan::PlanReference;
use tuner_core::units::ContentHash;

impl Gate<'_> {
    /// The comparison of an output by the device; `None` where the host must compare.
    pub(super) fn on_device(
        &mut self,
        data: Data,
        (number, kept): (usize, Kept),
        written: &[Range<u64>],
        pass: &Pass,
    ) -> Result<Option<Comparison>, Stop> {
        let plan = self.plan;
        let name = match (data.case.and_then(|_| oracle_of(plan)), &plan.reference) {
            (Some(name), _) => name,
            (None, PlanReference::None) => return Ok(Some(Comparison::default())),
            (None, PlanReference::Oracle(name)) => name,
            (None, PlanReference::Kernel { .. } | PlanReference::Values(_)) => {
                return self.by_reference(data, (number, kept), written, pass);
            }
        };
        let (oracle, rule, parts) = self.by_oracle(data, name, number, written)?;
        let element = plan.arguments[pass.outputs[number].0].element;
        let make = || wanted(oracle.as_ref(), number, element, &parts, rule);
        let rule = format!("{rule:?}");
        self.tally(data, (number, element, kept), (&rule, &parts), make)
    }

    /// The same against what a reference kernel wrote.
    fn by_reference(
        &mut self,
        data: Data,
        (number, kept): (usize, Kept),
        written: &[Range<u64>],
        pass: &Pass,
    ) -> Result<Option<Comparison>, Stop> {
        let Some((outputs, known)) = self.naive(data, number, written, pass)? else {
            return Ok(None);
        };
        let plan = self.plan;
        let argument = &plan.arguments[pass.outputs[number].0];
        let tolerance = Tolerance::of(plan, argument);
        let reference = outputs.get(number).map_or(&[][..], Vec::as_slice);
        // Float64 may not tell whole numbers apart.
        if !argument.element.is_float() {
            return Ok(None);
        }
        let make = || tolerance.wanted(reference, &known);
        let output = (number, argument.element, kept);
        self.tally(data, output, ("reference", &known), make)
    }

    fn tally(
        &mut self,
        data: Data,
        (number, element, kept): (usize, Element, Kept),
        (rule, parts): (&str, &[Range<u64>]),
        mut make: impl FnMut() -> Wanted,
    ) -> Result<Option<Comparison>, Stop> {
        let plan = self.plan;
        let rules = format!(
            "{rule} {data:?} {number} {:?} {:?} {:?}",
            plan.gate, plan.flops, plan.bytes
        );
        let places: Vec<u8> = parts
            .iter()
            .flat_map(|part| [part.start, part.end])
            .flat_map(u64::to_le_bytes)
            .collect();
        let expected = self.keyed.reference().as_str().as_bytes();
        let key = ContentHash::of([expected, rules.as_bytes(), &places]);
        let mut made = None;
        let mut make = || {
            let wanted = make();
            made = Some(wanted.values.iter().map(|[value, _]| *value).collect());
            wanted
        };
        let Some(tally) = self.session.tally(kept, element, &key, &mut make)? else {
            return Ok(None);
        };
        // The session keeps what is wanted for the next candidates, and does not ask again.
        let expected: ExpectedValues = self.references.expected_values(key, made);
        let result = Comparison {
            compared: parts.iter().map(|part| part.end - part.start).sum(),
            wrong: tally.wrong,
            max_error: tally.max_error,
            expected,
            ..Comparison::default()
        };
        Ok(result.passed().then_some(result))
    }
}
