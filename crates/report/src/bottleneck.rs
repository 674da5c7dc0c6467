//! Bottlenecks of the winner, and the parameter that affects each.

use super::analysis::{counter, share};
use super::model::{Subject, WinnerProfile, number};
use tuner_core::record::value_of;
use tuner_core::roofline::IMPOSSIBLE_FACTOR;
use vgpu::Arch;

/// A limit of the winner.
pub(super) struct Limit {
    pub(super) name: &'static str,
    /// The figures that show it.
    pub(super) evidence: String,
    /// Share of the time that it costs or occupies.
    weight: f64,
    /// The counter that measures it.
    counter: &'static str,
    /// Common words in names and descriptions of parameters that affect it.
    words: &'static [&'static str],
}

/// Minimum candidates with a counter before it is attributed to a parameter.
const MIN_COUNTERS: usize = 8;
/// Minimum share of a counter that a parameter must explain to be named.
const EXPLAINED_MIN: f64 = 0.1;

const WIDTH: &[&str] = &[
    "vec",
    "width",
    "elements",
    "load",
    "transpose",
    "interleave",
];
const HIDING: &[&str] = &[
    "stage", "prefetch", "pipeline", "unroll", "warp", "blocks", "flight",
];
const TILE: &[&str] = &[
    "block",
    "tile",
    "bm",
    "bn",
    "bk",
    "split",
    "rows",
    "persistent",
    "group",
];
const PADDING: &[&str] = &["pad", "swizzle", "layout", "transpose"];
const PRESSURE: &[&str] = &[
    "min_blocks",
    "unroll",
    "register",
    "thread_m",
    "thread_n",
    "tile",
];
const INSTRUCTIONS: &[&str] = &["unroll", "vec", "exp", "tile", "thread"];

/// Returns the three with the largest weight; fewer if fewer are known.
pub(super) fn main_three(subject: &Subject, arch: Option<&Arch>) -> Vec<Limit> {
    let (Some(best), Some(profile)) = (subject.best(), &subject.profile) else {
        return Vec::new();
    };
    let mut limits = if profile.measured {
        by_profiler(profile)
    } else {
        let seconds = best.time_us_p50 * 1e-6;
        arch.map_or_else(Vec::new, |arch| {
            by_counters(subject, profile, arch, seconds)
        })
    };
    // Removing less than one per cent of the time is not worth a change.
    limits.retain(|limit| limit.weight >= 0.01);
    limits.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    limits.truncate(3);
    limits
}

/// Reference quantities for the counters.
struct Reading<'a> {
    profile: &'a WinnerProfile,
    arch: &'a Arch,
    seconds: f64,
    /// Clock cycles of all multiprocessors during the kernel.
    device_cycles: f64,
    bound: &'a str,
}

impl Reading<'_> {
    fn get(&self, key: &str) -> f64 {
        number(&self.profile.metrics, key).unwrap_or(0.0)
    }

    /// Builds the limit of a unit that is busy for a part of the time; the one named by the model has the
    /// largest weight.
    fn unit(
        &self,
        name: &'static str,
        key: &str,
        part: f64,
        counter: &'static str,
        words: &'static [&'static str],
        evidence: String,
    ) -> Limit {
        let named = self.bound == key;
        Limit {
            name,
            evidence,
            weight: if named { part.max(0.5) } else { part },
            counter,
            words,
        }
    }
}

