//! Coverage of a problem that is too large to run whole.
//!
//! All blocks of a launch are traced: only the computation of control flow and store addresses is executed.
//! An element that no block writes is a hole. The blocks that write the chosen elements ([`super::points`])
//! form the sample, together with the blocks of the same and earlier launches whose results they read.

use super::adversarial::Data;
use super::closure::Closure;
use super::conflicts::{can_order_blocks, first_conflict};
use super::judge::hole_detail;
use super::naive::{compared, without_padding};
use super::points::{Point, choose_points};
use super::ranges::union;
use super::sampling::BLOCKS_MAX;
use super::verify::{Gate, Stop};
use super::writers::{watched_points, with_writers, writing};
use crate::session::{
    AccessTrace, BlockTrace, Blocks, Order, Run, Slot, TraceRequest, TraceResult,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use tuner_core::plan::{Code, Plan, PlanLaunch, PlanReference, Role};
use tuner_core::record::Verdict;

/// Maximum lane instructions for tracing one launch: a few seconds of one core.
const TRACE_LIMIT: u64 = 1 << 32;

/// Maximum memory for a list of all stores of a launch, bytes, estimated from one block.
const STORES_LIMIT: u64 = 1 << 29;

/// Blocks that represent a problem.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    /// Blocks of each launch, ascending.
    pub(super) blocks: Vec<Vec<u64>>,
    /// Elements of each output that can be compared: the sample contains all blocks that write them
    /// and all blocks that those depend on.
    pub(super) elements: Vec<Vec<Range<u64>>>,
    /// Elements of an in-out buffer that no block writes.
    pub(super) untouched: Vec<Vec<Range<u64>>>,
    /// Blocks depend on one another, so only `elements` can be compared, not everything that the
    /// sample writes.
    pub(super) linked: bool,
    /// Reason why nothing can be compared.
    pub(super) uncomparable: Option<String>,
}

/// Launches of a problem with the cost of one block of each, lane instructions.
pub(super) struct Costs<'a> {
    pub(super) blocks: &'a [u64],
    /// A block updates global memory atomically.
    pub(super) atomics: bool,
}

/// The traces of all launches over all blocks.
#[derive(Debug)]
pub(super) struct Coverage {
    points: Vec<Point>,
    /// Blocks of each launch that write a point, for each point.
    writers: Vec<Vec<Vec<u64>>>,
    /// Stores of all blocks of each launch; `None` if there are too many to list, or if no block
    /// can read what another stores.
    pub(super) stores: Vec<Option<Vec<BlockTrace>>>,
    /// Reason why an unwritten element may go unnoticed.
    unknown: Option<String>,
}

impl Coverage {
    /// Returns the memory that it takes, bytes.
    pub(super) fn bytes(&self) -> u64 {
        let blocks = self.stores.iter().flatten().flatten();
        let stores: usize = blocks.map(BlockTrace::bytes).sum();
        let writers = self.writers.iter().flatten().map(Vec::len).sum::<usize>();
        (stores + writers * size_of::<u64>()) as u64
    }
}

