//! Comparing on the device: what is wanted is worked out here once, and stays there. Only what is found
//! right is taken from the device; anything else is compared again here, which can say what is wrong.

use super::adversarial::{Data, oracle_of};
use super::compare::Comparison;
use super::judge::without;
use super::naive;
use super::sampling::{HARD_WORK_MAX, affordable, compared_max, thin};
use super::tolerance::Tolerance;
use super::verify::{Gate, Pass, Stop};
use super::wanted;
use crate::session::{Kept, Wanted};
use std::ops::Range;
use tuner_core::plan::PlanReference;
use tuner_core::units::ContentHash;

/// By which rule elements are compared.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The oracle's error model, tiles by their norm too.
    Tiles,
    /// The oracle's error model, or the space's tolerance.
    Elements(Option<(f64, f64)>),
    /// Bit for bit.
    Exact,
}

impl Gate<'_> {
    /// The comparison of an output by the device; `None` where the host must compare.
    pub(super) fn on_device(
        &mut self,
        data: Data,
        (number, kept): (usize, Kept),
        written: &[Range<u64>],
        pass: &Pass,
    ) -> Result<Option<Comparison>, Stop> {
        let hard = data.case.and_then(|_| oracle_of(self.plan));
        let name = match (hard, &self.plan.reference) {
            (Some(name), _) => name.to_owned(),
            (None, PlanReference::None) => return Ok(Some(Comparison::default())),
            (None, PlanReference::Oracle(name)) => name.clone(),
            (None, PlanReference::Kernel { .. }) => {
                return self.by_reference(data, (number, kept), written, pass);
            }
        };
        let oracle = self.oracle(&name, data)?;
        let tile = oracle.tile(number);
        let (rule, parts) = if hard.is_some() {
            let made = self.references.hard(&self.keyed, data);
            let made = made.filter(|_| number == 0);
            let excused = made.as_ref().map(|made| &made.excused[..]);
            let judged = without(written, excused.unwrap_or_default());
            let parts = affordable(&judged, tile, (oracle.work(), HARD_WORK_MAX), data.seed);
            let exact = made.is_some_and(|made| made.exact);
            (
                if exact {
                    Rule::Exact
                } else {
                    Rule::Elements(None)
                },
                parts,
            )
        } else {
            let work = self.work(oracle.as_ref());
            let parts = affordable(
                &thin(written, compared_max(work), tile),
                tile,
                work,
                data.seed,
            );
            let flat = self.given();
            (
                flat.map_or(Rule::Tiles, |flat| Rule::Elements(Some(flat))),
                parts,
            )
        };
        let element = self.element_of(number);
        let make = || match rule {
            Rule::Tiles => wanted::tiles(oracle.as_ref(), number, element, &parts),
            Rule::Elements(flat) => {
                wanted::elements(oracle.as_ref(), number, element, &parts, flat)
            }
            Rule::Exact => wanted::exact(oracle.as_ref(), number, element, &parts),
        };
        self.tally(data, (number, kept), (&format!("{rule:?}"), &parts), make)
    }

    /// The same against what a reference kernel wrote.
    fn by_reference(
        &mut self,
        data: Data,
        (number, kept): (usize, Kept),
        written: &[Range<u64>],
        pass: &Pass,
    ) -> Result<Option<Comparison>, Stop> {
        let naive::Wanted::Outputs(outputs, known) = self.naive(data, number, written, pass)?
        else {
            return Ok(None);
        };
        let plan = self.plan;
        let argument = &plan.arguments[pass.outputs[number].0];
        let tolerance = Tolerance::of(plan, argument);
        let empty = Vec::new();
        let reference = outputs.get(number).unwrap_or(&empty);
        if !argument.element.is_float() {
            return Ok(None);
        }
        let make = || tolerance.wanted(reference, &known).unwrap_or_default();
        self.tally(data, (number, kept), ("reference", &known), make)
    }

    fn element_of(&self, number: usize) -> tuner_core::element::Element {
        let arguments = self.plan.arguments.iter();
        let mut outputs = arguments.filter(|argument| argument.role.is_compared());
        outputs
            .nth(number)
            .map_or(tuner_core::element::Element::F64, |argument| {
                argument.element
            })
    }

    fn tally(
        &mut self,
        data: Data,
        (number, kept): (usize, Kept),
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
        let element = self.element_of(number);
        let Some(tally) = self.session.tally(kept, element, &key, &mut make)? else {
            return Ok(None);
        };
        let result = Comparison {
            compared: parts.iter().map(|part| part.end - part.start).sum(),
            wrong: tally.wrong,
            max_error: tally.max_error,
            ..Comparison::default()
        };
        Ok(result.passed().then_some(result))
    }
}
