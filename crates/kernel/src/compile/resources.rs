//! What a kernel costs, read from the assembler's report (`--ptxas-options=-v`) in NVRTC's log.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Resources of one kernel, per thread but for shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of registers stored to local memory.
    pub spill_store: u64,
    /// Bytes of registers loaded back.
    pub spill_load: u64,
    /// Stack frame, bytes; the cumulative size where the assembler states it.
    pub stack: u64,
    /// Static shared memory, bytes a block.
    pub static_shared: u64,
}

/// Reads the report. Device functions that were not inlined have properties too; only kernels
/// (`Compiling entry function`) are returned.
///
/// Lines are recognised by their words, not their prefix, which differs between versions
/// (`ptxas info    :` on one line, `ptxas         .` on the next).
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
            // These belong to the function named last, which may be none of the kernels.
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

/// Bytes kept of messages that are longer, from their beginning and from their end: a source can
/// make the compiler write megabytes.
const HEAD_BYTES: usize = 12 << 10;
const TAIL_BYTES: usize = 4 << 10;
/// Bytes kept of the assembler's report.
const MAX_REPORT_BYTES: usize = 1 << 20;

/// The log with long messages cut in the middle, which it says; figures stay.
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

/// The log without the assembler's report: what a person wants to read.
#[must_use]
pub(crate) fn messages_of(log: &str) -> String {
    log.lines()
        .filter(|line| !is_report(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn between_quotes(line: &str) -> Option<String> {
    let mut pieces = line.split('\'');
    pieces.next()?;
    pieces.next().map(str::to_owned)
}

/// The number directly before a phrase; 0 where the phrase is absent.
fn number_before(line: &str, phrase: &str) -> u64 {
    let Some(end) = line.find(phrase) else {
        return 0;
    };
    let word = line[..end]
        .split_whitespace()
        .next_back()
        .unwrap_or_default();
    // 12.x writes the static and the system part of shared memory as `256+1024`.
    word.split('+')
        .filter_map(|part| part.parse::<u64>().ok())
        .next()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{HEAD_BYTES, KernelResources, TAIL_BYTES, messages_of, parse_log, shortened};

    const LOG: &str = "\
templates/t/kernel.cu(3): warning #177-D: variable \"x\" was declared but never referenced

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_90'
ptxas info    : Function properties for k2
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compile time = 15.045 ms
ptxas info    : Function properties for _ZN27_INTERNAL_1fEf
ptxas         .     64 bytes stack frame, 7 bytes spill stores, 9 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     160 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 224 bytes cumulative stack size, 256 bytes smem
";

    #[test]
    fn each_kernel_gets_its_own_figures_and_functions_none() {
        let kernels = parse_log(LOG);
        assert_eq!(kernels.len(), 2);
        assert_eq!(
            kernels["k2"],
            KernelResources {
                registers: 8,
                ..Default::default()
            }
        );
        let expected = KernelResources {
            registers: 32,
            spill_store: 12,
            spill_load: 20,
            stack: 224,
            static_shared: 256,
        };
        assert_eq!(kernels["k"], expected);
    }

    #[test]
    fn the_form_of_older_versions_is_read_too() {
        let log = "ptxas info    : Compiling entry function 'f' for 'sm_80'\n\
                   ptxas info    : Function properties for f\n    \
                   8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n\
                   ptxas info    : Used 255 registers, 4096+0 bytes smem, 380 bytes cmem[0]\n";
        let expected = KernelResources {
            registers: 255,
            spill_store: 4,
            spill_load: 4,
            stack: 8,
            static_shared: 4096,
        };
        assert_eq!(parse_log(log)["f"], expected);
    }

    #[test]
    fn a_long_log_keeps_its_beginning_its_end_and_all_figures_and_says_what_is_cut() {
        assert_eq!(shortened(LOG.to_owned()), LOG);
        for filler in ["é".repeat(1 << 20), "a line\n".repeat(1 << 20)] {
            let long = format!("first: error\n{filler}\nlast: error\n{LOG}");
            let short = shortened(long.clone());
            assert!(short.len() < HEAD_BYTES + TAIL_BYTES + LOG.len() + 200);
            assert!(short.starts_with("first: error\n"));
            assert!(short.contains("last: error\n"));
            assert_eq!(parse_log(&short), parse_log(&long));
            let said = short.split_once("[… ").unwrap().1;
            let cut: usize = said.split(' ').next().unwrap().parse().unwrap();
            assert!(cut > filler.len() - HEAD_BYTES - TAIL_BYTES && cut < filler.len());
        }
    }

    #[test]
    fn messages_keep_warnings_and_drop_the_report() {
        assert_eq!(messages_of(LOG).trim().lines().count(), 1);
    }
}
