//! Launches: a driver's rejections, the run on the virtual GPU, faults and hazards.

use std::sync::Arc;
use std::time::Instant;

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::{CHECK_ONLY, COOPERATIVE};
use vgpu::{Arg, Checks, Counters, Hazard, HazardKind, Launch, LaunchReport, Module, Stop, Watch};

use crate::device::{Device, Function};
use crate::predicted::Prediction;
use crate::sass_only::{self, Outcome};
use crate::streams::{Access, Conflict};
use crate::summary::coordinates;
use crate::time::launch_us;

/// Warp instructions after which a block is considered endless.
const BLOCK_BUDGET: u64 = 1 << 36;
/// Maximum number of hazards of one launch that are kept separately.
const MAX_HAZARDS: usize = 64;

/// A launch as requested by the program.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) stream: u64,
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) flags: u32,
    pub(crate) cluster: [u32; 3],
    /// The parameter block.
    pub(crate) parameters: Vec<u8>,
    /// Launches of kernels by kernels that led to this one.
    pub(crate) nesting: u32,
}

impl Device {
    /// Runs a launch; returns the text that the kernel printed. A rejected launch is an immediate error; a
    /// fault is the error of every later request.
    pub(crate) fn launch(&mut self, request: &Request) -> Result<Vec<u8>, Code> {
        self.check()?;
        self.check_stream(request.stream)?;
        let function = self.function(request.function)?.clone();
        if let Err(refusal) = self.refuse(request, &function) {
            self.report_refusal(&function, &refusal.text);
            return Err(refusal.code);
        }
        if request.flags & CHECK_ONLY != 0 {
            return Ok(Vec::new());
        }
        // Before the capture, which stores the memory as the host left it.
        self.take_shared();
        let pending = self.begin_capture(request, &function);
        // Only captures and unordered streams need the accesses, whose recording slows a launch down.
        let watched = pending.is_some() || self.streams.can_conflict();
        let watch = watched.then(|| self.watch());
        let launch = self.prepare(request, &function, watch);
        let code = Arc::clone(&self.module(function.module)?.code);
        let began = Instant::now();
        let predicted = self.predicted_us(request, &function, &code, &launch);
        let loaded = self.module(function.module)?;
        if let Some(cubin) = loaded.cubin.clone().filter(|_| loaded.sass_only) {
            self.run_sass(request, &function, &code, (&cubin, predicted), &launch)?;
            self.report_progress(&function, began);
            return Ok(Vec::new());
        }
        if let Some(us) = predicted.filter(|_| self.options.prediction == Prediction::ModelOnly) {
            return Ok(self.skip(request, &function, us));
        }
        let run = self.publish_during(&function.plain_name, |device| {
            vgpu::launch(&code, &mut device.memory, device.options.arch, &launch)
        });
        let report = run.map_err(|error| {
            let text = error.to_string();
            let code = match error {
                vgpu::LaunchError::Unsupported(_) => {
                    self.report_unsupported(&function, &text);
                    return errors::NOT_SUPPORTED;
                }
                vgpu::LaunchError::Memory(_) => errors::OUT_OF_MEMORY,
                _ => errors::INVALID_VALUE,
            };
            self.report_refusal(&function, &text);
            code
        })?;
        self.report_progress(&function, began);
        self.give_shared();
        // The limit of work ended it, so its accesses are incomplete.
        let cut = report.stop == Some(Stop::LaneBudget) && self.mirror.number().is_some();
        if let Some((pending, watch)) = pending.zip(launch.watch.as_deref()).filter(|_| !cut) {
            self.take_results(&function);
            self.finish_capture(pending, request, &function, &report, watch);
        }
        self.finish(request, &function, &report, predicted);
        let mut text = report.output;
        text.extend(self.run_device_work(request, &function, report.operations));
        Ok(text)
    }

