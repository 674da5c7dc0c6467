//! Compiler: one interface to cache, pool and NVRTC.

use super::cache::{CACHE_BYTES_MAX, DiskCache};
use super::discover::Surroundings;
use super::error::CompileError;
use super::host_headers;
use super::image::{CompileOutcome, RawResult, RawStatus};
use super::nvrtc::{Nvrtc, NvrtcMissing};
use super::options;
use super::pool::{Pool, PoolReply, PoolSettings, PrecompiledPlace};
use super::prelude::Preludes;
use super::render::{Source, quoted};
use super::request::Request;
use super::resources::unsupported;
use super::sandbox::linked_folders;
use super::template::Header;
use super::worker;
use cuda_source::{attribute_macros, with_leading_attributes};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use tuner_core::escape::line;
use tuner_core::panics::lock;
use tuner_core::target::ComputeTarget;
use tuner_core::units::ContentHash;

/// Maximum size of the precompiled headers of all workers, bytes. `<cuda/barrier>` takes 130 MB,
/// `<cuda_fp16.h>` 9 MB.
const PRECOMPILED_BYTES_MAX: u64 = 4 << 30;

/// Process in which NVRTC runs.
#[derive(Debug, Clone)]
pub enum Isolation {
    /// This process, without limits, for tests: options such as `--device-debug` change the code of later
    /// compiles.
    InProcess,
    /// Worker processes of this executable, which must have the `compile-worker` subcommand.
    Workers {
        /// The executable.
        program: PathBuf,
    },
}

/// Settings of a compiler.
#[derive(Debug, Clone)]
pub struct CompilerSettings {
    /// Concurrent compiles.
    pub jobs: usize,
    /// Maximum duration of a compile before its worker is killed.
    pub deadline: Duration,
    /// Maximum resident memory of one worker, bytes.
    pub memory_bytes: u64,
    /// Folder of the disk cache; `None` for no cache.
    pub cache: Option<PathBuf>,
    /// Largest size of the cache, bytes.
    pub cache_bytes_max: u64,
    /// Process in which NVRTC runs.
    pub isolation: Isolation,
    /// Search environment for NVRTC.
    pub surroundings: Surroundings,
}

impl Default for CompilerSettings {
    /// Returns the defaults: workers of the running executable on all cores but one, 60 s and at
    /// most 4 GiB for each compile, and the user's cache.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_jobs(cores.saturating_sub(1).max(1))
    }
}

impl CompilerSettings {
    /// Returns the default with this number of concurrent compiles, which share the memory.
    #[must_use]
    pub fn with_jobs(jobs: usize) -> Self {
        Self {
            jobs,
            deadline: Duration::from_secs(60),
            memory_bytes: memory_share(jobs),
            cache: DiskCache::default_folder(),
            cache_bytes_max: CACHE_BYTES_MAX,
            // This link refers to the running program, even if its file has since been replaced by a newer
            // build.
            isolation: Isolation::Workers {
                program: PathBuf::from("/proc/self/exe"),
            },
            surroundings: Surroundings::from_env(),
        }
    }
}

/// Compiles sources. Shared between threads by reference; each call blocks its caller.
#[derive(Debug)]
pub struct Compiler {
    nvrtc: Nvrtc,
    cache: Option<DiskCache>,
    pool: Option<Pool>,
    memory_bytes: u64,
    /// Targets of links among CUDA's own headers.
    linked_folders: Vec<PathBuf>,
    /// Templates whose architecture-specific target was reported.
    retargeted: Mutex<BTreeSet<String>>,
    preludes: Preludes,
}

