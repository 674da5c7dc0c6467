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
        let found = points.iter().zip(&watched);
        let found = found.flat_map(|(point, range)| with_writers(plan, point, range, &traces));
        let found = found.map(|(point, mut writers)| PointWriters {
            elements: point.elements,
            blocks: writers.swap_remove(0),
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

/// A part of a point, with the blocks of each launch that write it.
pub(super) type PartWriters = (Point, Vec<Vec<u64>>);

/// Pairs a point with the blocks of each launch that write its first element, and shortens it to the part
/// that the same blocks write. Other elements may be written by other blocks. Parts of an in-out buffer
/// that no block writes follow: they keep their values, which may be wrong.
pub(super) fn with_writers(
    plan: &Plan,
    point: &Point,
    watched: &SlotRange,
    traces: &[Vec<BlockTrace>],
) -> Vec<PartWriters> {
    let Some(argument) = plan.compared().nth(point.output) else {
        return Vec::new();
    };
    let size = argument.element.size() as u64;
    let mut parts: Vec<PartWriters> = Vec::new();
    let mut rest = watched.clone();
    while rest.bytes.start < rest.bytes.end {
        let (end, writers) = first_part(&rest, size, traces);
        let length = ((end - rest.bytes.start) / size).max(1);
        let start = rest.bytes.start / size;
        if parts.is_empty() || writers.iter().all(Vec::is_empty) {
            let elements = start..start + length;
            let output = point.output;
            parts.push((Point { output, elements }, writers));
        }
        if !argument.role.is_updated() {
            break;
        }
        rest.bytes.start += length * size;
    }
    parts
}

/// Returns the blocks of each launch that write the first element of `size` bytes, and the end of the
/// bytes that the same blocks write.
fn first_part(watched: &SlotRange, size: u64, traces: &[Vec<BlockTrace>]) -> (u64, Vec<Vec<u64>>) {
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
                // Beyond this block's store the point may be written by another block.
                end = end.min(write.end);
                writers.push(block.block);
            } else {
                end = end.min(write.start);
            }
        }
    }
    (end, writers)
}

/// Returns the blocks that write any of these bytes, with the stores that do so.
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