/// Computes the utilisation of each unit and the losses from the virtual GPU's counters.
fn by_counters(
    subject: &Subject,
    profile: &WinnerProfile,
    arch: &Arch,
    seconds: f64,
) -> Vec<Limit> {
    let cycles = seconds * f64::from(arch.boost_mhz) * 1e6;
    let bound = profile
        .metrics
        .get("bound")
        .and_then(|bound| bound.as_str());
    let reading = Reading {
        profile,
        arch,
        seconds,
        device_cycles: cycles * f64::from(arch.sm_count),
        bound: bound.unwrap_or(""),
    };
    let kernel = subject.kernel.as_ref();
    let mut limits = traffic(
        &reading,
        kernel.and_then(|kernel| kernel.bytes).unwrap_or(0.0),
    );
    limits.extend(arithmetic(&reading));
    let occupancy = reading.get("occupancy");
    let idle = (1.0 - occupancy) * 0.5;
    limits.push(Limit {
        name: "latency that too few warps hide",
        evidence: format!(
            "{:.0} % of the warps that fit are resident",
            100.0 * occupancy
        ),
        weight: if reading.bound == "latency" {
            idle.max(0.5)
        } else {
            idle * 0.3
        },
        counter: "occupancy",
        words: HIDING,
    });
    limits.extend(losses(&reading));
    limits
}

/// Returns the limits of memory, the L2 cache and shared memory.
fn traffic(reading: &Reading<'_>, bytes: f64) -> Vec<Limit> {
    let Reading {
        arch,
        seconds,
        device_cycles,
        ..
    } = reading;
    let dram = bytes / (arch.dram_gb_s * 1e9) / seconds;
    let (dram, moved) = if arch.least_us(0.0, bytes, false) > IMPOSSIBLE_FACTOR * seconds * 1e6 {
        // More than the device can move: the metric is wrong, and its bytes show nothing.
        let why = "the bytes of `metric` are more than it can move in this time";
        (0.0, why.to_owned())
    } else if dram > IMPOSSIBLE_FACTOR {
        (0.0, "part of the data stays in the L2 cache".to_owned())
    } else {
        let rate = bytes / seconds * 1e-9;
        let (peak, percent) = (arch.dram_gb_s, 100.0 * dram);
        let text = format!("{rate:.0} of {peak:.0} GB/s at least ({percent:.0} % of the time)");
        (dram, text)
    };
    let sectors = reading.get("global_load_sectors") + reading.get("global_store_sectors");
    let l2 = sectors * 32.0 / (64.0 * device_cycles);
    let wavefronts = reading.get("shared_wavefronts");
    let shared = wavefronts / device_cycles;
    vec![
        reading.unit(
            "memory bandwidth",
            "dram",
            dram,
            "global_load_sectors",
            TILE,
            moved,
        ),
        reading.unit(
            "traffic to the L2 cache",
            "l2",
            l2,
            "global_load_sectors",
            TILE,
            format!(
                "{:.1} MB in sectors ({:.0} % of what 64 bytes a clock and multiprocessor allow)",
                sectors * 32e-6,
                100.0 * l2
            ),
        ),
        reading.unit(
            "shared-memory bandwidth",
            "shared",
            shared,
            "shared_wavefronts",
            TILE,
            format!(
                "{:.3} million wavefronts ({:.0} % of the clocks)",
                wavefronts * 1e-6,
                100.0 * shared
            ),
        ),
    ]
}

/// Returns the limits of issue slots, tensor cores and single precision.
fn arithmetic(reading: &Reading<'_>) -> Vec<Limit> {
    let warps = reading.get("warp_instructions");
    let issued = reading.arch.issue_share(warps, reading.device_cycles);
    let tensor = reading.get("tensor_flops") / reading.arch.peak_tensor_f16() / reading.seconds;
    let fp32 = reading.get("fp32_flops") / reading.arch.peak_fp32() / reading.seconds;
    vec![
        reading.unit(
            "instruction issue",
            "issue",
            issued,
            "warp_instructions",
            INSTRUCTIONS,
            format!(
                "{:.2} million warp instructions ({:.0} % of the issue slots)",
                warps * 1e-6,
                100.0 * issued
            ),
        ),
        reading.unit(
            "tensor cores",
            "tensor",
            tensor,
            "tensor_flops",
            TILE,
            format!("{:.0} % of the peak of f16", 100.0 * tensor),
        ),
        reading.unit(
            "single-precision arithmetic",
            "fp32",
            fp32,
            "fp32_flops",
            TILE,
            format!("{:.0} % of the peak", 100.0 * fp32),
        ),
    ]
}

