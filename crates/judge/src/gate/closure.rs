//! Closure of a sample: the blocks whose results its blocks read.

use super::conflicts::can_order_blocks;
use super::coverage::{Costs, Coverage, Sample};
use super::verify::{Gate, Stop};
use super::writers::{by_slot, writing};
use crate::session::{AccessTrace, Blocks, Slot, SlotRange, TraceRequest, TraceResult};
use std::collections::BTreeSet;
use tuner_core::plan::Role;
use tuner_core::record::Verdict;

/// Multiple of the sample limit that interdependent blocks may cost.
const LINKED_FACTOR: u64 = 4;

pub(super) enum Closure {
    /// The sample with all its dependencies, and the lane instructions of these.
    Closed(Sample, u64),
    TooLarge,
    Unknown(String),
}

impl Gate<'_> {
    /// Returns the limit of lane instructions for interdependent blocks.
    pub(super) fn linked_limit(&self) -> u64 {
        self.demands.sample_limit.saturating_mul(LINKED_FACTOR)
    }

    /// Estimates the number of points with affordable dependencies from the dependencies of one. Points
    /// share dependencies, so twice as many are tried.
    pub(super) fn affordable_points(
        &mut self,
        coverage: &Coverage,
        slots: &[Option<Slot>],
        costs: &Costs<'_>,
    ) -> Result<usize, Stop> {
        let one = self.choose_blocks(coverage, 1, costs).into_sample(true);
        Ok(match self.close(coverage, one, slots, costs)? {
            Closure::Closed(_, cost) => {
                let affordable = 2 * self.linked_limit() / cost.max(1);
                usize::try_from(affordable).unwrap_or(usize::MAX).max(1)
            }
            Closure::TooLarge | Closure::Unknown(_) => 1,
        })
    }

    /// Adds the blocks whose results the sample reads.
    pub(super) fn close(
        &mut self,
        coverage: &Coverage,
        mut sample: Sample,
        slots: &[Option<Slot>],
        costs: &Costs<'_>,
    ) -> Result<Closure, Stop> {
        let mut spent = 0;
        let results = self.results(slots);
        let mut blocks: Vec<BTreeSet<u64>> = sample
            .blocks
            .iter()
            .map(|list| list.iter().copied().collect())
            .collect();
        // Starts at the last launch: blocks that it adds to earlier launches are closed when these are
        // reached.
        for reader in (0..blocks.len()).rev() {
            if blocks[reader].is_empty() {
                continue;
            }
            let list = Blocks::Some(blocks[reader].iter().copied().collect());
            let trace = match self.trace_some(reader, slots, list, TraceRequest::Loads(&results))? {
                TraceResult::Done(trace) => trace,
                TraceResult::Refused(why) => return Ok(Closure::Unknown(why)),
            };
            let read = merged_loads(&trace);
            if read.is_empty() {
                continue;
            }
            for writer in 0..=reader {
                let trace = match self.stores_to(coverage, writer, slots, &read)? {
                    TraceResult::Done(trace) => trace,
                    TraceResult::Refused(why) => return Ok(Closure::Unknown(why)),
                };
                let writing = trace.blocks.iter().filter(|block| !block.writes.is_empty());
                let mut writing = writing.map(|block| block.block);
                if writer < reader {
                    blocks[writer].extend(writing);
                } else if let Some(other) = writing.find(|at| !blocks[reader].contains(at)) {
                    self.reject_unordered(other)?;
                    return Ok(Closure::Unknown(
                        "blocks of one launch read one another's results".to_owned(),
                    ));
                }
            }
            let cost = blocks.iter().zip(costs.blocks);
            let cost = cost.map(|(list, each)| each.saturating_mul(list.len() as u64));
            spent = cost.fold(0, u64::saturating_add);
            if spent > self.linked_limit() {
                return Ok(Closure::TooLarge);
            }
        }
        sample.blocks = blocks.into_iter().map(Vec::from_iter).collect();
        Ok(Closure::Closed(sample, spent))
    }

    /// Rejects a candidate whose sampled blocks read what block `other` of the same launch stores,
    /// unless something may order them.
    fn reject_unordered(&mut self, other: u64) -> Result<(), Stop> {
        if can_order_blocks(&self.plan.code.ptx) {
            return Ok(());
        }
        let detail = format!(
            "race: blocks of one launch read what its block {other} stores, and nothing orders them \
             (problem {})",
            self.plan.problem
        );
        Err(self.reject(Verdict::Race, detail))
    }

    /// Returns the blocks of a launch that write any of these bytes, traced or from the coverage.
    fn stores_to(
        &mut self,
        coverage: &Coverage,
        launch: usize,
        slots: &[Option<Slot>],
        bytes: &[SlotRange],
    ) -> Result<TraceResult, Stop> {
        match coverage.stores.get(launch) {
            Some(Some(stores)) => Ok(TraceResult::Done(AccessTrace {
                blocks: writing(stores, bytes),
                ..AccessTrace::default()
            })),
            _ => self.trace_all(launch, slots, TraceRequest::Stores(bytes)),
        }
    }

    /// Returns the buffers that the kernel writes.
    fn results(&self, slots: &[Option<Slot>]) -> Vec<Slot> {
        let arguments = slots.iter().zip(&self.plan.arguments);
        let written = arguments.filter(|(_, argument)| argument.role != Role::Input);
        written.filter_map(|(slot, _)| *slot).collect()
    }
}

/// Returns the loads of all blocks of a trace, merged: neighbouring blocks share most of them.
fn merged_loads(trace: &AccessTrace) -> Vec<SlotRange> {
    let loads = by_slot(trace.blocks.iter().flat_map(|block| &block.reads)).into_iter();
    let merged = loads.flat_map(|(slot, ranges)| {
        let ranges = ranges.into_iter();
        ranges.map(move |bytes| SlotRange { slot, bytes })
    });
    merged.collect()
}
