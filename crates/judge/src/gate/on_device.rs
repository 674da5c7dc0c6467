//! Comparison on the device: expected values are computed once and stay there. A correct result is accepted
//! from the device; any other result is compared again on the host, which can describe the difference.

use super::adversarial::{Data, oracle_of};
use super::compare::Comparison;
use super::expected::ExpectedValues;
use super::expected_output::expected_output;
use super::tolerance::Tolerance;
use super::verify::{Gate, Pass, Stop};
use crate::session::{ExpectedOutput, RetainedBuffer};
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::plan::PlanReference;
use tuner_core::units::ContentHash;

/// An output on the device.
#[derive(Debug, Clone, Copy)]
struct RetainedOutput {
    /// Its number among the outputs.
    number: usize,
    element: Element,
    kept: RetainedBuffer,
}

impl Gate<'_> {
    /// Compares an output on the device; `None` if the host must compare.
    pub(super) fn on_device(
        &mut self,
        data: Data,
        number: usize,
        kept: RetainedBuffer,
        written: &[Range<u64>],
        pass: &Pass,
    ) -> Result<Option<Comparison>, Stop> {
        let plan = self.plan;
        let name = match (data.case.and_then(|_| oracle_of(plan)), &plan.reference) {
            (Some(name), _) => name,
            (None, PlanReference::None) => return Ok(Some(Comparison::default())),
            (None, PlanReference::Oracle(name)) => name,
            (None, PlanReference::Kernel { .. } | PlanReference::Values(_)) => {
                return self.by_reference(data, number, kept, written, pass);
            }
        };
        let (oracle, rule, parts) = self.by_oracle(data, name, number, written)?;
        let element = plan.arguments[pass.outputs[number].0].element;
        let make = || expected_output(oracle.as_ref(), number, element, &parts, rule);
        let rule = format!("{rule:?}");
        let output = RetainedOutput {
            number,
            element,
            kept,
        };
        self.tally(data, output, &rule, &parts, make)
    }

    /// Compares an output on the device with the outputs of a reference kernel.
    fn by_reference(
        &mut self,
        data: Data,
        number: usize,
        kept: RetainedBuffer,
        written: &[Range<u64>],
        pass: &Pass,
    ) -> Result<Option<Comparison>, Stop> {
        let Some((outputs, known)) = self.naive(data, number, written, pass)? else {
            return Ok(None);
        };
        let plan = self.plan;
        let argument = &plan.arguments[pass.outputs[number].0];
        let tolerance = Tolerance::for_argument(plan, argument);
        let reference = outputs.get(number).map_or(&[][..], Vec::as_slice);
        // Float64 may not distinguish large integers.
        if !argument.element.is_float() {
            return Ok(None);
        }
        let make = || tolerance.expected_output(reference, &known);
        let output = RetainedOutput {
            number,
            element: argument.element,
            kept,
        };
        self.tally(data, output, "reference", &known, make)
    }

    fn tally(
        &mut self,
        data: Data,
        output: RetainedOutput,
        rule: &str,
        parts: &[Range<u64>],
        mut make: impl FnMut() -> ExpectedOutput,
    ) -> Result<Option<Comparison>, Stop> {
        let plan = self.plan;
        let RetainedOutput {
            number,
            element,
            kept,
        } = output;
        // Everything that changes expected values or tolerances must be in the key: a stale hit
        // would accept wrong results.
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
        let key = ContentHash::from_parts([expected, rules.as_bytes(), &places]);
        let mut made = None;
        let mut make = || {
            let wanted = make();
            made = Some(wanted.values.iter().map(|[value, _]| *value).collect());
            wanted
        };
        let Some(tally) = self.session.tally(kept, element, &key, &mut make)? else {
            return Ok(None);
        };
        // The session caches the expected values for later candidates and does not request them
        // again.
        let expected: ExpectedValues = self.references.expected_values(key, made);
        let result = Comparison {
            compared: parts.iter().map(|part| part.end - part.start).sum(),
            wrong: tally.wrong,
            max_error: tally.max_error,
            expected,
            ..Comparison::default()
        };
        // A failure is compared again on the host, which describes the wrong elements.
        Ok(result.passed().then_some(result))
    }
}
