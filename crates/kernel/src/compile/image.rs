//! The compiler's product, and the outcomes of a compile.

use super::cubin;
use super::host_headers;
use super::nvrtc::Compiled;
use super::render::{Source, quoted};
use super::resources::{KernelResources, messages_of, parse_log, shortened};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tuner_core::record::{Compilation, Verdict};
use tuner_core::units::ContentHash;
use tuner_process::ATTEMPTS;

/// A compiled candidate. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Image {
    /// PTX with line information, for the virtual GPU.
    pub ptx: Arc<str>,
    /// Machine code.
    pub cubin: Arc<[u8]>,
    /// The figures that are stored with a trial.
    pub facts: Compilation,
    /// Resources by kernel name.
    pub kernels: BTreeMap<String, KernelResources>,
    /// The name in the code of each kernel that is launched, by the launch's `entry`.
    pub symbols: BTreeMap<String, String>,
    /// NVRTC's messages, without the assembler's report.
    pub log: String,
}

/// How a compile ended. A failure is a value: no candidate can end a run.
#[derive(Debug, Clone)]
pub enum CompileOutcome {
    /// Machine code came out.
    Compiled(Arc<Image>),
    /// The source was refused.
    Failed {
        /// The compiler's messages, with the template's own path and lines.
        log: String,
    },
    /// No end within the deadline; the worker was killed.
    TimedOut {
        /// The deadline.
        after: Duration,
    },
    /// Over the memory limit; the worker was killed.
    OutOfMemory {
        /// The limit, bytes.
        limit: u64,
    },
    /// The compiler crashed and took its worker along.
    Crashed {
        /// How the worker ended.
        how: String,
    },
    /// Its workers were lost, again and again, through no fault of the source.
    Lost {
        /// How the last one was.
        how: String,
    },
}

impl Image {
    /// A launch's kernel by its name in the code.
    #[must_use]
    pub fn symbol(&self, entry: &str) -> String {
        let known = self.symbols.get(entry);
        known.map_or_else(|| entry.to_owned(), Clone::clone)
    }
}

impl CompileOutcome {
    /// The judgement and its detail, where no image came out. Whatever ends a compile, it is the
    /// candidate that did not compile: `timeout` and the like are verdicts about running. Only a
    /// worker that was lost from outside is none of its faults.
    #[must_use]
    pub fn failure(&self) -> Option<(Verdict, String)> {
        let detail = match self {
            Self::Compiled(_) => return None,
            Self::Failed { log } => log.trim_end().to_owned(),
            Self::TimedOut { after } => {
                format!(
                    "the compiler did not end within {} s and was killed",
                    after.as_secs_f64()
                )
            }
            Self::OutOfMemory { limit } => {
                format!(
                    "the compiler needed more than {} MiB and was killed",
                    limit >> 20
                )
            }
            Self::Crashed { how } => format!("the compiler crashed: {how}"),
            Self::Lost { how } => {
                let detail = format!("the compile worker was lost {ATTEMPTS} times: {how}");
                return Some((Verdict::NotJudged, detail));
            }
        };
        Some((Verdict::CompileFailed, detail))
    }
}

/// What crosses the pipe and lies in the cache: a compile's result before it is read for one
/// candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawResult {
    pub(super) head: RawHead,
    pub(super) ptx: Vec<u8>,
    pub(super) cubin: Vec<u8>,
}

/// The part of it that is not bulk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHead {
    pub(super) status: RawStatus,
    /// The log; of long messages the beginning and the end.
    pub(super) log: String,
    /// Host time, microseconds.
    pub(super) compile_us: u64,
    /// Name expressions with the names that their kernels have in the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lowered: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawStatus {
    Compiled,
    Refused,
    OutOfMemory,
    /// NVRTC itself is broken; the log says how.
    Broken,
}

impl RawResult {
    pub(super) fn new(compiled: Compiled, names: &[String], folder: &Path, took: Duration) -> Self {
        let mut lowered = Vec::new();
        let (status, ptx, cubin, log) = match compiled {
            Compiled::Done {
                ptx,
                cubin,
                log,
                lowered: names_in_code,
            } => {
                lowered = names_in_code;
                let ptx = restore_paths(&ptx, names, folder);
                (RawStatus::Compiled, ptx.into_bytes(), cubin, log)
            }
            Compiled::Refused { log } => (RawStatus::Refused, Vec::new(), Vec::new(), log),
            Compiled::OutOfMemory => (
                RawStatus::OutOfMemory,
                Vec::new(),
                Vec::new(),
                String::new(),
            ),
        };
        let log = shortened(log);
        let compile_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        Self {
            head: RawHead {
                status,
                log,
                compile_us,
                lowered,
            },
            ptx,
            cubin,
        }
    }

    /// NVRTC could not do its work.
    pub(super) fn broken(why: String) -> Self {
        let head = RawHead {
            status: RawStatus::Broken,
            log: why,
            compile_us: 0,
            lowered: Vec::new(),
        };
        Self {
            head,
            ptx: Vec::new(),
            cubin: Vec::new(),
        }
    }