    /// Runs a kernel without PTX.
    fn run_sass(
        &mut self,
        request: &Request,
        function: &Function,
        code: &Module,
        (cubin, predicted): (&[u8], Option<f64>),
        launch: &Launch,
    ) -> Result<(), Code> {
        let name = &function.shown_name;
        self.summary.add_note(format!(
            "hazards of {name}: not checked (no PTX); faults are reported"
        ));
        let run = self.publish_during(name, |device| {
            sass_only::run(cubin, code, &mut device.memory, launch)
        });
        let outcome = run.map_err(|error| {
            self.report_unsupported(function, &error.to_string());
            errors::NOT_SUPPORTED
        })?;
        self.give_shared();
        match outcome {
            Outcome::Ran(counters) => {
                self.mark_written();
                let bound = || launch_us(self.options.arch, &counters);
                let time_us = predicted.unwrap_or_else(bound);
                self.summary.add_launch(&function.name, &counters, time_us);
                self.order(
                    request.stream,
                    &format!("kernel {name}"),
                    time_us,
                    Vec::new(),
                );
            }
            Outcome::Faulted(detail) => {
                report_line(&format!("fault in {name}: {detail}"));
                self.summary.add_fault(&function.name, detail);
                self.sticky = errors::ILLEGAL_ADDRESS;
            }
        }
        Ok(())
    }

    fn report_progress(&self, function: &Function, began: Instant) {
        if let Some(limit) = self.options.progress
            && began.elapsed() >= limit
        {
            let seconds = began.elapsed().as_secs_f64();
            let at = self.started.elapsed().as_secs_f64();
            report_line(&format!(
                "{at:.0} s: {} took {seconds:.1} s on the host",
                function.shown_name
            ));
        }
    }

    fn watch(&self) -> Arc<Watch> {
        let mut watch = Watch::new(&self.memory, true).with_separate_atomics();
        for buffer in self.memory.buffers() {
            let bytes = self.memory.len(buffer);
            watch.add(&self.memory, buffer, &(0..bytes));
        }
        Arc::new(watch)
    }

    /// Reports whether the user selected a kernel by its name.
    pub(crate) fn is_selected(&self, symbol: &str) -> bool {
        let named = |part: &String| symbol.contains(part.as_str());
        self.options.kernels.is_empty() || self.options.kernels.iter().any(named)
    }

    fn prepare(&self, request: &Request, function: &Function, watch: Option<Arc<Watch>>) -> Launch {
        let args = function.info.parameters.iter().map(|parameter| {
            let range = parameter.offset as usize..(parameter.offset + parameter.bytes) as usize;
            Arg::Bytes(request.parameters.get(range).unwrap_or_default().to_vec())
        });
        let hazards = self.options.hazards && self.is_selected(&function.name);
        Launch {
            dynamic_shared_bytes: request.shared_bytes,
            instruction_budget: BLOCK_BUDGET,
            threads: self.options.threads,
            checks: Checks {
                races: hazards,
                uninitialized: hazards,
                max_hazards: MAX_HAZARDS,
                ..Checks::default()
            },
            cluster: request.cluster(),
            cooperative: request.flags & COOPERATIVE != 0,
            lane_budget: self.remaining_work(),
            stack_bytes: self.stack_bytes,
            nesting: request.nesting,
            watch,
            ..Launch::new(&function.name, request.grid, request.block, args.collect())
        }
    }

    /// Counts a launch with a predicted time that does not run.
    fn skip(&mut self, request: &Request, function: &Function, time_us: f64) -> Vec<u8> {
        let blocks = request.grid.iter().map(|extent| u64::from(*extent));
        let counters = Counters {
            blocks: blocks.product(),
            ..Counters::default()
        };
        self.summary.add_launch(&function.name, &counters, time_us);
        self.summary
            .add_note("--predict-only: no launch ran, results are not the program's".to_owned());
        let name = format!("kernel {}", function.shown_name);
        self.order(request.stream, &name, time_us, Vec::new());
        Vec::new()
    }

