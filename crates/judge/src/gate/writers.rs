//! The blocks of a launch that write the points of a sample.

use super::adversarial::Data;
use super::naive::{Kernel, compared};
use super::points::{Point, choose_points};
use super::ranges::union;
use super::verify::{Gate, Stop};
use crate::session::{BlockTrace, Blocks, Slot, SlotRange, TraceRequest, TraceResult};
use std::collections::BTreeMap;
use std::ops::Range;
use tuner_core::plan::{Plan, Role};

/// The blocks that write a point.
#[derive(Debug, Clone)]
pub(super) struct PointWriters {
    pub(super) elements: Range<u64>,
    pub(super) blocks: Vec<u64>,
}

impl Gate<'_> {
    /// Traces a reference kernel for the blocks that write each point of one output; empty if it
    /// cannot be traced.
    pub(super) fn trace_reference(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        output: usize,
    ) -> Result<Vec<PointWriters>, Stop> {
        let plan = self.plan;
        let slots = self.prepare(data, kernel.code)?;
        let points: Vec<Point> = choose_points(plan, data.seed);
        let points: Vec<Point> = points.into_iter().filter(|p| p.output == output).collect();
        let watched = watched_points(plan, &points, &slots);
        let request = TraceRequest::Stores(&watched);
        let traced = self.trace_launch(kernel.code, kernel.launch, &slots, Blocks::All, request)?;
        let TraceResult::Done(trace) = traced else {
            return Ok(Vec::new());
        };
        let reliable = |slot: &Slot| {
            let index = slots.iter().position(|own| own.as_ref() == Some(slot));
            index.is_some_and(|index| plan.arguments[index].role == Role::Input)
        };
        // Addresses from computed data would be wrong in a trace, which computes none.
        if !trace.deciding.iter().all(reliable) {
            return Ok(Vec::new());
        }
        let traces = [trace.blocks];
        let found = points.iter().zip(&watched).map(|(point, range)| {
            let (point, mut writers) = with_writers(plan, point, range, &traces);
            PointWriters {
                elements: point.elements,
                blocks: writers.swap_remove(0),
            }
        });
        Ok(found.collect())
    }
}

/// Returns the bytes of the points.
pub(super) fn watched_points(
    plan: &Plan,
    points: &[Point],
    slots: &[Option<Slot>],
) -> Vec<SlotRange> {
    let outputs: Vec<(Option<Slot>, u64)> = compared(plan)
        .map(|(index, argument)| (slots[index], argument.element.size() as u64))
        .collect();
    let bytes = |point: &Point| {
        let (slot, size) = outputs[point.output];
        Some(SlotRange {
            slot: slot?,
            bytes: point.elements.start * size..point.elements.end * size,
        })
    };
    points.iter().filter_map(bytes).collect()
}

/// Pairs each point with the blocks of each launch that write its first element, and shortens it to
/// the part that the same blocks write: each of its elements may belong to another block.
pub(super) fn with_writers(
    plan: &Plan,
    point: &Point,
    watched: &SlotRange,
    traces: &[Vec<BlockTrace>],
) -> (Point, Vec<Vec<u64>>) {
    let size = plan.compared().nth(point.output);
    let size = size.map_or(1, |argument| argument.element.size() as u64);
    let first = watched.bytes.start..watched.bytes.start + size;
    let mut end = watched.bytes.end;
    let mut writers = vec![Vec::new(); traces.len()];
    for (writers, trace) in writers.iter_mut().zip(traces) {
        for block in trace {
            let here = block.writes.iter();
            let here = here.filter(|write| write.first.slot == watched.slot);
            let here = here.filter_map(|write| write.ending_after(first.start));
            let Some(write) = here.min_by_key(|write| write.start) else {
                continue;
            };
            if write.start < first.end {
                // Beyond this block's store the point may belong to another block.
                end = end.min(write.end);
                writers.push(block.block);
            } else {
                end = end.min(write.start);
            }
        }
    }
    let length = (end - watched.bytes.start) / size;
    let elements = point.elements.start..point.elements.start + length.max(1);
    let output = point.output;
    (Point { output, elements }, writers)
}

/// Returns the blocks that write any of these bytes, with those of their stores that do.
pub(super) fn writing(stores: &[BlockTrace], bytes: &[SlotRange]) -> Vec<BlockTrace> {
    let sorted = by_slot(bytes);
    let hits = |block: &BlockTrace| {
        let own = block.writes.iter().filter(|write| {
            let wanted = sorted.get(&write.first.slot);
            wanted.is_some_and(|ranges| write.overlaps(ranges))
        });
        let writes: Vec<_> = own.cloned().collect();
        (!writes.is_empty()).then(|| BlockTrace {
            block: block.block,
            writes,
            reads: Vec::new(),
        })
    };
    stores.iter().filter_map(hits).collect()
}

/// Groups ranges by their buffer, ascending and disjoint.
pub(super) fn by_slot<'a>(
    ranges: impl IntoIterator<Item = &'a SlotRange>,
) -> BTreeMap<Slot, Vec<Range<u64>>> {
    let mut groups: BTreeMap<Slot, Vec<Range<u64>>> = BTreeMap::new();
    for SlotRange { slot, bytes } in ranges {
        groups.entry(*slot).or_default().push(bytes.clone());
    }
    for group in groups.values_mut() {
        *group = union(group, &[]);
    }
    groups
}
