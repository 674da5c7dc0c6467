//! Resources of a kernel, parsed from the assembler's report (`--ptxas-options=-v`) in NVRTC's
//! log.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tuner_core::target::ComputeTarget;

/// Resources of one kernel, per thread except for shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of registers stored to local memory.
    pub spill_store: u64,
    /// Bytes of registers loaded back.
    pub spill_load: u64,
    /// Stack frame, bytes; the cumulative size if the assembler reports it.
    pub stack: u64,
    /// Static shared memory, bytes per block.
    pub static_shared: u64,
}

/// Parses the report. Device functions that were not inlined have properties too; only kernels
/// (`Compiling entry function`) are returned.
/// Lines are recognised by their words, not by their prefix, which differs between versions (`ptxas info
/// :` on one line, `ptxas         .` on the next).
#[must_use]
pub fn parse_log(log: &str) -> BTreeMap<String, KernelResources> {
    let mut kernels: BTreeMap<String, KernelResources> = BTreeMap::new();
    let mut entry: Option<String> = None;
    let mut function: Option<String> = None;
    for line in log.lines() {
        if line.contains("Compiling entry function") {
            entry = between_quotes(line);
            function.clone_from(&entry);
            kernels.extend(entry.clone().map(|name| (name, KernelResources::default())));
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            function = Some(name.trim().to_owned());
        } else if line.contains("bytes stack frame") {
            // These figures are of the last named function, which may not be a kernel.
            if let Some(kernel) = function.as_ref().and_then(|name| kernels.get_mut(name)) {
                kernel.stack = kernel.stack.max(number_before(line, "bytes stack frame"));
                kernel.spill_store = number_before(line, "bytes spill stores");
                kernel.spill_load = number_before(line, "bytes spill loads");
            }
        } else if line.contains("Used ") && line.contains(" registers") {
            let kernel = entry.as_ref().and_then(|name| kernels.get_mut(name));
            if let Some(kernel) = kernel {
                kernel.registers =
                    u32::try_from(number_before(line, "registers")).unwrap_or(u32::MAX);
                kernel.stack = kernel
                    .stack
                    .max(number_before(line, "bytes cumulative stack size"));
                kernel.static_shared = number_before(line, "bytes smem");
            }
        }
    }
    kernels
}

/// Bytes kept at the beginning and at the end of longer messages: a source can cause megabytes of messages.
const HEAD_BYTES: usize = 12 << 10;
const TAIL_BYTES: usize = 4 << 10;
/// Bytes kept of the assembler's report.
const MAX_REPORT_BYTES: usize = 1 << 20;

/// Cuts long messages in the middle with a notice; figures are kept.
pub(super) fn shortened(log: String) -> String {
    if log.len() <= HEAD_BYTES + TAIL_BYTES {
        return log;
    }
    let messages = messages_of(&log);
    let mut short = if messages.len() <= HEAD_BYTES + TAIL_BYTES {
        messages
    } else {
        let head = &messages[..messages.floor_char_boundary(HEAD_BYTES)];
        let tail = &messages[messages.ceil_char_boundary(messages.len() - TAIL_BYTES)..];
        let cut = messages.len() - head.len() - tail.len();
        format!("{head}\n[… {cut} bytes of the compiler's messages are left out …]\n{tail}")
    };
    for line in log.lines().filter(|line| is_report(line)) {
        if short.len() + line.len() > MAX_REPORT_BYTES {
            break;
        }
        short.push_str(line);
        short.push('\n');
    }
    short
}

fn is_report(line: &str) -> bool {
    line.starts_with("ptxas info") || line.starts_with("ptxas         .")
}

