//! Tracing of the bytes that blocks access, by executing only the instructions that determine them.

use super::variables::{self, no_room};
use super::{VirtualGpu, hazard, launchable, refused};
use std::sync::Arc;
use tuner_core::judgement::Judgement;
use tuner_judge::session::{
    AccessTrace, BlockTrace, Run, Slot, SlotRange, StridedRange, TraceRequest, TraceResult,
};
use vgpu::{BufferId, BufferRange, Checks, HazardKind, Roots, Watch};

/// Implements [`tuner_judge::session::Session::trace`].
pub(super) fn trace(
    gpu: &mut VirtualGpu,
    run: &Run<'_>,
    request: TraceRequest<'_>,
) -> Result<TraceResult, Judgement> {
    let module = gpu.module(run.code, None)?;
    launchable(gpu.arch, &module, run)?;
    variables::restore_kept(gpu, run.code, &module)?;
    let loads = matches!(request, TraceRequest::Loads(_));
    let roots = match loads {
        true => Roots::Accesses,
        false => Roots::Stores,
    };
    let slice = gpu.module(run.code, Some(roots))?;
    if let Err(refusal) = slice.supported(&run.launch.entry) {
        let line = refusal.source_line.map(|line| format!(", {line}"));
        return Ok(TraceResult::Refused(format!(
            "`{}` at PTX line {}{}",
            refusal.instruction,
            refusal.line,
            line.unwrap_or_default()
        )));
    }
    // The slice is a separate module: its variables get the values of the kernel's.
    let values = module.variables(&mut gpu.memory);
    let values = values.map_err(|error| no_room(&error))?;
    let set = slice.set_variables(&mut gpu.memory, &values);
    set.map_err(|error| no_room(&error))?;
    let mut watch = Watch::new(&gpu.memory, loads);
    match request {
        TraceRequest::Stores(watched) => {
            for SlotRange { slot, bytes } in watched {
                watch.add(&gpu.memory, gpu.buffer(*slot), bytes);
            }
        }
        TraceRequest::AllStores => {
            for buffer in &gpu.buffers {
                watch_whole(&mut watch, gpu, *buffer);
            }
        }
        TraceRequest::Loads(slots) => {
            for slot in slots {
                watch_whole(&mut watch, gpu, gpu.buffer(*slot));
            }
        }
    }
    let watch = Arc::new(watch);
    let (mut launch, _) = gpu.launch(run);
    launch.checks = Checks {
        races: false,
        uninitialized: false,
        ..Checks::default()
    };
    launch.watch = Some(Arc::clone(&watch));
    let report = vgpu::launch(&slice, &mut gpu.memory, gpu.arch, &launch)
        .map_err(|error| refused(error.to_string()))?;
    if let Some(why) = unreliable(gpu, &watch, &report) {
        return Ok(TraceResult::Refused(why));
    }
    let slots = (0..gpu.buffers.len()).map(Slot);
    let of = |touched: fn(&Watch, BufferId) -> bool| {
        let found = slots
            .clone()
            .filter(|slot| touched(&watch, gpu.buffer(*slot)));
        found.collect::<Vec<Slot>>()
    };
    let blocks = report.accesses.iter().map(|accesses| BlockTrace {
        block: accesses.block.into(),
        writes: strided_ranges(gpu, &accesses.writes),
        reads: slot_ranges(gpu, &accesses.reads),
    });
    Ok(TraceResult::Done(AccessTrace {
        blocks: blocks.collect(),
        hazards: report.hazards.iter().map(hazard).collect(),
        lane_instructions: report.counters.lane_instructions,
        deciding: of(Watch::decided),
        written: of(Watch::was_written),
    }))
}

fn watch_whole(watch: &mut Watch, gpu: &VirtualGpu, buffer: BufferId) {
    let bytes = gpu.memory.len(buffer);
    watch.add(&gpu.memory, buffer, &(0..bytes));
}

/// Returns the reason why a trace may differ from the kernel's accesses, if it may.
fn unreliable(gpu: &VirtualGpu, watch: &Watch, report: &vgpu::LaunchReport) -> Option<String> {
    let access = [HazardKind::OutOfBounds, HazardKind::Misaligned];
    if let Some(other) = report.hazards.iter().find(|h| !access.contains(&h.kind)) {
        return Some(format!("the addresses alone: {}", other.detail));
    }
    if report.accesses.iter().any(|accesses| accesses.cut) {
        return Some("its accesses are too scattered".to_owned());
    }
    // A module variable that the kernel writes may determine the accesses of later blocks.
    let variable = |buffer: &BufferId| !gpu.buffers.contains(buffer);
    let mut variables = gpu.memory.buffers().filter(variable);
    variables
        .any(|buffer| watch.decided(buffer) && watch.was_written(buffer))
        .then(|| "a variable of the module decides which elements are written".to_owned())
}

fn slot_ranges(gpu: &VirtualGpu, ranges: &[BufferRange]) -> Vec<SlotRange> {
    let ranges = ranges.iter();
    ranges.filter_map(|range| slot_range(gpu, range)).collect()
}

fn strided_ranges(gpu: &VirtualGpu, ranges: &[vgpu::StridedRange]) -> Vec<StridedRange> {
    let of_slot = |range: &vgpu::StridedRange| {
        Some(StridedRange {
            first: slot_range(gpu, &range.first)?,
            stride: range.stride,
            count: range.count,
        })
    };
    ranges.iter().filter_map(of_slot).collect()
}

/// Returns the range of the gate's buffer; `None` for a variable of the module.
fn slot_range(gpu: &VirtualGpu, range: &BufferRange) -> Option<SlotRange> {
    let mut buffers = gpu.buffers.iter();
    let at = buffers.position(|buffer| *buffer == range.buffer)?;
    Some(SlotRange {
        slot: Slot(at),
        bytes: range.bytes.clone(),
    })
}