    /// Reads the parts of a message: the head, PTX and machine code; `None` when they are not that.
    pub(super) fn from_parts(parts: Vec<Vec<u8>>) -> Option<Self> {
        let [head, ptx, cubin]: [Vec<u8>; 3] = parts.try_into().ok()?;
        let head = serde_json::from_slice(&head).ok()?;
        Some(Self { head, ptx, cubin })
    }

    /// Reads the result for the candidate that it was made for.
    pub(super) fn interpret(
        self,
        source: &Source,
        nvrtc_version: &str,
        memory_limit: u64,
    ) -> Result<CompileOutcome, String> {
        match self.head.status {
            RawStatus::Broken => return Err(self.head.log),
            RawStatus::OutOfMemory => {
                return Ok(CompileOutcome::OutOfMemory {
                    limit: memory_limit,
                });
            }
            RawStatus::Refused => {
                let log = messages_of(&self.head.log);
                let advice = host_headers::advice(&log);
                return Ok(CompileOutcome::Failed {
                    log: format!("{log}{advice}"),
                });
            }
            RawStatus::Compiled => {}
        }
        if self.cubin.is_empty() {
            let log = format!(
                "{} yields no machine code: name a real target, such as sm_90\n",
                source.arch
            );
            return Ok(CompileOutcome::Failed { log });
        }
        let machine = cubin::read(&self.cubin)?;
        let code = Described {
            hash: machine.hash,
            sass_bytes: machine.text_bytes,
            kernels: reconcile(parse_log(&self.head.log), &machine.registers),
        };
        Ok(match self.image(source, code, nvrtc_version)? {
            Ok(image) => CompileOutcome::Compiled(Arc::new(image)),
            Err(log) => CompileOutcome::Failed { log },
        })
    }

    /// The image of a source that compiled. The inner error is why its kernels cannot be launched.
    pub(super) fn image(
        self,
        source: &Source,
        code: Described,
        nvrtc_version: &str,
    ) -> Result<Result<Image, String>, String> {
        let kernels = code.kernels;
        let symbols = match symbols(source, &self.head.lowered, &kernels) {
            Ok(symbols) => symbols,
            Err(log) => return Ok(Err(log)),
        };
        let facts = match facts_of(source, &symbols, &kernels, code.hash, nvrtc_version) {
            Ok(facts) => Compilation {
                compile_us: self.head.compile_us,
                ptx_bytes: self.ptx.len() as u64,
                sass_bytes: code.sass_bytes,
                ..facts
            },
            Err(log) => return Ok(Err(log)),
        };
        let ptx = String::from_utf8(self.ptx).map_err(|error| error.to_string())?;
        Ok(Ok(Image {
            ptx: ptx.into(),
            cubin: self.cubin.into(),
            facts,
            kernels,
            symbols,
            log: messages_of(&self.head.log),
        }))
    }
}

/// What is known of compiled code besides its text.
pub(super) struct Described {
    /// What names it: the machine code's hash, or that of the PTX where there is no machine code.
    pub(super) hash: ContentHash,
    /// Instructions, bytes.
    pub(super) sass_bytes: u64,
    /// Resources by kernel name.
    pub(super) kernels: BTreeMap<String, KernelResources>,
}

/// The log's figures, with register counts from the machine code where the log has none (a
/// compiler that answers from a cache of its own prints no report) or differs.
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

/// The names in the code of the kernels that are launched; an error text where one is not there.
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

/// A mangled name as C++ writes it.
fn demangled(symbol: &str) -> Option<String> {
    cpp_demangle::Symbol::new(symbol).ok()?.demangle().ok()
}

fn shown(symbol: &str) -> String {
    demangled(symbol).unwrap_or_else(|| symbol.to_owned())
}

/// The name of a kernel that is no template's instance, without its namespaces.
fn plain_name(symbol: &str) -> Option<String> {
    let whole = demangled(symbol)?.replace("(anonymous namespace)::", "");
    let (name, _) = whole.split_once('(')?;
    let last = name.rsplit("::").next()?;
    (!name.contains(['<', ' '])).then(|| last.to_owned())
}

/// The figures of the kernels that the candidate launches.
fn facts_of(
    source: &Source,
    symbols: &BTreeMap<String, String>,
    kernels: &BTreeMap<String, KernelResources>,
    cubin_hash: ContentHash,
    nvrtc_version: &str,
) -> Result<Compilation, String> {
    let mut facts = Compilation {
        template_hash: source.template_hash.clone(),
        cubin_hash,
        nvrtc_version: nvrtc_version.to_owned(),
        arch: source.arch.clone(),
        registers: 0,
        spill_bytes: 0,
        stack_bytes: 0,
        shared_bytes: 0,
        compile_us: 0,
        ptx_bytes: 0,
        sass_bytes: 0,
    };
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
    Ok(facts)
}

/// NVRTC makes the paths of `.file` directives absolute, from the folder the compile ran in.
/// Puts the files' own paths back, so that hazards name them as diagnostics do and the PTX does
/// not depend on where it was compiled.
fn restore_paths(ptx: &str, names: &[String], folder: &Path) -> String {
    let pairs: Vec<(String, String)> = names
        .iter()
        .map(|name| (quoted(&folder.join(name).to_string_lossy()), quoted(name)))
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

#[cfg(test)]
mod tests;
