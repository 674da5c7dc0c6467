//! Result of the compiler, and the outcomes of a compile.

use super::constants::with_zero_initializers;
use super::cubin;
use super::error::CompileError;
use super::host_headers;
use super::render::{Source, quoted};
use super::resources::{KernelResources, errors_first, messages_of, parse_log, target_advice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compilation, Verdict};
use tuner_core::units::ContentHash;

/// A compiled candidate. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Image {
    /// PTX with line information, for the virtual GPU.
    pub ptx: Arc<str>,
    /// Machine code.
    pub cubin: Arc<[u8]>,
    /// Figures stored with a trial.
    pub facts: Compilation,
    /// Resources by kernel name.
    pub kernels: BTreeMap<String, KernelResources>,
    /// Mangled name of each launched kernel, by the launch's `entry`.
    pub symbols: BTreeMap<String, String>,
    /// NVRTC's messages, without the assembler's report.
    pub log: String,
}

/// Outcome of a compile. A failure is a value: a candidate cannot end a run. Every failure counts as not
/// compiled: `timeout` and similar verdicts are about running. Only an externally killed worker is not the
/// candidate's fault.
pub type CompileOutcome = Result<Arc<Image>, Judgement>;

impl Image {
    /// Returns the mangled name of a launch's kernel.
    #[must_use]
    pub fn symbol(&self, entry: &str) -> String {
        let known = self.symbols.get(entry);
        known.map_or_else(|| entry.to_owned(), Clone::clone)
    }

    /// Returns the hash of the PTX without comments, line information and debug sections: equal for
    /// programs that execute the same instructions.
    #[must_use]
    pub fn ptx_hash(&self) -> ContentHash {
        ContentHash::from_parts(executed_lines(&self.ptx).map(str::as_bytes))
    }
}

/// Adds `.extern` to shared arrays that the source declares as extern with an extent: the compiler makes
/// them static, so a launch with dynamic shared memory would exceed them.
fn with_external_arrays(ptx: &str, log: &str) -> String {
    const TREATED: &str = " is treated as a static definition";
    let names: Vec<&str> = log
        .lines()
        .filter_map(|line| {
            line.split_once("extern declaration of the entity ")?
                .1
                .strip_suffix(TREATED)
        })
        .collect();
    if names.is_empty() {
        return ptx.to_owned();
    }
    let is_one = |line: &str| {
        let symbol = line.split('[').next()?.rsplit(char::is_whitespace).next()?;
        // A plain name may be the mangled one of a type.
        let mangled = symbol.starts_with("_Z");
        let spelled = if mangled {
            shown(symbol)
        } else {
            symbol.to_owned()
        };
        let own = |name: &&str| spelled == **name || spelled.ends_with(&format!("::{name}"));
        line.trim_start()
            .starts_with(".shared")
            .then(|| names.iter().any(own))
    };
    ptx.split_inclusive('\n')
        .map(|line| match is_one(line) {
            Some(true) => format!(".extern {}", line.trim_start()),
            _ => line.to_owned(),
        })
        .collect()
}

/// Returns the lines of a PTX text without comment lines, `.loc`, `.file` and `.section { … }`.
fn executed_lines(ptx: &str) -> impl Iterator<Item = &str> {
    let mut in_section = false;
    ptx.lines().map(str::trim).filter(move |line| {
        let begins = line.starts_with(".section");
        let left_out = in_section || begins || line.is_empty();
        if in_section || begins {
            in_section = !line.contains('}');
        }
        !left_out
            && !["//", ".loc", ".file"]
                .iter()
                .any(|word| line.starts_with(word))
    })
}

/// Returns the judgement of a rejected source; `log` has the template's own path and lines.
fn refused(log: &str) -> Judgement {
    Judgement::new(Verdict::CompileFailed, log.trim_end())
}

/// Returns the judgement of a compile killed for exceeding its memory limit.
pub(super) fn over_memory(limit: u64) -> Judgement {
    let mib = limit >> 20;
    refused(&format!(
        "the compiler needed more than {mib} MiB and was killed"
    ))
}

/// Serialized result of a compile, for the pipe and the cache, before interpretation for a
/// candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawResult {
    pub(super) head: RawHead,
    pub(super) ptx: Vec<u8>,
    pub(super) cubin: Vec<u8>,
}

/// Metadata of the result, without bulk data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHead {
    pub(super) status: RawStatus,
    /// The log; long messages are cut in the middle.
    pub(super) log: String,
    /// Host time, microseconds.
    pub(super) compile_us: u64,
    /// Name expressions with the mangled names of their kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lowered: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawStatus {
    Compiled,
    Refused,
    OutOfMemory,
    /// NVRTC itself is broken; the log contains the reason.
    Broken,
}

