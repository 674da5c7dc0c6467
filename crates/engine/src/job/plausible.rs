//! Best times that the metric of their search space makes impossible.

use crate::{KernelTask, Report};
use tuner_core::roofline::explain_impossible;

/// Returns a warning for each task whose best time is below the lower bound of its device.
pub(super) fn explain(tasks: &[KernelTask], report: &Report) -> Vec<String> {
    let pairs = tasks.iter().zip(&report.tasks);
    let warnings = pairs.filter_map(|(task, reported)| {
        let best = reported.best.as_ref()?;
        let arch = vgpu::arch::by_device_name(&reported.key.device)?;
        let spec = &task.timed.source().spec;
        // The work of a problem does not depend on the configuration.
        let bound = task.timed.bind(&spec.default_config())?;
        let (flops, bytes) = (bound.flops.unwrap_or(0.0), bound.bytes.unwrap_or(0.0));
        // Of both peaks the higher one: whether a kernel uses tensor cores is not known here.
        let why = explain_impossible(best.time_us, arch.least_us(flops, bytes, true))?;
        let (kernel, problem) = (&reported.key.kernel, &reported.key.problem);
        Some(format!("warning: {kernel} {problem}: the best is {why}"))
    });
    warnings.collect()
}
