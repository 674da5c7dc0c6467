//! `tuner doctor --device cuda:N`: a one-minute examination of a GPU under a run's conditions.

use super::Finding;
use super::gpu::{clocks, figure, worker};
use crate::cli::CliError;
use crate::cli::output::{number, or};
use crate::cli::profile::ncu;
use std::path::Path;
use std::time::Duration;
use tuner_device::DeviceSelector;
use tuner_device::gpu::examine::Examination;
use tuner_device::gpu::nvml::{Health, Monitor, Process};
use tuner_device::gpu::{self, GpuFacts, stand_in};

/// Duration of the load: throttling by heat or power shows after some seconds.
const LOAD_DURATION: Duration = Duration::from_secs(10);
/// Maximum time of an empty kernel in a graph, µs; 1 to 4 are typical.
const NULL_US_MAX: f64 = 5.0;
/// Minimum share of the rated memory bandwidth that a copy reaches on an unshared GPU.
const COPY_SHARE_MIN: f64 = 0.6;
/// Maximum spread of equal times under load that interleaving compensates.
const SPREAD_MAX: f64 = 0.03;

/// Examines the GPU; one row for each property that affects timing.
pub(super) fn findings(selector: &DeviceSelector) -> Result<Vec<Finding>, CliError> {
    let DeviceSelector::Cuda(ordinal) = selector else {
        refuse!(
            "`{selector}` is not a single GPU; type --device cuda:0, or `tuner doctor` for the rest"
        );
    };
    let facts = match gpu::find(*ordinal) {
        Ok(facts) => facts,
        Err(why) => {
            let fix =
                "install the NVIDIA driver, see `nvidia-smi -L`; --device vgpu:h100 needs no GPU";
            return Ok(vec![Finding::fail("driver", why.to_string(), fix)]);
        }
    };
    let health = Monitor::open(&facts.uuid).health();
    let mut findings = vec![
        driver(&facts),
        Finding::ok("gpu", super::gpu::describe(&facts)),
        nvml(health.as_ref()),
        mig(&facts, health.as_ref()),
        ecc(&facts, health.as_ref()),
        users(health.as_ref()),
        watchdog(&facts),
    ];
    match examined(&facts) {
        Ok(found) => findings.extend(behaviour(&facts, &found)),
        Err(why) => findings.push(Finding::fail(
            "worker",
            why.to_string().lines().next().unwrap_or_default(),
            "`tuner doctor` shows the compiler, `nvidia-smi` who holds the GPU",
        )),
    }
    findings.push(profiler());
    Ok(findings)
}

fn examined(facts: &GpuFacts) -> Result<Examination, CliError> {
    // The stand-in driver of the tests does not heat up.
    let load = stand_in::installed().map_or(LOAD_DURATION, |_| Duration::ZERO);
    Ok(worker(facts)?.examine(load)?)
}

fn driver(facts: &GpuFacts) -> Finding {
    let detail = super::gpu::driver(facts);
    if facts.cuda < (12, 4) {
        let fix = "update to a driver of CUDA 12.4 or newer: older ones do not tell what parameters a \
                   kernel takes, so wrong launches are found later";
        return Finding::warn("driver", detail, fix);
    }
    Finding::ok("driver", detail)
}

fn nvml(health: Option<&Health>) -> Finding {
    match health {
        Some(health) => Finding::ok("nvml", clocks(health)),
        None => Finding::warn(
            "nvml",
            "libnvidia-ml.so.1 does not answer: heat, power and other processes are not watched",
            "install the driver's NVML library (it comes with nvidia-smi)",
        ),
    }
}

fn mig(facts: &GpuFacts, health: Option<&Health>) -> Finding {
    if gpu::facts::is_mig(&facts.name) {
        return Finding::warn(
            "mig",
            format!("{} is a part of a GPU: {}", facts.name, facts.uuid),
            "its times hold for this instance alone; memory bandwidth and power are shared with the \
             other instances, so leave those idle",
        );
    }
    match health.and_then(|health| health.mig) {
        Some(true) => Finding::warn(
            "mig",
            "the GPU is in MIG mode, and no instance is chosen",
            "choose one: CUDA_VISIBLE_DEVICES=MIG-… (`nvidia-smi -L` names them)",
        ),
        Some(false) => Finding::ok("mig", "off"),
        None => Finding::ok("mig", "not reported by this GPU"),
    }
}

fn ecc(facts: &GpuFacts, health: Option<&Health>) -> Finding {
    let on = health.and_then(|health| health.ecc).unwrap_or(facts.ecc);
    Finding::ok("ecc", if on { "on" } else { "off" })
}

fn users(health: Option<&Health>) -> Finding {
    let processes = health.map_or(&[][..], |health| &health.processes);
    if processes.is_empty() {
        return Finding::ok("other processes", "none seen");
    }
    let list: Vec<String> = processes.iter().map(Process::describe).collect();
    Finding::warn(
        "other processes",
        list.join(", "),
        "end them before timing, or choose another GPU with --device cuda:N",
    )
}

fn watchdog(facts: &GpuFacts) -> Finding {
    if facts.watchdog {
        let fix = "use a GPU without a display: the watchdog ends kernels that take seconds";
        return Finding::warn("watchdog", "a display's watchdog is on", fix);
    }
    Finding::ok("watchdog", "off")
}

/// Evaluates the examination.
fn behaviour(facts: &GpuFacts, found: &Examination) -> Vec<Finding> {
    vec![
        probes(facts, found),
        floor(found),
        clock(found),
        power(found),
        heat(found),
        window(found),
    ]
}