impl RawResult {
    /// Creates a result without code.
    pub(super) fn new(status: RawStatus, log: String) -> Self {
        let head = RawHead {
            status,
            log,
            compile_us: 0,
            lowered: Vec::new(),
        };
        Self {
            head,
            ptx: Vec::new(),
            cubin: Vec::new(),
        }
    }

    /// Parses the parts of a message: the head, PTX and machine code; `None` if malformed.
    pub(super) fn from_parts(parts: Vec<Vec<u8>>) -> Option<Self> {
        let [head, ptx, cubin]: [Vec<u8>; 3] = parts.try_into().ok()?;
        let head = serde_json::from_slice(&head).ok()?;
        Some(Self { head, ptx, cubin })
    }

    /// Interprets the result for its candidate.
    pub(super) fn interpret(
        self,
        source: &Source,
        nvrtc_version: &str,
        memory_limit: u64,
    ) -> Result<CompileOutcome, CompileError> {
        match self.head.status {
            RawStatus::Broken => return Err(CompileError::new(self.head.log)),
            RawStatus::OutOfMemory => return Ok(Err(over_memory(memory_limit))),
            RawStatus::Refused => {
                let log = errors_first(&messages_of(&self.head.log));
                let advice = [
                    host_headers::advice(&log),
                    target_advice(&log, source.names_target()),
                ]
                .concat();
                return Ok(Err(refused(&format!("{log}{advice}"))));
            }
            RawStatus::Compiled => {}
        }
        // A virtual target, such as `compute_90`, produces only PTX.
        if self.cubin.is_empty() {
            return Ok(Err(refused(&format!(
                "{} yields no machine code: name a real target, such as sm_90",
                source.arch
            ))));
        }
        let machine = cubin::read(&self.cubin)
            .map_err(|error| CompileError::new(format!("the cubin is not readable: {error}")))?;
        let code = CodeFacts {
            hash: machine.hash,
            sass_bytes: machine.text_bytes,
            kernels: reconcile(parse_log(&self.head.log), &machine.registers),
        };
        let image = self.image(source, code, nvrtc_version);
        Ok(image.map(Arc::new).map_err(|log| refused(&log)))
    }

    /// Returns the image of a compiled source, or the reason why its kernels cannot be launched.
    pub(super) fn image(
        self,
        source: &Source,
        code: CodeFacts,
        nvrtc_version: &str,
    ) -> Result<Image, String> {
        let kernels = code.kernels;
        let symbols = symbols(source, &self.head.lowered, &kernels)?;
        let mut facts = Compilation {
            template_hash: source.template_hash.clone(),
            cubin_hash: code.hash,
            nvrtc_version: nvrtc_version.to_owned(),
            arch: source.arch.clone(),
            registers: 0,
            spill_bytes: 0,
            stack_bytes: 0,
            shared_bytes: 0,
            compile_us: self.head.compile_us,
            ptx_bytes: self.ptx.len() as u64,
            sass_bytes: code.sass_bytes,
        };
        add_figures(&mut facts, source, &symbols, &kernels)?;
        Ok(Image {
            ptx: with_external_arrays(
                &with_zero_initializers(&String::from_utf8_lossy(&self.ptx), source),
                &self.head.log,
            )
            .into(),
            cubin: self.cubin.into(),
            facts,
            kernels,
            symbols,
            log: messages_of(&self.head.log),
        })
    }
}

/// Facts of compiled code besides its text.
pub(super) struct CodeFacts {
    /// Its identity: the machine code's hash, or that of the PTX without machine code.
    pub(super) hash: ContentHash,
    /// Instructions, bytes.
    pub(super) sass_bytes: u64,
    /// Resources by kernel name.
    pub(super) kernels: BTreeMap<String, KernelResources>,
}

/// Merges the log's figures with register counts from the machine code. The latter are used if they differ,
/// or if the log has none (a compiler that answers from its own cache prints no report).
fn reconcile(
    mut kernels: BTreeMap<String, KernelResources>,
    registers: &BTreeMap<String, u32>,
) -> BTreeMap<String, KernelResources> {
    for (name, &count) in registers {
        let kernel = kernels.entry(name.clone()).or_default();
        if count != 0 && kernel.registers != count {
            if kernel.registers != 0 {
                tracing::warn!(
                    "kernel {name}: the assembler's log says {} registers, the cubin {count}; \
                     using the cubin's",
                    kernel.registers
                );
            }
            kernel.registers = count;
        }
    }
    kernels
}