impl Compiler {
    /// Finds NVRTC and creates the pool, whose processes start with the first work.
    ///
    /// # Errors
    /// No NVRTC; the message contains the remedy.
    pub fn new(settings: CompilerSettings) -> Result<Self, NvrtcMissing> {
        let nvrtc = Nvrtc::find(&settings.surroundings)?;
        let pool = match settings.isolation {
            Isolation::InProcess => None,
            Isolation::Workers { program } => {
                let pool = PoolSettings {
                    program,
                    library: nvrtc.library.clone(),
                    deadline: settings.deadline,
                    memory_bytes: settings.memory_bytes,
                    precompiled: settings.cache.as_ref().and_then(|cache| {
                        if !nvrtc.precompiles() {
                            return None;
                        }
                        Some(PrecompiledPlace {
                            cache: std::path::absolute(cache).ok()?,
                            bytes_max: PRECOMPILED_BYTES_MAX / settings.jobs.max(1) as u64,
                        })
                    }),
                };
                Some(Pool::new(settings.jobs, pool))
            }
        };
        let own = nvrtc.folders();
        Ok(Self {
            linked_folders: own
                .iter()
                .flat_map(|folder| linked_folders(folder))
                .collect(),
            nvrtc,
            cache: settings
                .cache
                .map(|folder| DiskCache::new(folder, settings.cache_bytes_max)),
            pool,
            memory_bytes: settings.memory_bytes,
            retargeted: Mutex::default(),
            preludes: Preludes::default(),
        })
    }

    /// Returns the NVRTC in use.
    #[must_use]
    pub fn nvrtc(&self) -> &Nvrtc {
        &self.nvrtc
    }

    /// Reports whether results are cached.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.cache.is_some()
    }

    /// Compiles one source, or returns the cached result.
    ///
    /// # Errors
    /// Only failures of the tuner's tools; those of the source are in the outcome.
    pub fn compile(&self, source: &Source) -> Result<CompileOutcome, CompileError> {
        let result = match self.raw(source, |ptx| ptx)? {
            Ok(result) => result,
            Err(failed) => return Ok(Err(failed)),
        };
        if result.head.status == RawStatus::Refused
            && let Some(specific) = source.architecture_specific(&result.head.log)
            && let Ok(compiled) = self.raw(&specific, |ptx| ptx)?
            && compiled.head.status == RawStatus::Compiled
        {
            self.report_target(source, &specific.arch, &result.head.log);
            return self.interpreted(compiled, &specific);
        }
        self.interpreted(result, source)
    }

    /// Reports once for each template that it was compiled for an architecture-specific target.
    fn report_target(&self, source: &Source, specific: &str, log: &str) {
        let (Some(found), Ok(target)) = (unsupported(log), specific.parse::<ComputeTarget>())
        else {
            return;
        };
        if lock(&self.retargeted).insert(source.name.clone()) {
            let place = found.place.unwrap_or(&source.name);
            tracing::warn!(
                "{}: `{}` is not in {}, so the code is for {target}: it runs on {}; write \
                 `compile: {{ arch_features: a }}` in the search space to ask for that, which saves \
                 one compile of each candidate",
                line(place),
                line(found.instruction),
                source.arch,
                target.reach()
            );
        }
    }

    /// Returns the cached result of a source.
    pub(super) fn remembered(&self, source: &Source) -> Option<RawResult> {
        let key = self.cache_key(source, &self.request(source));
        self.cache.as_ref()?.load(&key)
    }

    /// Interprets a result for its source.
    pub(super) fn interpreted(
        &self,
        result: RawResult,
        source: &Source,
    ) -> Result<CompileOutcome, CompileError> {
        result.interpret(source, &self.nvrtc.version(), self.memory_bytes)
    }

    /// Returns the cached result, or a new one, whose PTX is filtered by `keep`. If macros of the
    /// source break an included library, the library is included before them.
    pub(super) fn raw(&self, source: &Source, keep: impl Fn(Vec<u8>) -> Vec<u8>) -> PoolReply {
        let result = self.raw_as_written(source, &keep)?;
        if let Ok(refused) = &result
            && refused.head.status == RawStatus::Refused
            && let Some(other) = source.libraries_first(&refused.head.log)
            && let Ok(compiled) = self.raw_as_written(&other, &keep)?
            && compiled.head.status == RawStatus::Compiled
        {
            return Ok(Ok(compiled));
        }
        Ok(result)
    }

    fn raw_as_written(&self, source: &Source, keep: impl Fn(Vec<u8>) -> Vec<u8>) -> PoolReply {
        let mut request = self.request(source);
        let key = self.cache_key(source, &request);
        if let Some(result) = self.cache.as_ref().and_then(|cache| cache.load(&key)) {
            return Ok(Ok(result));
        }
        if self.pool.as_ref().is_some_and(Pool::precompiles) {
            request.prelude = self.preludes.of(source, &request, &self.nvrtc.folders());
        }
        let mut reply = self.run(&request)?;
        // A crash or an exceeded limit is the source's fault only if it also occurs without the prelude.
        if reply.is_err() && !request.prelude.is_empty() {
            request.prelude.clear();
            reply = self.run(&request)?;
        }
        let mut result = match reply {
            Ok(result) => result,
            failed => return Ok(failed),
        };
        result.ptx = keep(result.ptx);
        if let Some(cache) = &self.cache {
            cache.store(&key, &result);
        }
        Ok(Ok(result))
    }

    /// Runs NVRTC.
    fn run(&self, request: &Request) -> PoolReply {
        let Some(pool) = &self.pool else {
            let folder = std::env::current_dir()
                .map_err(|error| CompileError::new(format!("no working directory: {error}")))?;
            return Ok(Ok(worker::compile(&self.nvrtc, request, &folder, None)));
        };
        pool.compile(request)
    }

    fn request(&self, source: &Source) -> Request {
        let mut options = source.options.clone();
        let own = self.nvrtc.folders();
        let folders: Vec<PathBuf> = source.include_dirs.iter().chain(&own).cloned().collect();
        options.extend(
            folders
                .iter()
                .map(|folder| format!("-I{}", folder.display())),
        );
        let mut headers: Vec<Header> = source.headers.iter().map(with_own_lines).collect();
        let mut text = source.text.clone();
        lead_with_attributes(&mut text, &mut headers);
        options.push(options::TRAILING_ATTRIBUTE.to_owned());
        let mut names = vec![source.name.clone()];
        names.extend(headers.iter().map(|header| header.path.clone()));
        names.extend(line_names(&text));
        Request {
            text,
            names,
            headers,
            options,
            folders,
            expressions: source.expressions().map(str::to_owned).collect(),
            linked_folders: self.linked_folders.clone(),
            prelude: String::new(),
        }
    }

    /// Returns the hash of everything that determines the result, including paths: two checkouts do not
    /// share entries, because the PTX contains the template's path. The library's size distinguishes builds
    /// of one version.
    fn cache_key(&self, source: &Source, request: &Request) -> ContentHash {
        let options = request.options.join("\n");
        let bytes = std::fs::metadata(&self.nvrtc.library).map_or(0, |file| file.len());
        ContentHash::from_parts([
            request.text.as_bytes(),
            source.template_hash.as_str().as_bytes(),
            options.as_bytes(),
            self.nvrtc.version().as_bytes(),
            &bytes.to_le_bytes(),
            source.arch.as_bytes(),
            request.expressions.join("\n").as_bytes(),
            host_headers::hash().as_str().as_bytes(),
        ])
    }
}