fn probes(facts: &GpuFacts, found: &Examination) -> Finding {
    let rates = &found.calibration;
    let promised = facts.promise().dram_gb_s;
    let detail = format!(
        "copy {} (promised {}), cache {}, single {}, tensor {}",
        figure(rates.dram_gb_s, "GB/s"),
        figure(promised, "GB/s"),
        figure(rates.cache_gb_s, "GB/s"),
        figure(rates.single_tflops, "TFLOP/s"),
        figure(rates.tensor_tflops, "TFLOP/s"),
    );
    let share = rates.dram_gb_s.zip(promised).map(|(got, all)| got / all);
    match share {
        Some(share) if share < COPY_SHARE_MIN => Finding::warn(
            "probes",
            format!("{detail}: {:.0} % of the promised bandwidth", 100.0 * share),
            "see who else uses the GPU, and that its memory clock is not lowered (nvidia-smi -q -d CLOCK)",
        ),
        _ => Finding::ok("probes", detail),
    }
}

fn floor(found: &Examination) -> Finding {
    let [middle, high] = found.null_us;
    let detail = format!("an empty kernel takes {middle:.2} µs in a graph ({high:.2} at 95 %)");
    if middle > NULL_US_MAX {
        let fix =
            "the GPU is shared or its clock is held down; see the rows of clock and processes";
        return Finding::warn("floors", detail, fix);
    }
    Finding::ok("floors", detail)
}

fn clock(found: &Examination) -> Finding {
    let Some(clock) = found.clock_mhz else {
        return Finding::warn(
            "clock",
            "its clock cannot be stamped: samples at a low clock are not noticed",
            "nothing to be done here; NVML's reasons are watched instead",
        );
    };
    let idle = found.calibration.idle_clock_mhz;
    let detail = format!(
        "{} MHz idle, {:.0} at the beginning of a load, then {:.0} ({:.0} to {:.0}) for {:.0} s; equal \
         times spread by {:.1} %",
        number("?", idle, 0),
        clock.first,
        clock.median,
        clock.lowest,
        clock.highest,
        found.load_s,
        100.0 * found.spread,
    );
    // Runs discard samples taken at less than 75 % of the reference clock.
    if found.spread > SPREAD_MAX || clock.lowest < 0.75 * clock.median {
        let fix = format!(
            "times stay comparable by interleaving; steadier ones: nvidia-smi -lgc {0:.0},{0:.0} (as \
             root; -rgc undoes it)",
            clock.lowest
        );
        return Finding::warn("clock", detail, fix);
    }
    Finding::ok("clock", detail)
}

fn power(found: &Examination) -> Finding {
    let Some(health) = &found.loaded else {
        return Finding::warn("power", "unknown without NVML", "see the row of nvml");
    };
    let detail = format!(
        "{} of {} W under load",
        number("?", health.power_w, 0),
        number("?", health.power_limit_w, 0)
    );
    if health.power_capped {
        return Finding::warn(
            "power",
            format!("{detail}: the limit holds the clock down"),
            "nothing must be done: times are those at this power; `nvidia-smi -pl WATTS` (as root) \
             raises the limit where the card allows it",
        );
    }
    Finding::ok("power", detail)
}

fn heat(found: &Examination) -> Finding {
    let Some(health) = &found.loaded else {
        return Finding::warn("heat", "unknown without NVML", "see the row of nvml");
    };
    let degrees = or("?", health.temperature_c);
    if !health.slowed.is_empty() {
        return Finding::fail(
            "heat",
            format!("{degrees} °C, slowed down by: {}", health.slowed.join(", ")),
            "see to its cooling and power supply: samples are discarded while this lasts",
        );
    }
    Finding::ok("heat", format!("{degrees} °C under load"))
}

fn window(found: &Examination) -> Finding {
    let detail = format!(
        "the host queues a sample in {:.0} µs, the GPU waits for {:.0}",
        found.queued_us, found.window_us
    );
    if found.late {
        let fix = "the host is overloaded: lower --jobs, or leave it more cores";
        return Finding::fail("spin window", format!("{detail}: too late"), fix);
    }
    if found.queued_us > found.window_us / 2.0 {
        let fix = "the wait doubles by itself when the host is late; fewer --jobs leave more room";
        return Finding::warn("spin window", detail, fix);
    }
    Finding::ok("spin window", detail)
}

/// Checks Nsight Compute and this user's access to counters.
fn profiler() -> Finding {
    let Some(program) = ncu::find(None) else {
        let fix = "install Nsight Compute where `tuner profile` is wanted; a run needs it not";
        return Finding::warn("ncu", "not on PATH nor in /usr/local/cuda/bin", fix);
    };
    let version = ncu::version(&program);
    let detail = format!("{version} at {}", program.display());
    let parameters = std::fs::read_to_string("/proc/driver/nvidia/params").unwrap_or_default();
    // The permission is a parameter of the driver's module; without it, ncu fails with ERR_NVGPUCTRPERM at
    // its first kernel.
    let guarded = parameters
        .lines()
        .any(|line| line.trim() == "RmProfilingAdminOnly: 1");
    if guarded && !is_root() {
        return Finding::warn(
            "ncu",
            format!("{detail}; this user may not read counters"),
            "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        );
    }
    Finding::ok("ncu", detail)
}

/// Reports whether root owns this process's `/proc` entry.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // The standard library has no `geteuid`, and a call of the C library would be unsafe code.
    Path::new("/proc/self")
        .metadata()
        .is_ok_and(|own| own.uid() == 0)
}

#[cfg(test)]
mod tests;