/// Returns the limits of avoidable work: conflicts, half-used sectors, spills, a partial last wave.
fn losses(reading: &Reading<'_>) -> Vec<Limit> {
    let Reading {
        arch,
        seconds,
        device_cycles,
        ..
    } = reading;
    let get = |key: &str| reading.get(key);
    let part = |some: f64, all: f64| if all > 0.0 { 100.0 * some / all } else { 0.0 };
    let conflicts = get("bank_conflicts");
    let sectors = (get("global_load_sectors") + get("global_store_sectors")) * 32.0;
    let wanted = get("global_load_bytes") + get("global_store_bytes");
    // Threads that read the same bytes request more than the sectors contain.
    let wasted = (sectors - wanted).max(0.0);
    let (waves, blocks) = (get("waves"), get("blocks"));
    let tail = if waves > 0.0 {
        // A partial last wave takes as long as a full one and leaves this share of block slots idle.
        1.0 - waves / waves.ceil()
    } else {
        0.0
    };
    vec![
        Limit {
            name: "bank conflicts",
            evidence: format!(
                "{conflicts:.0} of {:.0} shared-memory wavefronts ({:.1} %)",
                get("shared_wavefronts"),
                part(conflicts, get("shared_wavefronts"))
            ),
            weight: conflicts / device_cycles,
            counter: "bank_conflicts",
            words: PADDING,
        },
        Limit {
            name: "accesses that do not fill their sectors",
            evidence: format!(
                "{:.0} % of the bytes moved were requested",
                part(wanted, sectors)
            ),
            weight: wasted / (64.0 * device_cycles),
            counter: "global_load_sectors",
            words: WIDTH,
        },
        Limit {
            name: "registers spilled to local memory",
            evidence: format!(
                "{:.3} MB of local loads and stores",
                get("local_bytes") * 1e-6
            ),
            weight: get("local_bytes") / (arch.dram_gb_s * 1e9) / seconds,
            counter: "local_bytes",
            words: PRESSURE,
        },
        Limit {
            name: if waves < 1.0 {
                "fewer blocks than the device holds"
            } else {
                "a last wave that does not fill the device"
            },
            evidence: format!(
                "{blocks:.0} blocks make {waves:.2} waves on {} multiprocessors",
                arch.sm_count
            ),
            weight: 0.8 * tail,
            counter: "waves",
            words: TILE,
        },
    ]
}

/// Reads the limits that Nsight Compute measured, in per cent of each peak.
fn by_profiler(profile: &WinnerProfile) -> Vec<Limit> {
    let get = |key: &str| number(&profile.metrics, key);
    let mut limits = Vec::new();
    let mut unit = |name: &'static str, key: &str, counter, words| {
        if let Some(percent) = get(key) {
            let evidence = format!("{percent:.0} % of the peak");
            limits.push(Limit {
                name,
                evidence,
                weight: percent / 100.0,
                counter,
                words,
            });
        }
    };
    unit(
        "memory bandwidth",
        "dram_throughput_pct",
        "global_load_sectors",
        TILE,
    );
    unit(
        "the L2 cache",
        "l2_throughput_pct",
        "global_load_sectors",
        TILE,
    );
    unit("tensor cores", "tensor_pipe_pct", "tensor_flops", TILE);
    unit(
        "instruction issue",
        "issue_slots_busy_pct",
        "warp_instructions",
        INSTRUCTIONS,
    );
    if let (Some(conflicts), Some(all)) = (get("bank_conflicts"), get("shared_wavefronts"))
        && all > 0.0
    {
        limits.push(Limit {
            name: "bank conflicts",
            evidence: format!("{conflicts:.0} of {all:.0} shared-memory wavefronts"),
            weight: conflicts / all,
            counter: "bank_conflicts",
            words: PADDING,
        });
    }
    if let Some(occupancy) = get("achieved_occupancy_pct") {
        limits.push(Limit {
            name: "latency that too few warps hide",
            evidence: format!("{occupancy:.0} % of the warps that fit are active"),
            weight: (1.0 - occupancy / 100.0) * 0.5,
            counter: "occupancy",
            words: HIDING,
        });
    }
    for (key, percent) in &profile.metrics {
        if let (Some(reason), Some(percent)) = (key.strip_prefix("stall_"), percent.as_f64()) {
            let reason = reason.trim_end_matches("_pct");
            limits.push(stall(reason, percent));
        }
    }
    limits
}

