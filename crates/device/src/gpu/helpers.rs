//! The tuner's helper kernels: compiled by the tuner for the selected GPU, run by the worker.

use super::context::Gpu;
use super::driver::{Function, LaunchConfig};
use super::session::GpuSession;
use std::collections::HashMap;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, PlanLaunch};
use tuner_kernel::build::code;
use tuner_kernel::compile::{CompileError, Compiler, Template, render};

/// Source of the kernels.
const SOURCE: &str = concat!(include_str!("helpers.cu"), include_str!("scan.cu"));

/// Names of the kernels in the source.
#[expect(missing_docs, reason = "the names say it")]
pub mod entry {
    pub const POISON_SHARED: &str = "tuner_poison_shared";
    pub const STAMP: &str = "tuner_stamp";
    pub const SPIN: &str = "tuner_spin";
    pub const NULL: &str = "tuner_null";
    pub const COPY: &str = "tuner_copy";
    pub const READ: &str = "tuner_read";
    pub const SINGLE: &str = "tuner_single";
    pub const TENSOR: &str = "tuner_tensor";
    pub const GUARD: &str = "tuner_guard";
    pub const DIFFER: &str = "tuner_differ";
    pub const RUN: &str = "tuner_run";
    pub const COMPARE: &str = "tuner_compare";
}

/// Compiled helper kernels.
#[derive(Debug, Clone)]
pub struct Helpers {
    code: Code,
    /// Kernels that were used before. Their code stays loaded while it is referenced here.
    resolved: HashMap<&'static str, Function>,
}

/// Reasons why the helper kernels are unavailable.
#[derive(Debug, thiserror::Error)]
pub enum HelpersError {
    /// The compiler does not work.
    #[error(transparent)]
    Compiler(#[from] CompileError),
    /// The compiler rejects them, most likely because it does not support the GPU.
    #[error("the tuner's own kernels do not compile for {arch}: {detail}")]
    Refused {
        /// Target.
        arch: String,
        /// The compiler's message.
        detail: String,
    },
}

/// Compiles a source of the tuner, with `first` among its kernels.
///
/// # Errors
/// See [`HelpersError`].
pub fn compile(
    compiler: &Compiler,
    name: &str,
    source: &str,
    first: &str,
    arch: &str,
) -> Result<Code, HelpersError> {
    let template = Template::new(name, source, Vec::new(), Vec::new());
    let launch = PlanLaunch::new(first, [1; 3], [1; 3], Vec::new());
    match compiler.compile(&render(&template, &[], &[], &[launch], arch))? {
        Ok(image) => Ok(code(&image)),
        Err(failed) => Err(HelpersError::Refused {
            arch: arch.to_owned(),
            detail: failed.detail,
        }),
    }
}

impl Helpers {
    /// Compiles the kernels for a target such as `sm_90`.
    ///
    /// # Errors
    /// See [`HelpersError`].
    pub fn compile(compiler: &Compiler, arch: &str) -> Result<Code, HelpersError> {
        compile(compiler, "helpers.cu", SOURCE, entry::NULL, arch)
    }

    /// Creates the helpers from the result of [`Helpers::compile`], in the worker.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self {
            code,
            resolved: HashMap::new(),
        }
    }

    /// Returns a kernel ready for a launch: looking it up takes as long as several launches.
    fn resolve(
        &mut self,
        gpu: &mut Gpu,
        entry: &'static str,
        shared_bytes: u32,
    ) -> Result<Function, Judgement> {
        if let Some(known) = self.resolved.get(entry) {
            return Ok(*known);
        }
        let function = gpu.function(&self.code, entry)?;
        gpu.opt_in(function, u64::from(shared_bytes))?;
        self.resolved.insert(entry, function);
        Ok(function)
    }
}

/// Builds a launch of blocks with `threads` threads, with parameters and without shared memory.
pub(super) fn config(blocks: u32, threads: u32, parameters: Vec<Vec<u8>>) -> LaunchConfig {
    LaunchConfig {
        grid: [blocks.max(1), 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 0,
        parameters,
        cluster: None,
        cooperative: false,
    }
}

impl GpuSession {
    /// Returns a loaded helper kernel.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn helper(&mut self, entry: &'static str) -> Result<Function, Judgement> {
        self.helpers.resolve(&mut self.gpu, entry, 0)
    }

    /// Queues a helper kernel.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn queue(&mut self, entry: &'static str, config: &LaunchConfig) -> Result<(), Judgement> {
        let function = self
            .helpers
            .resolve(&mut self.gpu, entry, config.shared_bytes)?;
        self.gpu
            .call(|driver, stream| driver.launch(function, stream, config))
    }

    /// Fills the shared memory of all multiprocessors with NaN: each block takes all of one
    /// multiprocessor, and there are several per multiprocessor.
    pub(super) fn poison_shared(&mut self) -> Result<(), Judgement> {
        let facts = self.gpu.facts();
        let bytes = facts.shared_bytes_optin / 4 * 4;
        let words = (bytes / 4).to_le_bytes().to_vec();
        let config = LaunchConfig {
            shared_bytes: bytes,
            ..config(facts.sm_count * 2, 256, vec![words])
        };
        self.queue(entry::POISON_SHARED, &config)
    }
}
