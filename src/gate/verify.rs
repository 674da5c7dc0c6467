//! The gate: runs a candidate on data it has never seen and makes a [`Verified`], or says why not.
//!
//! Every run starts from poisoned outputs and scratch; afterwards each output element must have
//! been written, lie within its tolerance, and be the same bits in a repeated run, and each input
//! must be untouched. Where a problem is too large to run whole, a sample of its blocks runs and
//! what they wrote is judged.

use super::Verified;
use super::compare::{self, Comparison};
use super::element::Element;
use super::oracle::OracleError;
use super::references::References;
use super::sampling::{Selection, thin};
use crate::device::plan::{Plan, PlanReference, Role};
use crate::device::session::{Blocks, Fault, Order, Run, RunReport, Session, Slot, Work};
use crate::record::{Hazard, Verdict};
use std::ops::Range;
use std::sync::Arc;

/// What the gate does for one candidate on one problem.
#[derive(Debug, Clone)]
pub struct Demands {
    /// Seeds of the input data; each is a run of its own.
    pub seeds: Vec<u64>,
    /// Extra runs with randomised warp order, on the first seed.
    pub schedules: u32,
    /// Lane instructions up to which a problem is run whole; larger ones are sampled where the
    /// device can leave blocks out.
    pub whole_limit: u64,
    /// Lane instructions a sample may cost.
    pub sample_limit: u64,
}

impl Default for Demands {
    fn default() -> Self {
        Self {
            seeds: vec![0x5eed],
            schedules: 0,
            whole_limit: 200_000_000,
            sample_limit: 50_000_000,
        }
    }
}

impl Demands {
    /// Whether a problem is small enough to be run whole without looking at the cost of a block:
    /// threads bound it from below.
    fn surely_whole(&self, plan: &Plan) -> bool {
        let threads = plan
            .launches
            .iter()
            .map(|l| l.blocks().saturating_mul(l.threads()));
        threads.fold(0, u64::saturating_add) <= self.whole_limit >> 12
    }
}

/// Evidence that a candidate passed. Only this module makes one for kernels that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Largest error divided by its tolerance; `None` where nothing could be compared.
    pub max_error: Option<f64>,
    /// Work of each launch of the plan, scaled to the whole grid.
    pub work: Vec<Work>,
    /// Only some blocks ran.
    pub sampled: bool,
}

/// Why a candidate did not pass: the verdict, with everything that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// The first verdict by precedence.
    pub verdict: Verdict,
    /// Why, for people.
    pub detail: String,
    /// All hazards.
    pub hazards: Vec<Hazard>,
    /// Largest error divided by its tolerance, where something was compared.
    pub max_error: Option<f64>,
}

impl From<Fault> for Rejection {
    fn from(fault: Fault) -> Self {
        Self {
            verdict: fault.verdict,
            detail: fault.detail,
            hazards: Vec::new(),
            max_error: None,
        }
    }
}

/// Judges one candidate on one problem.
///
/// # Errors
/// [`OracleError`] when the space names an oracle that does not fit its arguments: the user's
/// mistake, not the candidate's. A candidate that fails is the `Ok(Err(_))` case.
pub fn verify(
    session: &mut dyn Session,
    plan: &Plan,
    demands: &Demands,
    references: &mut References,
) -> Result<Result<(Verified, Evidence), Rejection>, OracleError> {
    let mut gate = Gate {
        session,
        plan,
        demands,
        references,
        comparison: None,
        hazards: Vec::new(),
    };
    match gate.all() {
        Ok(evidence) => Ok(Ok((Verified::checked(), evidence))),
        Err(Stop::Rejected(rejection)) => Ok(Err(rejection)),
        Err(Stop::Oracle(error)) => Err(error),
    }
}

enum Stop {
    Rejected(Rejection),
    Oracle(OracleError),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Rejected(fault.into())
    }
}

/// What one pass over the launches left.
struct Pass {
    work: Vec<Work>,
    outputs: Vec<(usize, Vec<u8>)>,
    slots: Vec<Option<Slot>>,
    sampled: bool,
    /// Sampled outputs can be compared: no other block contributes to what these blocks wrote.
    comparable: bool,
}

struct Gate<'a> {
    session: &'a mut dyn Session,
    plan: &'a Plan,
    demands: &'a Demands,
    references: &'a mut References,
    comparison: Option<Comparison>,
    hazards: Vec<Hazard>,
}