/// Returns the log without the assembler's report, for display.
#[must_use]
pub(crate) fn messages_of(log: &str) -> String {
    log.lines()
        .filter(|line| !is_report(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Orders the messages of a rejected source: errors before warnings and remarks, since a table shows the
/// first line.
#[must_use]
pub(super) fn errors_first(messages: &str) -> String {
    let is_error = |message: &&str| {
        let first = message.lines().find(|line| !line.trim().is_empty());
        let words = [": error", ": catastrophic error", "; error ", "ptxas fatal"];
        first.is_some_and(|line| words.iter().any(|word| line.contains(word)))
    };
    let (errors, others): (Vec<_>, Vec<_>) = messages.split("\n\n").partition(is_error);
    let all = errors.into_iter().chain(others);
    all.collect::<Vec<_>>().join("\n\n")
}

/// Replaces PTX lines in errors of the assembler by source lines where the PTX contains them.
#[must_use]
pub(super) fn with_source_lines(log: &str, ptx: &str) -> String {
    let located = |line: &str| {
        let rest = line.strip_prefix(ASSEMBLER)?;
        let (number, message) = rest.split_once(';')?;
        let message = message.split_once(':')?.1.trim();
        let (file, line) = source_line(ptx, number.trim().parse().ok()?)?;
        Some(format!("{file}:{line}: error: {message}"))
    };
    log.lines()
        .map(|line| located(line).unwrap_or_else(|| line.to_owned()) + "\n")
        .collect()
}

/// Start of an assembler error; the PTX line follows.
pub(super) const ASSEMBLER: &str = "ptxas application ptx input, line ";

/// Returns the source line of line `number` of a PTX text, from 1.
fn source_line(ptx: &str, number: usize) -> Option<(&str, u32)> {
    let before: Vec<&str> = ptx.lines().take(number).collect();
    // `.loc` applies to the instructions after it (PTX ISA, "Debugging Directives: .loc").
    let place = before.iter().rev().find_map(|line| {
        let mut words = line.trim().strip_prefix(".loc")?.split_whitespace();
        Some((words.next()?, words.next()?.parse().ok()?))
    });
    let (file, line) = place?;
    let path = ptx.lines().find_map(|line| {
        let rest = line.trim().strip_prefix(".file")?.trim();
        let (number, name) = rest.split_once(char::is_whitespace)?;
        (number == file).then(|| name.split('"').nth(1))?
    })?;
    Some((path, line))
}

/// An instruction that the assembler rejected for its target.
pub(super) struct Unsupported<'l> {
    /// `file:line`, if the message has it.
    pub(super) place: Option<&'l str>,
    /// The instruction or qualifier.
    pub(super) instruction: &'l str,
    /// The target, such as `sm_90`.
    pub(super) target: &'l str,
}

/// Returns the first instruction of a log that its target does not support.
#[must_use]
pub(super) fn unsupported(log: &str) -> Option<Unsupported<'_>> {
    log.lines().find_map(|line| {
        let (before, target) = line.split_once("not supported on .target '")?;
        let (message, instruction) = before.split_once('\'')?;
        let place = message.split_once(": error").map(|(place, _)| place);
        Some(Unsupported {
            place,
            instruction: instruction.split('\'').next()?,
            target: target.split('\'').next()?,
        })
    })
}

/// Targets of instructions that only some architectures have (PTX ISA 9.0, "Target ISA Notes").
const TARGETS_BY_INSTRUCTION: [(&str, &str); 4] = [
    (
        "wgmma",
        "sm_90a (compute capability 9.0, such as vgpu:h100)",
    ),
    (
        "tcgen05",
        "sm_100a, sm_103a and sm_110a (compute capability 10.x and 11.0, such as vgpu:b200)",
    ),
    (
        "setmaxnreg",
        "sm_90a and, with the suffix `a` or `f`, from compute capability 10.0 on",
    ),
    (
        "mma",
        "sm_120a and sm_121a in this form (compute capability 12.x, such as vgpu:rtx5090)",
    ),
];

/// Returns advice on an instruction that requires an architecture-specific target; empty otherwise.
/// `named`: an option of the search space names the target, so no other was tried.
#[must_use]
pub(super) fn target_advice(log: &str, named: bool) -> String {
    let Some(found) = unsupported(log) else {
        return String::new();
    };
    let family = found.instruction.split('.').next().unwrap_or_default();
    let home = TARGETS_BY_INSTRUCTION
        .iter()
        .find(|(name, _)| *name == family);
    let home = home.map_or_else(String::new, |(name, targets)| {
        format!("\nhelp: `{name}` exists on {targets}\n")
    });
    let target = found.target.parse::<ComputeTarget>().ok().filter(|_| named);
    let specific = target.and_then(ComputeTarget::architecture_specific);
    let option = specific.map_or_else(String::new, |specific| {
        format!(
            "\nhelp: where the instruction belongs to {specific}, write `compile: {{ arch_features: a \
             }}` in the search space in place of an option that names {}\n",
            found.target
        )
    });
    format!("{home}{option}")
}

fn between_quotes(line: &str) -> Option<String> {
    let mut pieces = line.split('\'');
    pieces.next()?;
    pieces.next().map(str::to_owned)
}

/// Returns the number directly before a phrase; 0 if the phrase is absent.
fn number_before(line: &str, phrase: &str) -> u64 {
    let Some(end) = line.find(phrase) else {
        return 0;
    };
    let word = line[..end]
        .split_whitespace()
        .next_back()
        .unwrap_or_default();
    // 12.x reports the static and the system part of shared memory as `256+1024`.
    word.split('+')
        .filter_map(|part| part.parse::<u64>().ok())
        .next()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