    /// Adds a launch to the summary and to its stream.
    fn finish(
        &mut self,
        request: &Request,
        function: &Function,
        report: &LaunchReport,
        predicted: Option<f64>,
    ) {
        let bound = || launch_us(self.options.arch, &report.counters);
        let time_us = predicted.unwrap_or_else(bound);
        self.summary
            .add_launch(&function.name, &report.counters, time_us);
        // A launch ended by the user's own limit is not a hazard.
        let limited = report.stop == Some(Stop::LaneBudget);
        for hazard in &report.hazards {
            let by_limit = limited && hazard.kind == HazardKind::Timeout;
            if by_limit || follows_race(hazard, &report.hazards) {
                continue;
            }
            let reason = match waits_for_memory(hazard) {
                true if !report.operations.is_empty() => Some(WAITS_FOR_CHILD),
                true if self.sees_host_memory(request, function) => Some(WAITS_FOR_HOST),
                _ => None,
            };
            match reason {
                Some(reason) => self.report_hazard(function, &with_reason(hazard, reason)),
                None => self.report_hazard(function, hazard),
            }
        }
        for assertion in &report.assertions {
            report_line(&assertion.to_string());
        }
        if report.output_dropped > 0 {
            let bytes = report.output_dropped;
            self.summary.add_note(format!(
                "{bytes} bytes of device printf are lost: its buffer holds 1 MiB"
            ));
        }
        if let Some(code) = self.fault(function, report) {
            self.sticky = code;
        }
        let accesses = self.accesses(report);
        self.order(
            request.stream,
            &format!("kernel {}", function.shown_name),
            time_us,
            accesses,
        );
    }

    /// Reports whether a launch can reach memory that the host shares: by an argument, or as a managed
    /// variable.
    fn sees_host_memory(&self, request: &Request, function: &Function) -> bool {
        let words = function.info.parameters.iter().flat_map(|parameter| {
            let range = parameter.offset as usize..(parameter.offset + parameter.bytes) as usize;
            let bytes = request.parameters.get(range).unwrap_or_default();
            bytes.chunks_exact(8)
        });
        let mut addresses =
            words.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        addresses.any(|address| self.is_shared(address)) || self.has_managed_variable()
    }

    /// Reports a launch that did not run, on standard error and in the summary.
    fn report_refusal(&mut self, function: &Function, why: &str) {
        let note = format!("launch of {} refused: {why}", function.shown_name);
        if self.summary.add_note(note.clone()) {
            report_line(&note);
        }
    }

    /// Reports a launch that did not run because the virtual GPU lacks a feature.
    fn report_unsupported(&mut self, function: &Function, why: &str) {
        if self.summary.add_unsupported_launch(&function.name, why) {
            report_line(&format!(
                "launch of {} did not run: {why}",
                function.shown_name
            ));
        }
    }

    /// Returns the error that the program sees after a launch; `None` if a GPU would continue.
    fn fault(&mut self, function: &Function, report: &LaunchReport) -> Option<Code> {
        match report.stop {
            Some(Stop::LaneBudget) => {
                let limit = self.options.lane_budget.unwrap_or(0);
                self.summary.add_note(format!(
                    "stopped in {}: more than {limit} lane instructions; see --max-work",
                    function.shown_name
                ));
                return Some(errors::LAUNCH_TIMEOUT);
            }
            Some(Stop::Assertion) => return Some(errors::ASSERT),
            Some(Stop::StackOverflow) => return Some(errors::HARDWARE_STACK_ERROR),
            Some(Stop::IllegalOperand | Stop::Breakpoint) => {
                return Some(errors::ILLEGAL_INSTRUCTION);
            }
            _ => {}
        }
        report
            .hazards
            .iter()
            .find_map(|hazard| fault_code(hazard.kind))
    }

    /// Returns the lane instructions that the program may still execute.
    fn remaining_work(&self) -> Option<u64> {
        let limit = self.options.lane_budget?;
        let kernels = self.summary.kernels.iter();
        let done = kernels.map(|kernel| kernel.lane_instructions).sum();
        Some(limit.saturating_sub(done))
    }

    fn report_hazard(&mut self, function: &Function, hazard: &Hazard) {
        if self.summary.add_hazard(&function.name, hazard) {
            let place = coordinates(hazard.block, hazard.thread);
            report_line(&format!(
                "{} in {} at {place}: {}",
                hazard.kind.name(),
                function.shown_name,
                hazard.detail
            ));
        }
    }

