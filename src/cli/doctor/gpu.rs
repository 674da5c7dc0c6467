//! GPU rows of `doctor`.

use super::Finding;
use crate::cli::CliError;
use crate::cli::device_test::bench;
use crate::cli::output::{number, or};
use tuner_device::gpu;
use tuner_device::gpu::GpuFacts;
use tuner_device::gpu::nvml::{Health, Monitor, Process};
use tuner_device::worker::host::Worker;
use tuner_kernel::compile::{Compiler, CompilerSettings};

/// Returns a row for the driver, and several for each GPU.
pub(super) fn findings() -> Vec<Finding> {
    let gpus = match gpu::list() {
        Ok(gpus) => gpus,
        Err(why) => {
            return vec![Finding::absent(
                "cuda driver",
                why.to_string(),
                "none needed for vgpu and replay; for a GPU install the NVIDIA driver",
            )];
        }
    };
    let Some(first) = gpus.first() else {
        return vec![Finding::absent(
            "gpu",
            "the driver sees none",
            "nvidia-smi -L",
        )];
    };
    let mut findings = vec![Finding::ok("cuda driver", driver(first))];
    for facts in &gpus {
        findings.push(Finding::ok("gpu", describe(facts)));
        match Monitor::open(&facts.uuid).health() {
            Some(health) => findings.extend(state(&health)),
            None => findings.push(Finding::absent(
                "gpu state",
                "libnvidia-ml.so.1 does not answer: clocks, heat and other processes are not watched",
                "install the driver's NVML library (it comes with nvidia-smi)",
            )),
        }
        findings.push(calibration(facts));
    }
    findings
}

/// Starts a worker process on the GPU, as runs do.
pub(super) fn worker(facts: &GpuFacts) -> Result<Worker, CliError> {
    bench::worker(facts, &Compiler::new(CompilerSettings::default())?)
}

/// Measures the GPU's peak rates in a worker process, as a run does.
fn calibration(facts: &GpuFacts) -> Finding {
    let measured = worker(facts).and_then(|mut worker| Ok(worker.calibrate()?));
    match measured {
        Ok(rates) => Finding::ok(
            "gpu calibration",
            format!(
                "cuda:{}: empty kernel {}, copy {}, cache {}, single {}, tensor {}, clock {} idle, {} loaded",
                facts.ordinal,
                figure(rates.null_us, "µs"),
                figure(rates.dram_gb_s, "GB/s"),
                figure(rates.cache_gb_s, "GB/s"),
                figure(rates.single_tflops, "TFLOP/s"),
                figure(rates.tensor_tflops, "TFLOP/s"),
                figure(rates.idle_clock_mhz, "MHz"),
                figure(rates.loaded_clock_mhz, "MHz"),
            ),
        ),
        Err(why) => Finding::missing(
            "gpu calibration",
            format!(
                "cuda:{} cannot be used: {}",
                facts.ordinal,
                why.to_string().lines().next().unwrap_or_default()
            ),
            "nvidia-smi shows whether another process holds the GPU",
        ),
    }
}

pub(super) fn describe(facts: &GpuFacts) -> String {
    let limits = facts.limits();
    let clock = facts
        .max_clock_mhz
        .map(|mhz| format!(", up to {mhz:.0} MHz"));
    let watchdog = if facts.watchdog {
        ", with a display's watchdog"
    } else {
        ""
    };
    format!(
        "cuda:{} {} ({}), {}, {} SMs{}, {} GiB{}, L2 {} MiB, shared memory {} bytes a block, {} a \
         multiprocessor{watchdog}",
        facts.ordinal,
        facts.name,
        facts.uuid,
        facts.arch(),
        limits.sm_count,
        clock.unwrap_or_default(),
        facts.memory_bytes >> 30,
        if facts.ecc { " with ECC" } else { "" },
        facts.l2_bytes >> 20,
        facts.shared_bytes_optin,
        facts.shared_bytes_per_sm,
    )
}

/// Formats the driver's version and its supported CUDA version.
pub(super) fn driver(facts: &GpuFacts) -> String {
    let (major, minor) = facts.cuda;
    let version = or("version unknown", facts.driver.as_ref());
    format!("{version}, supports CUDA up to {major}.{minor}")
}

/// Formats clocks and temperature.
pub(super) fn clocks(health: &Health) -> String {
    format!(
        "{} of {} MHz, memory {} MHz, {} °C",
        or("?", health.clock_mhz),
        or("?", health.max_clock_mhz),
        or("?", health.memory_clock_mhz),
        or("?", health.temperature_c)
    )
}

/// Formats a figure with its unit.
pub(super) fn figure(value: Option<f64>, unit: &str) -> String {
    or("?", value.map(|value| format!("{value:.1} {unit}")))
}

/// Returns rows for clocks and temperature, with warnings about worse timing.
fn state(health: &Health) -> Vec<Finding> {
    let watts = number("?", health.power_w, 0);
    let detail = format!("{}, {watts} W", clocks(health));
    let mut findings = vec![Finding::ok("gpu state", detail)];
    if !health.slowed.is_empty() {
        findings.push(Finding::absent(
            "gpu clocks",
            format!("held down by: {}", health.slowed.join(", ")),
            "let it cool, or raise its power limit; timing pauses while this lasts",
        ));
    }
    if !health.processes.is_empty() {
        let list: Vec<String> = health.processes.iter().map(Process::describe).collect();
        findings.push(Finding::absent(
            "gpu users",
            format!("other processes use it: {}", list.join(", ")),
            "end them before timing, or choose another GPU with --device cuda:N",
        ));
    }
    findings
}
