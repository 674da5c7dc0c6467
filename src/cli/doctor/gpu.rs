//! What `doctor` says of GPUs.

use super::Finding;
use tuner_device::gpu;
use tuner_device::gpu::GpuFacts;
use tuner_device::gpu::nvml::{Health, Monitor, Process};
use tuner_device::worker::host::{Settings, Worker};
use tuner_engine::job;
use tuner_judge::timing::calibration::Calibration;
use tuner_kernel::compile::{Compiler, CompilerSettings};

/// A line for the driver, and several for each GPU.
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
    let (major, minor) = first.cuda;
    let version = first.driver.as_deref().unwrap_or("version unknown");
    let mut findings = vec![Finding::ok(
        "cuda driver",
        format!("{version}, supports CUDA up to {major}.{minor}"),
    )];
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

/// What the GPU can do at best, measured in a worker process as a run does.
fn calibration(facts: &GpuFacts) -> Finding {
    let measured = || -> Result<Calibration, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let compiler = Compiler::new(CompilerSettings::default()).map_err(|e| text(&e))?;
        let helpers = job::helpers(&compiler, &facts.arch()).map_err(|e| text(&e))?;
        let settings = Settings::for_gpu(facts.ordinal, helpers).map_err(|e| text(&e))?;
        Worker::new(settings).calibrate().map_err(|e| text(&e))
    };
    match measured() {
        Ok(rates) => {
            let show = |value: Option<f64>, unit: &str| {
                value.map_or("?".to_owned(), |value| format!("{value:.1} {unit}"))
            };
            Finding::ok(
                "gpu calibration",
                format!(
                    "cuda:{}: empty kernel {}, copy {}, cache {}, single {}, tensor {}, clock {} idle, {} loaded",
                    facts.ordinal,
                    show(rates.null_us, "µs"),
                    show(rates.dram_gb_s, "GB/s"),
                    show(rates.cache_gb_s, "GB/s"),
                    show(rates.single_tflops, "TFLOP/s"),
                    show(rates.tensor_tflops, "TFLOP/s"),
                    show(rates.idle_clock_mhz, "MHz"),
                    show(rates.loaded_clock_mhz, "MHz"),
                ),
            )
        }
        Err(why) => Finding::missing(
            "gpu calibration",
            format!(
                "cuda:{} cannot be used: {}",
                facts.ordinal,
                why.lines().next().unwrap_or_default()
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

/// Clocks and heat, and a warning for what makes times worse.
fn state(health: &Health) -> Vec<Finding> {
    let number = |value: Option<u32>| value.map_or("?".to_owned(), |value| value.to_string());
    let mut findings = vec![Finding::ok(
        "gpu state",
        format!(
            "{} of {} MHz, memory {} MHz, {} °C, {} W",
            number(health.clock_mhz),
            number(health.max_clock_mhz),
            number(health.memory_clock_mhz),
            number(health.temperature_c),
            health
                .power_w
                .map_or("?".to_owned(), |watts| format!("{watts:.0}")),
        ),
    )];
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