impl Gate<'_> {
    fn all(&mut self) -> Result<Evidence, Stop> {
        let mut evidence: Option<Evidence> = None;
        for (number, seed) in self.demands.seeds.clone().into_iter().enumerate() {
            let pass = self.pass(seed, Order::Natural)?;
            self.judge(seed, &pass)?;
            if number == 0 {
                self.repeat(seed, &pass)?;
                evidence = Some(Evidence {
                    max_error: None,
                    work: pass.work,
                    sampled: pass.sampled,
                });
            }
        }
        let max_error = self.comparison.as_ref().map(|c| c.max_error);
        let nothing = Evidence {
            max_error: None,
            work: Vec::new(),
            sampled: false,
        };
        Ok(Evidence {
            max_error,
            ..evidence.unwrap_or(nothing)
        })
    }

    /// Further runs on the same data: bitwise equal, and clean in any order of warps.
    fn repeat(&mut self, seed: u64, first: &Pass) -> Result<(), Stop> {
        let mut orders: Vec<Order> = (0..self.demands.schedules)
            .map(|n| Order::Random(seed ^ u64::from(n + 1)))
            .collect();
        if orders.is_empty() && self.plan.gate.deterministic && !first.sampled {
            orders.push(Order::Random(seed ^ 1));
        }
        for order in orders {
            let again = self.pass(seed, order)?;
            if !self.plan.gate.deterministic {
                self.judge(seed, &again)?;
                continue;
            }
            for ((index, one), (_, two)) in first.outputs.iter().zip(&again.outputs) {
                if let Some(byte) = one.iter().zip(two).position(|(a, b)| a != b) {
                    let argument = &self.plan.arguments[*index];
                    let size = Element::from_name(&argument.element).map_or(1, Element::size);
                    return Err(self.reject(
                        Verdict::Nondeterministic,
                        format!(
                            "two runs on the same input differ, first at element {} of `{}`; say `gate: {{ deterministic: false }}` if the order of atomics is meant to show",
                            byte / size,
                            argument.name
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    fn reject(&self, verdict: Verdict, detail: String) -> Stop {
        Stop::Rejected(Rejection {
            verdict,
            detail,
            hazards: self.hazards.clone(),
            max_error: self.comparison.as_ref().map(|c| c.max_error),
        })
    }

    /// Fresh buffers: inputs filled, outputs and scratch poisoned.
    fn prepare(&mut self, seed: u64) -> Result<Vec<Option<Slot>>, Stop> {
        let inputs = self.references.inputs(self.plan, seed);
        self.session.reset();
        let mut slots = Vec::with_capacity(self.plan.arguments.len());
        for (argument, input) in self.plan.arguments.iter().zip(inputs.iter()) {
            if argument.role == Role::Scalar {
                slots.push(None);
                continue;
            }
            let element = Element::from_name(&argument.element).unwrap_or(Element::U8);
            let bytes = argument.count().saturating_mul(element.size() as u64);
            let slot = self.session.alloc(&argument.name, bytes)?;
            match input {
                Some(data) => self.session.upload(slot, data)?,
                None => self.session.poison(slot, element.poison())?,
            }
            slots.push(Some(slot));
        }
        Ok(slots)
    }

    /// Runs all launches once and collects hazards and outputs.
    fn pass(&mut self, seed: u64, order: Order) -> Result<Pass, Stop> {
        let mut slots = self.prepare(seed)?;
        let selection = self.select(seed, &slots)?;
        if selection.probed {
            slots = self.prepare(seed)?;
        }
        let mut work = Vec::new();
        for index in 0..self.plan.launches.len() {
            let blocks = selection.blocks[index].clone();
            let report = self.launch(index, &slots, blocks, order)?;
            work.push(report.work);
            let stopped = report.stopped;
            self.collect(report, &selection);
            if stopped {
                break;
            }
        }
        if let Some(worst) = self.hazards.iter().min_by_key(|hazard| hazard.kind) {
            let place = match (&worst.file, worst.line) {
                (Some(file), Some(line)) => format!("{file}:{line}: "),
                _ => String::new(),
            };
            let detail = format!("{place}{}", worst.detail);
            return Err(self.reject(worst.kind, detail));
        }
        let mut outputs = Vec::new();
        for (index, argument) in self.plan.arguments.iter().enumerate() {
            if argument.role == Role::Output
                && let Some(slot) = slots[index]
            {
                outputs.push((index, self.session.download(slot)?));
            }
        }
        let atomics = work
            .iter()
            .any(|w| w.counters.class(vgpu::counters::Class::Atomic) > 0);
        Ok(Pass {
            work,
            outputs,
            slots,
            sampled: selection.sampled(),
            comparable: !selection.sampled() || (!atomics && self.plan.launches.len() == 1),
        })
    }

    fn launch(
        &mut self,
        index: usize,
        slots: &[Option<Slot>],
        blocks: Blocks,
        order: Order,
    ) -> Result<RunReport, Stop> {
        let plan = self.plan;
        let launch = &plan.launches[index];
        Ok(self.session.run(&Run {
            code: &plan.code,
            launch,
            plan,
            slots,
            blocks,
            order,
        })?)
    }

    /// All blocks, or a sample of each launch when the whole would take too long.
    fn select(&mut self, seed: u64, slots: &[Option<Slot>]) -> Result<Selection, Stop> {
        let plan = self.plan;
        if !self.session.can_sample() || self.demands.surely_whole(plan) {
            return Ok(Selection::whole(plan));
        }
        let mut costs = Vec::new();
        for (index, launch) in plan.launches.iter().enumerate() {
            let middle = Blocks::Some(vec![launch.blocks() / 2]);
            let report = self.launch(index, slots, middle, Order::Natural)?;
            costs.push(report.work.counters.lane_instructions.max(1));
        }
        Ok(Selection::by_cost(plan, self.demands, seed, &costs))
    }

    /// Keeps what a run found. In a sample, a block that waits for one that was left out is no
    /// fault of the kernel.
    fn collect(&mut self, report: RunReport, selection: &Selection) {
        let foreign = |kind: Verdict| {
            let linked = report.work.counters.class(vgpu::counters::Class::Atomic) > 0
                || selection.blocks.len() > 1;
            selection.sampled()
                && linked
                && matches!(
                    kind,
                    Verdict::Deadlock | Verdict::Timeout | Verdict::Uninitialized
                )
        };
        self.hazards.extend(
            report
                .hazards
                .into_iter()
                .filter(|hazard| !foreign(hazard.kind)),
        );
    }

    /// Written, untouched, right.
    fn judge(&mut self, seed: u64, pass: &Pass) -> Result<(), Stop> {
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
