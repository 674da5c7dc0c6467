//! Checks beyond one run: repetitions, other seeds, adversarial inputs.

use super::adversarial::{Case, Data, oracle_of};
use super::level::Level;
use super::naive::compared;
use super::verify::{Gate, Pass, Stop, uses_atomics};
use crate::session::{Contents, Order, Slot};
use crate::stopwatch::OutputSet;
use std::borrow::Cow;
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::layout::Layout;
use tuner_core::plan::{PlanArgument, Role};
use tuner_core::record::Verdict;

/// Elements of an output that are read to decide whether it must depend on the seed.
const SEED_CHECK_ELEMENTS: u64 = 32;

/// Input size above which only one seed is used, unless the level requires everything: generating,
/// copying and comparing the inputs takes longer than the kernel.
const SEEDED_BYTES: u64 = 64 << 20;

/// Limit of bytes that repeated runs transfer to and from the device.
const REPEATED_BYTES: u64 = 8 << 30;

/// Times by which hard inputs may exceed the limit of repetitions.
const HARD_SHARE: u64 = 4;

/// Cases of a built-in oracle that may exceed it: all of them would double the time of a contender.
const FIRST_CASES: usize = 2;

impl Gate<'_> {
    /// Returns the bytes of all buffers.
    fn bytes(&self) -> u64 {
        let arguments = self.plan.arguments.iter();
        let buffers = arguments.filter(|argument| argument.role != Role::Scalar);
        buffers
            .map(PlanArgument::bytes)
            .fold(0, u64::saturating_add)
    }

    /// Returns the seeds for a problem of this size.
    pub(super) fn affordable_seeds(&self) -> Vec<u64> {
        let seeds = &self.demands.seeds;
        // `u64::MAX` is the final level, which has no limit.
        let all = self.bytes() <= SEEDED_BYTES || self.demands.extra_limit == u64::MAX;
        let count = if all { seeds.len() } else { 1 };
        seeds.iter().copied().take(count).collect()
    }

    /// Repeats the run on the same data: bitwise equal, and clean in any order of warps and blocks.
    pub(super) fn repeat(&mut self, data: Data, first: &Pass) -> Result<(), Stop> {
        let repeated = self.demands.runs > 1;
        let mut count = self.demands.schedules;
        if count == 0 && repeated && (first.sampled || !self.plan.gate.deterministic) {
            // Decisions that the ISA leaves open are drawn again: the result must still be correct. One
            // repetition keeps a sample cheap.
            count = 1;
        } else if count == 0 && repeated {
            // The second run is always made; further ones if the limit allows.
            let paid = self.demands.extra_limit / cost(first).max(1);
            let carried = REPEATED_BYTES / self.bytes().max(1);
            let further = u64::from(self.demands.runs.saturating_sub(2));
            let further = further.min(paid).min(carried);
            count = 1 + u32::try_from(further).unwrap_or(u32::MAX);
        } else if count == 0 && self.proves_other_order(first) {
            count = 1;
        }
        for number in 0..count {
            let number = number.saturating_add(1);
            let order = Order::Other {
                number,
                // Derived from the input's seed, so that a failure is reproducible.
                seed: data.seed ^ u64::from(number),
            };
            let again = self.pass(data, order)?;
            if !self.plan.gate.deterministic {
                self.judge(data, &again)?;
                self.forget(&again);
                continue;
            }
            // The elements that an abandoned block wrote depend on the order.
            let cut = first.budget_exhausted.is_some() || again.budget_exhausted.is_some();
            let difference = match cut {
                true => None,
                false => self.first_difference(first, &again, &[])?,
            };
            let Some((argument, element)) = difference else {
                self.forget(&again);
                continue;
            };
            // A wrong result is more than a difference in bits and is reported as such.
            let why = match self.judge(data, &again) {
                Ok(()) => "say `gate: { deterministic: false }` if the order of atomics is meant \
                           to show"
                    .to_owned(),
                Err(Stop::Rejected(wrong)) => format!("in the second run {}", wrong.detail),
                Err(other) => return Err(other),
            };
            self.forget(&again);
            return Err(self.reject(
                Verdict::Nondeterministic,
                format!(
                    "two runs on the same input differ, first at element {element} of \
                     `{argument}`; {why}"
                ),
            ));
        }
        Ok(())
    }

    /// Reports whether a proof also runs the problem in another order. Blocks that use each other's results
    /// may be correct in one order only, and smaller problems have fewer of them.
    fn proves_other_order(&self, first: &Pass) -> bool {
        let limit = self.demands.proof_limit.unwrap_or(0);
        let linked = first.work.iter().any(uses_atomics);
        linked && !first.sampled && cost(first).saturating_mul(2) <= limit
    }

    /// Returns the first output element with different bits, except 0 and −0; `excused` elements of
    /// the first output may differ.
    fn first_difference(
        &mut self,
        one: &Pass,
        two: &Pass,
        excused: &[Range<u64>],
    ) -> Result<Option<(String, u64)>, Stop> {
        let pairs = one.outputs.iter().zip(&two.outputs).enumerate();
        for (number, ((index, one), (_, two))) in pairs {
            // On the device this compares without a transfer; bytes are fetched only for a
            // difference.
            if self.same(one, two)? {
                continue;
            }
            let (one, two) = (self.bytes_of(one)?, self.bytes_of(two)?);
            let argument = &self.plan.arguments[*index];
            if !differ(argument, &one, &two) {
                continue;
            }
            let size = argument.element.size();
            let elements = one.chunks(size).zip(two.chunks(size));
            let mut differing = (0u64..).zip(elements).filter(|(at, (a, b))| {
                let free = number == 0 && excused.iter().any(|range| range.contains(at));
                let padding = |layout: &Layout| layout.is_padding(*at);
                let differ = a != b && !both_zero(argument.element, a, b);
                !free && differ && !argument.layout.as_ref().is_some_and(padding)
            });
            if let Some((element, _)) = differing.next() {
                return Ok(Some((argument.name.clone(), element)));
            }
        }
        Ok(None)
    }

    /// Reports whether two outputs have the same bits.
    fn same(&mut self, one: &Contents, two: &Contents) -> Result<bool, Stop> {
        Ok(match (one, two) {
            (Contents::Device(one), Contents::Device(two)) => self.session.equal(*one, *two)?,
            (one, two) => self.bytes_of(one)? == self.bytes_of(two)?,
        })
    }

    /// Returns the bytes of an output.
    pub(super) fn bytes_of<'c>(&mut self, contents: &'c Contents) -> Result<Cow<'c, [u8]>, Stop> {
        Ok(match contents {
            Contents::Host(bytes) => Cow::Borrowed(bytes),
            Contents::Device(kept) => Cow::Owned(self.session.fetch(*kept)?),
        })
    }

    /// Returns handles of the outputs on the device, or their bytes if the device cannot hold them.
    pub(super) fn contents(&mut self, slots: &[Option<Slot>]) -> Result<OutputSet, Stop> {
        let mut all = OutputSet::new();
        for (index, _) in compared(self.plan) {
            if let Some(slot) = slots[index] {
                let contents = match self.session.keep(slot) {
                    Some(kept) => Contents::Device(kept),
                    None => Contents::Host(self.session.download(slot)?),
                };
                all.push((index, contents));
            }
        }
        Ok(all)
    }

    /// Frees the outputs of a pass on the device.
    pub(super) fn forget(&mut self, pass: &Pass) {
        for (_, contents) in &pass.outputs {
            if let Contents::Device(kept) = contents {
                self.session.release(*kept);
            }
        }
    }

    /// Checks that two seeds give different outputs, if the expected ones differ.
    pub(super) fn depends(
        &mut self,
        one: Data,
        before: &Pass,
        two: Data,
        now: &Pass,
    ) -> Result<(), Stop> {
        // Equal samples may be a coincidence of the few elements.
        let whole = !before.sampled && !now.sampled;
        if !whole || !self.all_same(before, now)? || !self.should_differ(one, two)? {
            return Ok(());
        }
        let detail = format!(
            "the outputs are the same bits for {one} and {two}, though the right ones differ: they do not depend on the inputs"
        );
        Err(self.reject(Verdict::Incorrect, detail))
    }

    fn all_same(&mut self, before: &Pass, now: &Pass) -> Result<bool, Stop> {
        for ((_, one), (_, two)) in before.outputs.iter().zip(&now.outputs) {
            if !self.same(one, two)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reports whether the expected outputs of two seeds differ within the output type's
    /// resolution.
    fn should_differ(&mut self, one: Data, two: Data) -> Result<bool, Stop> {
        let Some(name) = oracle_of(self.plan).map(str::to_owned) else {
            let one = self.references.outputs(&self.keyed, one);
            let two = self.references.outputs(&self.keyed, two);
            let (Some(one), Some(two)) = (one, two) else {
                return Ok(false);
            };
            let outputs = self.plan.compared().zip(one.iter().zip(two.iter()));
            return Ok(outputs
                .into_iter()
                .any(|(argument, (one, two))| differ(argument, one, two)));
        };
        let Some(output) = self.plan.of_role(Role::Output).next() else {
            return Ok(false);
        };
        let (count, element) = (output.count(), output.element);
        // Oracle values, not outputs: a kernel that ignores its inputs has equal outputs for both.
        let mut of = |data| {
            let oracle = self.references.oracle(&name, &self.keyed, data);
            oracle.map_err(Stop::Oracle)
        };
        let (one, two) = (of(one)?, of(two)?);
        let step = (count / SEED_CHECK_ELEMENTS).max(1);
        let mut looked = (0..count).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        Ok(looked.any(|at| {
            let value = |oracle: &dyn super::oracle::Oracle| {
                let expected = oracle.span(0, at, 1);
                expected.first().map(|e| element.round(e.value))
            };
            let (one, two) = (value(one.as_ref()), value(two.as_ref()));
            one != two && !one.zip(two).is_some_and(|(a, b)| a.is_nan() && b.is_nan())
        }))
    }

    /// Reports whether further runs are required and one is affordable.
    pub(super) fn affords_another(&self, first: &Pass) -> bool {
        let limit = self.demands.extra_limit;
        limit > 0 && !first.sampled && cost(first) <= limit
    }

    /// Runs a second seed for a candidate with only one seed whose module keeps state between runs: on the
    /// same data a remembered result is correct.
    pub(super) fn other_seed(&mut self, one: Data, before: &Pass) -> Result<(), Stop> {
        let other = Level::Timing.seeds(one.seed).into_iter().nth(1);
        let data = Data::seeded(other.unwrap_or(!one.seed));
        let pass = self.pass(data, Order::Natural)?;
        self.judge(data, &pass)?;
        self.depends(one, before, data, &pass)?;
        self.forget(&pass);
        Ok(())
    }

    /// Returns the lane instructions of runs on hard inputs: more than of repetitions, since they find more.
    pub(super) fn hard_limit(&self) -> u64 {
        self.demands.extra_limit.saturating_mul(HARD_SHARE)
    }

    /// Runs adversarial inputs, within the limit.
    pub(super) fn hard_cases(&mut self, data: Data, first: &Pass) -> Result<(), Stop> {
        if first.sampled || self.demands.extra_limit == 0 {
            return Ok(());
        }
        let cases = oracle_of(self.plan).map_or(&[][..], Case::list);
        let mut spent = 0u64;
        for (number, case) in cases.iter().enumerate() {
            // The clean run estimates the cost of a case: the same launches on other values.
            spent = spent.saturating_add(cost(first));
            let limit = match number < FIRST_CASES {
                true => self.hard_limit(),
                false => self.demands.extra_limit,
            };
            if spent > limit {
                return Ok(());
            }
            self.hard_case(
                Data {
                    case: Some(*case),
                    ..data
                },
                first,
            )?;
        }
        Ok(())
    }

    fn hard_case(&mut self, data: Data, clean: &Pass) -> Result<(), Stop> {
        let Some(made) = self.references.hard(&self.keyed, data) else {
            return Ok(());
        };
        let pass = self.pass(data, Order::Natural)?;
        self.judge(data, &pass)?;
        // Comparing bits with the clean run requires deterministic results.
        if data.case != Some(Case::Contained) || !self.plan.gate.deterministic {
            self.forget(&pass);
            return Ok(());
        }
        let difference = self.first_difference(clean, &pass, &made.excused)?;
        self.forget(&pass);
        match difference {
            None => Ok(()),
            Some((argument, element)) => {
                let detail = format!(
                    "a NaN that element {element} of `{argument}` does not depend on changes it (problem {})",
                    self.plan.problem
                );
                Err(self.reject(Verdict::Incorrect, detail))
            }
        }
    }
}

/// Reports whether two buffers of an argument differ in a value: 0 equals −0, and padding of
/// structs is ignored.
fn differ(argument: &PlanArgument, one: &[u8], two: &[u8]) -> bool {
    let elements_differ = |element: Element, one: &[u8], two: &[u8]| {
        let size = element.size();
        let mut elements = one.chunks(size).zip(two.chunks(size));
        elements.any(|(a, b)| a != b && !both_zero(element, a, b))
    };
    match &argument.layout {
        None => elements_differ(argument.element, one, two),
        Some(layout) => layout.fields.iter().any(|field| {
            let (one, two) = (layout.column(field, one), layout.column(field, two));
            elements_differ(field.element, &one, &two)
        }),
    }
}

/// Reports whether both are a floating-point zero, of either sign.
fn both_zero(element: Element, one: &[u8], two: &[u8]) -> bool {
    element.is_float() && element.decode(one) == 0.0 && element.decode(two) == 0.0
}

/// Returns the lane instructions of a run; 0 if the device does not count.
pub(super) fn cost(pass: &Pass) -> u64 {
    pass.work
        .iter()
        .map(|work| work.lane_instructions)
        .fold(0, u64::saturating_add)
}