/// Moves attributes after the braces of types to their keyword, as NVRTC drops them there and judges another
/// layout than the program's.
fn lead_with_attributes(text: &mut String, headers: &mut [Header]) {
    let mut macros = attribute_macros(text);
    macros.extend(
        headers
            .iter()
            .flat_map(|header| attribute_macros(&header.text)),
    );
    for each in headers
        .iter_mut()
        .map(|header| &mut header.text)
        .chain([text])
    {
        if let Cow::Owned(made) = with_leading_attributes(each, &macros) {
            *each = made;
        }
    }
}

/// Returns the files in `#line` directives of a text, each once.
fn line_names(text: &str) -> BTreeSet<String> {
    let directives = text.lines().filter_map(|line| line.strip_prefix("#line "));
    directives
        .filter_map(|rest| rest.split('"').nth(1).map(str::to_owned))
        .collect()
}

/// Returns a header that reports its own path and lines instead of its include name.
fn with_own_lines(header: &Header) -> Header {
    let text = format!("#line 1 {}\n{}", quoted(&header.path), header.text);
    Header {
        text,
        ..header.clone()
    }
}

/// Returns the memory of one of several workers: an equal share of half the machine's, between 1 and 4 GiB.
fn memory_share(jobs: usize) -> u64 {
    const GIB: u64 = 1 << 30;
    let total = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
    let share = total.map_or(4 * GIB, |kib| (kib << 10) / 2 / jobs as u64);
    share.clamp(GIB, 4 * GIB)
}