    pub(crate) fn report_conflict(&mut self, conflict: &Conflict) {
        let verb = |writes| if writes { "writes" } else { "reads" };
        let place = match self.find(conflict.address) {
            Ok(found) => format!(
                "byte {} of the allocation at {:#x}",
                conflict.address - found.address,
                found.address
            ),
            Err(_) => format!("address {:#x}", conflict.address),
        };
        let detail = format!(
            "{} (stream {:#x}) {} and {} (stream {:#x}) {} {place} without an order between them",
            conflict.earlier.name,
            conflict.earlier.stream,
            verb(conflict.earlier_writes),
            conflict.later.name,
            conflict.later.stream,
            verb(conflict.later_writes),
        );
        let names = [&*conflict.earlier.name, &*conflict.later.name];
        if self.summary.add_unordered(names, detail.clone()) {
            report_line(&format!("unordered: {detail}"));
        }
    }

    /// Returns the bytes that a launch accessed, merged over its blocks.
    fn accesses(&self, report: &LaunchReport) -> Vec<Access> {
        let mut out = Vec::new();
        for (write, atomic) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut found: Vec<vgpu::BufferRange> = Vec::new();
            for block in &report.accesses {
                match atomic {
                    true => found.extend(block.atomic_ranges(write)),
                    false => found.extend(block.plain_ranges(write)),
                }
            }
            let mut ranges: Vec<std::ops::Range<u64>> = found
                .into_iter()
                .map(|range| {
                    let base = self.memory.address(range.buffer);
                    base + range.bytes.start..base + range.bytes.end
                })
                .collect();
            ranges.sort_unstable_by_key(|range| range.start);
            let mut merged: Vec<std::ops::Range<u64>> = Vec::new();
            for range in ranges {
                match merged.last_mut() {
                    Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                    _ => merged.push(range),
                }
            }
            out.extend(merged.into_iter().map(|bytes| Access {
                bytes,
                write,
                atomic,
            }));
        }
        out
    }
}

impl Request {
    /// Returns the clusters that the launch specifies.
    pub(crate) fn cluster(&self) -> Option<[u32; 3]> {
        (self.cluster != [1; 3]).then_some(self.cluster)
    }
}

/// Reports whether threads repeat a loop that reads memory.
fn waits_for_memory(hazard: &Hazard) -> bool {
    hazard.kind == HazardKind::Deadlock && hazard.detail.starts_with("threads wait in a loop")
}

/// The value may be one that the host would write on a GPU.
const WAITS_FOR_HOST: &str = "The kernel can read memory that the host shares (pinned, mapped or managed): the virtual \
     device runs a launch to its end before the host continues, so no kernel can wait for the host";
/// The value may be one that a kernel would write that this one launched.
const WAITS_FOR_CHILD: &str = "The kernel launched kernels: CUDA does not promise that they run before it ends, and \
     the virtual device runs them afterwards";

/// Adds a reason for an endless wait.
fn with_reason(hazard: &Hazard, reason: &str) -> Hazard {
    let detail = format!("{}. {reason}", hazard.detail);
    Hazard {
        detail,
        ..hazard.clone()
    }
}

/// Reports whether a read of unwritten memory is at a place that races with the write: the value is missing
/// because the order is.
fn follows_race(hazard: &Hazard, all: &[Hazard]) -> bool {
    let races = |other: &&Hazard| {
        other.kind == HazardKind::Race
            && other.space == hazard.space
            && [&other.source, &other.other].contains(&&hazard.source)
    };
    hazard.kind == HazardKind::Uninitialized
        && hazard.source.is_some()
        && all.iter().any(|other| races(&other))
}

/// Returns the error that a program sees after a hazard; `None` if a GPU would continue.
pub(crate) fn fault_code(kind: HazardKind) -> Option<Code> {
    match kind {
        HazardKind::OutOfBounds => Some(errors::ILLEGAL_ADDRESS),
        HazardKind::Misaligned => Some(errors::MISALIGNED_ADDRESS),
        HazardKind::Timeout => Some(errors::LAUNCH_TIMEOUT),
        HazardKind::Crashed | HazardKind::Deadlock => Some(errors::LAUNCH_FAILURE),
        HazardKind::BarrierDivergence
        | HazardKind::Race
        | HazardKind::Uninitialized
        | HazardKind::ModuleState => None,
    }
}

/// Prints a line on standard error, next to the program's own.
pub(crate) fn report_line(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "tuner exec: {text}");
}