/// Returns the mangled names of the launched kernels; an error text if one is missing.
fn symbols(
    source: &Source,
    lowered: &[(String, String)],
    kernels: &BTreeMap<String, KernelResources>,
) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    for launch in &source.launches {
        let entry = &launch.entry;
        let expression = lowered.iter().find(|(spelled, _)| spelled == entry);
        if let Some((_, symbol)) = expression {
            found.insert(entry.clone(), symbol.clone());
            continue;
        }
        if kernels.contains_key(entry) {
            found.insert(entry.clone(), entry.clone());
            continue;
        }
        let same = |symbol: &&String| plain_name(symbol).is_some_and(|name| name == *entry);
        let named: Vec<&String> = kernels.keys().filter(same).collect();
        match named.as_slice() {
            [symbol] => {
                found.insert(entry.clone(), (*symbol).clone());
            }
            [] => {
                let names: Vec<String> = kernels.keys().map(|symbol| shown(symbol)).collect();
                return Err(format!(
                    "{}: there is no kernel `{entry}` (found: {}); correct `entry` in the search \
                     space: the name of a `__global__` function, of a template with its arguments \
                     (`entry: \"ns::kernel<BM, 4>\"`)\n",
                    source.name,
                    if names.is_empty() {
                        "none".to_owned()
                    } else {
                        names.join(", ")
                    },
                ));
            }
            several => {
                let names: Vec<String> = several.iter().map(|symbol| shown(symbol)).collect();
                return Err(format!(
                    "{}: `{entry}` may be any of {}; write its namespaces in `entry`, or for an \
                     overload the cast that chooses it\n",
                    source.name,
                    names.join(", ")
                ));
            }
        }
    }
    Ok(found)
}

/// Demangles a C++ name.
fn demangled(symbol: &str) -> Option<String> {
    cpp_demangle::Symbol::new(symbol).ok()?.demangle().ok()
}

fn shown(symbol: &str) -> String {
    demangled(symbol).unwrap_or_else(|| symbol.to_owned())
}

/// Returns the unqualified name of a kernel that is not a template instance.
fn plain_name(symbol: &str) -> Option<String> {
    let whole = demangled(symbol)?.replace("(anonymous namespace)::", "");
    let (name, _) = whole.split_once('(')?;
    let last = name.rsplit("::").next()?;
    (!name.contains(['<', ' '])).then(|| last.to_owned())
}

/// Adds the figures of the candidate's kernels, the largest of each.
fn add_figures(
    facts: &mut Compilation,
    source: &Source,
    symbols: &BTreeMap<String, String>,
    kernels: &BTreeMap<String, KernelResources>,
) -> Result<(), String> {
    for launch in &source.launches {
        let symbol = symbols.get(&launch.entry);
        let Some(kernel) = symbol.and_then(|symbol| kernels.get(symbol)) else {
            return Err(format!(
                "{}: the compiler gave no code for `{}`\n",
                source.name, launch.entry
            ));
        };
        facts.registers = facts.registers.max(kernel.registers);
        facts.spill_bytes = facts
            .spill_bytes
            .max(kernel.spill_store + kernel.spill_load);
        facts.stack_bytes = facts.stack_bytes.max(kernel.stack);
        facts.shared_bytes = facts.shared_bytes.max(
            kernel
                .static_shared
                .saturating_add(launch.shared_bytes.into()),
        );
    }
    Ok(())
}

/// Restores the files' own paths in `.file` directives, which NVRTC makes absolute from the working folder
/// of the compile. Hazards and diagnostics then name the same paths, and the PTX does not depend on that
/// folder.
pub(super) fn restore_paths(ptx: &str, names: &[String], folder: &Path) -> String {
    let pairs: Vec<(String, String)> = names
        .iter()
        .flat_map(|name| {
            let absolute = quoted(&folder.join(name).to_string_lossy());
            // NVRTC writes non-ASCII bytes as octal escapes.
            [octal(&absolute), absolute].map(|absolute| (absolute, quoted(name)))
        })
        .collect();
    let mut restored = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        let pair = pairs.iter().find(|(absolute, _)| {
            line.trim_start().starts_with(".file") && line.contains(absolute)
        });
        match pair {
            Some((absolute, own)) => restored.push_str(&line.replace(absolute, own)),
            None => restored.push_str(line),
        }
    }
    restored
}

/// Escapes each non-ASCII byte as octal.
fn octal(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            0x80.. => format!("\\{byte:o}"),
            _ => char::from(byte).to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