fn stall(reason: &str, percent: f64) -> Limit {
    let (name, words, counter) = match reason {
        "long_scoreboard" => ("waiting for global or local memory", HIDING, "occupancy"),
        "short_scoreboard" | "mio_throttle" => {
            ("waiting for shared memory", PADDING, "shared_wavefronts")
        }
        "barrier" => ("waiting at barriers", HIDING, "barriers"),
        "math_pipe_throttle" => ("waiting for the arithmetic units", TILE, "fp32_flops"),
        "lg_throttle" => (
            "a full queue of global accesses",
            WIDTH,
            "global_load_sectors",
        ),
        "not_selected" => (
            "more ready warps than can issue",
            INSTRUCTIONS,
            "warp_instructions",
        ),
        _ => ("other stalls", HIDING, "occupancy"),
    };
    Limit {
        name,
        evidence: format!(
            "{percent:.0} % of the warps' stalls ({})",
            reason.replace('_', " ")
        ),
        weight: percent / 100.0 * 0.9,
        counter,
        words,
    }
}

/// Returns the parameter whose values explain the counter best. Without enough counters, returns the most
/// effective one whose name or description mentions it. Also returns the evidence.
pub(super) fn parameter(subject: &Subject, limit: &Limit) -> Option<(String, String)> {
    let best = subject.best()?;
    let counted = subject
        .candidates
        .iter()
        .filter(|judged| counter(&judged.trial, limit.counter).is_some())
        .count();
    let choices = subject
        .board
        .definition
        .parameters
        .iter()
        .filter(|p| p.values.len() > 1);
    if counted >= MIN_COUNTERS {
        let strongest = choices
            .clone()
            .map(|choice| {
                // Counters differ by orders of magnitude, and may be 0.
                let figure = |trial: &_| counter(trial, limit.counter).map(f64::ln_1p);
                (
                    share(&subject.candidates, &choice.name, figure),
                    &choice.name,
                )
            })
            // With equal shares the first name counts, so that reports are reproducible.
            .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
        if let Some((explained, name)) = strongest
            && explained >= EXPLAINED_MIN
        {
            let chosen = value_of(&best.config, name).map_or(String::new(), ToString::to_string);
            return Some((
                name.clone(),
                format!(
                    "explains {:.0} % of `{}` over {counted} candidates; the winner has {chosen}",
                    100.0 * explained,
                    limit.counter
                ),
            ));
        }
    }
    let spoken = |text: &str| {
        let text = text.to_ascii_lowercase();
        limit.words.iter().position(|word| text.contains(word))
    };
    choices
        .filter_map(|choice| {
            let by_name = spoken(&choice.name);
            // A word in the name is stronger evidence than one in the description.
            let by_doc = spoken(&choice.doc).map(|at| at + limit.words.len());
            let place = by_name.or(by_doc)?;
            Some((place, &choice.name))
        })
        .min()
        .map(|(_, name)| {
            let chosen = value_of(&best.config, name).map_or(String::new(), ToString::to_string);
            (
                name.clone(),
                format!("by its name and description; the winner has {chosen}"),
            )
        })
}