impl Gate<'_> {
    /// Traces the problem and chooses the blocks of its sample.
    ///
    /// # Errors
    /// An element that is never written, an access outside a buffer, a store to an input.
    pub(super) fn draw_sample(
        &mut self,
        data: Data,
        slots: &[Option<Slot>],
        costs: &Costs<'_>,
    ) -> Result<Sample, Stop> {
        // The block that measured the cost has written to the buffers.
        self.refresh(data, slots)?;
        let linked = self.plan.launches.len() > 1 || costs.atomics;
        let coverage = self.coverage(data, slots, linked)?;
        if let Some(why) = &coverage.unknown {
            return Ok(Sample {
                uncomparable: Some(why.clone()),
                ..Sample::default()
            });
        }
        if !linked {
            let chosen = self.choose_blocks(&coverage, coverage.points.len(), costs);
            let sample = chosen.into_sample(linked);
            if reads_results(self.plan) {
                // The closure rejects blocks that read what another block stores.
                self.close(&coverage, sample.clone(), slots, costs)?;
            }
            return Ok(sample);
        }
        self.closed_sample(&coverage, slots, costs)
    }

    /// Chooses as many points as are affordable with all their dependencies.
    fn closed_sample(
        &mut self,
        coverage: &Coverage,
        slots: &[Option<Slot>],
        costs: &Costs<'_>,
    ) -> Result<Sample, Stop> {
        let mut most = coverage.points.len();
        let mut why = "each element depends on too many blocks".to_owned();
        let mut estimated = false;
        while most > 0 {
            let chosen = self.choose_blocks(coverage, most, costs);
            if chosen.cost > self.linked_limit() {
                // A single element depends on too many blocks, as in a sum over the whole input.
                break;
            }
            let points = chosen.points;
            match self.close(coverage, chosen.into_sample(true), slots, costs)? {
                Closure::Closed(sample, _) => return Ok(sample),
                // Fewer points have fewer dependencies; halving ends after a few steps.
                Closure::TooLarge => {
                    most = points / 2;
                    if most > 1 && !estimated {
                        estimated = true;
                        most = most.min(self.affordable_points(coverage, slots, costs)?);
                    }
                }
                Closure::Unknown(reason) => {
                    why = reason;
                    break;
                }
            }
        }
        Ok(Sample {
            uncomparable: Some(why),
            ..Sample::default()
        })
    }

    /// Returns the coverage of the problem. A candidate is traced once for all levels.
    fn coverage(
        &mut self,
        data: Data,
        slots: &[Option<Slot>],
        linked: bool,
    ) -> Result<Arc<Coverage>, Stop> {
        let key = (self.keyed.candidate(data), linked);
        if let Some(known) = self.references.coverage(&key) {
            return Ok(known);
        }
        let coverage = Arc::new(self.cover(data, slots, linked)?);
        // An unknown coverage is not cached: a level with a larger limit may succeed. Nor is one with a
        // note, which every verdict must repeat.
        if coverage.unknown.is_none() && self.note.is_none() {
            self.references.keep_coverage(key, &coverage);
        }
        Ok(coverage)
    }

    /// Restores outputs, scratch and the module's variables to their state before the first launch,
    /// after blocks or traces wrote to them.
    pub(super) fn refresh(&mut self, data: Data, slots: &[Option<Slot>]) -> Result<(), Stop> {
        let initial = self.references.inputs(&self.keyed, data);
        for (index, slot) in slots.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            let argument = &self.plan.arguments[index];
            match &initial[index] {
                None => self.session.poison(slot, argument.element.poison())?,
                Some(bytes) if argument.role.is_updated() || self.session.is_overwritten(slot) => {
                    self.session.upload_input(slot, bytes)?;
                }
                Some(_) => {}
            }
        }
        Ok(self.session.restore_variables(&self.plan.code)?)
    }

    /// Traces every launch over all of its blocks.
    fn cover(
        &mut self,
        data: Data,
        slots: &[Option<Slot>],
        linked: bool,
    ) -> Result<Coverage, Stop> {
        let plan = self.plan;
        let points = choose_points(plan, data.seed);
        let watched = watched_points(plan, &points, slots);
        let (mut traces, mut stores) = (Vec::new(), Vec::new());
        let mut unknown = None;
        let mut written: BTreeSet<Slot> = BTreeSet::new();
        for number in 0..plan.launches.len() {
            // The list of all stores shows two blocks that store to one byte, and later which blocks wrote
            // the bytes that a sampled block reads.
            let mut traced = self.trace_all(number, slots, TraceRequest::AllStores)?;
            let listed = matches!(traced, TraceResult::Done(_));
            if !listed {
                traced = self.trace_all(number, slots, TraceRequest::Stores(&watched))?;
            }
            match traced {
                TraceResult::Done(mut trace) => {
                    // A trace of addresses from uncomputed data would be wrong, not just
                    // incomplete.
                    if let Some(name) = self.undecided(&trace, slots, &written) {
                        unknown.get_or_insert(format!(
                            "what the kernel computes in `{name}` decides which elements it writes"
                        ));
                        break;
                    }
                    written.extend(&trace.written);
                    self.check_trace(&trace, slots)?;
                    let all = std::mem::take(&mut trace.blocks);
                    self.check_conflicts(&all, slots)?;
                    traces.push(writing(&all, &watched));
                    let kept = listed && (linked || reads_results(plan));
                    stores.push(kept.then_some(all));
                }
                TraceResult::Refused(why) => {
                    unknown.get_or_insert(format!(
                        "which elements the kernel writes cannot be traced: {why}"
                    ));
                    break;
                }
            }
        }
        // Only after the last launch: an earlier one may leave holes for it.
        self.check_holes(slots, unknown.as_ref())?;
        let points = points.iter().zip(&watched);
        let (points, writers) = points
            .flat_map(|(point, range)| with_writers(plan, point, range, &traces))
            .unzip();
        Ok(Coverage {
            points,
            writers,
            stores,
            unknown,
        })
    }

    /// Traces a launch over all blocks if the cost permits.
    pub(super) fn trace_all(
        &mut self,
        number: usize,
        slots: &[Option<Slot>],
        request: TraceRequest<'_>,
    ) -> Result<TraceResult, Stop> {
        let blocks = self.plan.launches[number].blocks();
        // One block estimates the cost of the trace before all blocks are traced.
        let one = Blocks::Some(vec![super::sampling::first(blocks)]);
        let first = self.trace_some(number, slots, one, request)?;
        if let TraceResult::Done(trace) = &first
            && trace.lane_instructions.saturating_mul(blocks) > TRACE_LIMIT
        {
            let each = trace.lane_instructions;
            return Ok(TraceResult::Refused(format!(
                "its addresses alone take {blocks} blocks of {each} lane instructions"
            )));
        }
        if let (TraceResult::Done(trace), TraceRequest::AllStores) = (&first, request) {
            let bytes: usize = trace.blocks.iter().map(BlockTrace::bytes).sum();
            if (bytes as u64).saturating_mul(blocks) > STORES_LIMIT {
                return Ok(TraceResult::Refused("it has too many stores".to_owned()));
            }
        }
        match first {
            TraceResult::Done(_) => self.trace_some(number, slots, Blocks::All, request),
            refused => Ok(refused),
        }
    }

    pub(super) fn trace_some(
        &mut self,
        number: usize,
        slots: &[Option<Slot>],
        blocks: Blocks,
        request: TraceRequest<'_>,
    ) -> Result<TraceResult, Stop> {
        let plan = self.plan;
        self.trace_launch(&plan.code, &plan.launches[number], slots, blocks, request)
    }

    pub(super) fn trace_launch(
        &mut self,
        code: &Code,
        launch: &PlanLaunch,
        slots: &[Option<Slot>],
        blocks: Blocks,
        request: TraceRequest<'_>,
    ) -> Result<TraceResult, Stop> {
        Ok(self.session.trace(
            &Run {
                code,
                launch,
                plan: self.plan,
                slots,
                blocks,
                order: Order::Natural,
                budget: Some(self.demands.block_limit),
            },
            request,
        )?)
    }

    /// Returns the buffer, if any, whose contents determine a trace but differ from those of the run: the
    /// kernel computes them, and a trace does not compute data.
    fn undecided(
        &self,
        trace: &AccessTrace,
        slots: &[Option<Slot>],
        written: &BTreeSet<Slot>,
    ) -> Option<String> {
        let mut deciding = trace.deciding.iter();
        let slot = deciding.find(|slot| {
            let index = slots.iter().position(|own| own.as_ref() == Some(*slot));
            let role = index.map(|index| self.plan.arguments[index].role);
            let given = role.is_some_and(Role::is_filled);
            !given || trace.written.contains(slot) || written.contains(slot)
        })?;
        let index = slots.iter().position(|own| own.as_ref() == Some(slot))?;
        Some(self.plan.arguments[index].name.clone())
    }

    /// Rejects a candidate of which any block accesses memory outside its buffers or writes to its
    /// inputs.
    fn check_trace(&mut self, trace: &AccessTrace, slots: &[Option<Slot>]) -> Result<(), Stop> {
        self.hazards.extend(trace.hazards.iter().cloned());
        self.fail_on_hazards()?;
        for (index, argument) in self.plan.arguments.iter().enumerate() {
            let wrote = slots[index].is_some_and(|slot| trace.written.contains(&slot));
            if argument.role == Role::Input && wrote {
                let detail = format!("the kernel writes to its input `{}`", argument.name);
                return Err(self.reject(Verdict::Incorrect, detail));
            }
        }
        Ok(())
    }

    /// Rejects a candidate of which two blocks of one launch store to one byte, unless something may
    /// order them.
    fn check_conflicts(
        &mut self,
        stores: &[BlockTrace],
        slots: &[Option<Slot>],
    ) -> Result<(), Stop> {
        let ptx = &self.plan.code.ptx;
        // A trace has no values, so it cannot show whether the stores are of equal values.
        if self.plan.gate.same_value_writes || can_order_blocks(ptx) {
            return Ok(());
        }
        let Some(conflict) = first_conflict(stores) else {
            return Ok(());
        };
        let Some(index) = slots.iter().position(|slot| *slot == Some(conflict.slot)) else {
            return Ok(());
        };
        let argument = &self.plan.arguments[index];
        let [one, two] = conflict.blocks;
        let element = conflict.byte / argument.element.size() as u64;
        let detail = format!(
            "race: blocks {one} and {two} both store to element {element} of `{}`, and nothing \
             orders them (problem {})",
            argument.name, self.plan.problem
        );
        Err(self.reject(Verdict::Race, detail))
    }

    /// Rejects a candidate that leaves elements unwritten. A launch without a trace may fill holes.
    fn check_holes(
        &mut self,
        slots: &[Option<Slot>],
        unknown: Option<&String>,
    ) -> Result<(), Stop> {
        if unknown.is_some() {
            return Ok(());
        }
        let plan = self.plan;
        for (index, argument) in compared(plan).filter(|(_, a)| !a.role.is_filled()) {
            let holes = slots[index].and_then(|slot| self.session.unwritten(slot));
            let holes = without_padding(argument, holes.unwrap_or_default());
            let Some(detail) = hole_detail(plan, argument, &holes) else {
                continue;
            };
            if plan.reference == PlanReference::None {
                self.note.get_or_insert(detail);
            } else {
                return Err(self.reject(Verdict::Incorrect, detail));
            }
        }
        Ok(())
    }

    /// Chooses blocks that write the first `most` points, within the demands.
    pub(super) fn choose_blocks(
        &self,
        coverage: &Coverage,
        most: usize,
        costs: &Costs<'_>,
    ) -> BlockChoice {
        let launches = self.plan.launches.len();
        let mut chosen = BlockChoice {
            blocks: vec![Vec::new(); launches],
            elements: vec![Vec::new(); self.plan.compared().count()],
            untouched: vec![Vec::new(); self.plan.compared().count()],
            points: 0,
            cost: 0,
        };
        let limit = self.demands.sample_limit;
        // An element written by several blocks needs all of them.
        let most_blocks = BLOCKS_MAX * if launches > 1 || costs.atomics { 8 } else { 1 };
        for (point, writers) in coverage.points.iter().zip(&coverage.writers) {
            if chosen.points == most {
                break;
            }
            let new: Vec<Vec<u64>> = (writers.iter().zip(&chosen.blocks))
                .map(|(all, old)| missing(all, old))
                .collect();
            let cost = new.iter().zip(costs.blocks);
            let cost = cost.map(|(blocks, each)| each.saturating_mul(blocks.len() as u64));
            let cost = cost.fold(0, u64::saturating_add);
            let full = (new.iter().zip(&chosen.blocks))
                .any(|(new, old)| !new.is_empty() && (old.len() + new.len()) as u64 > most_blocks);
            let over = chosen.cost.saturating_add(cost) > limit || full;
            if over && chosen.points > 0 {
                continue;
            }
            chosen.cost = chosen.cost.saturating_add(cost);
            for (blocks, new) in chosen.blocks.iter_mut().zip(new) {
                blocks.extend(new);
                blocks.sort_unstable();
            }
            let elements = std::slice::from_ref(&point.elements);
            let known = &mut chosen.elements[point.output];
            *known = union(known, elements);
            if writers.iter().all(Vec::is_empty) {
                let untouched = &mut chosen.untouched[point.output];
                *untouched = union(untouched, elements);
            }
            chosen.points += 1;
        }
        chosen
    }
}

/// Reports whether a kernel may legally read a buffer that it writes: only in-out buffers have defined
/// contents.
fn reads_results(plan: &Plan) -> bool {
    plan.arguments
        .iter()
        .any(|argument| argument.role.is_updated())
}

/// Returns the blocks of `all` that `old` lacks; both are sorted.
fn missing(all: &[u64], old: &[u64]) -> Vec<u64> {
    let mut old = old.iter().peekable();
    let mut lacks = |block: &&u64| {
        while old.next_if(|known| known < block).is_some() {}
        old.peek() != Some(block)
    };
    all.iter().filter(|block| lacks(block)).copied().collect()
}

pub(super) struct BlockChoice {
    /// Sorted, for each launch.
    blocks: Vec<Vec<u64>>,
    elements: Vec<Vec<Range<u64>>>,
    untouched: Vec<Vec<Range<u64>>>,
    /// Number of points.
    points: usize,
    /// Lane instructions of the blocks.
    cost: u64,
}

impl BlockChoice {
    pub(super) fn into_sample(self, linked: bool) -> Sample {
        Sample {
            blocks: self.blocks,
            elements: self.elements,
            untouched: self.untouched,
            linked,
            uncomparable: None,
        }
    }
}
