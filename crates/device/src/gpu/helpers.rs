//! The tuner's own kernels: compiled here for the GPU at hand, run by the worker.

use super::context::Gpu;
use super::driver::{Function, LaunchConfig};
use super::session::GpuSession;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Code;
use tuner_kernel::build::code;
use tuner_kernel::compile::{
    Binding, CompileError, CompileOutcome, Compiler, LaunchShape, Template, render,
};

/// Source of the kernels.
const SOURCE: &str = include_str!("helpers.cu");

/// The kernels, with the names that the source gives them.
pub(super) mod entry {
    pub(in super::super) const POISON_SHARED: &str = "tuner_poison_shared";
    pub(in super::super) const STAMP: &str = "tuner_stamp";
    pub(in super::super) const SPIN: &str = "tuner_spin";
    pub(in super::super) const NULL: &str = "tuner_null";
    pub(in super::super) const COPY: &str = "tuner_copy";
    pub(in super::super) const READ: &str = "tuner_read";
    pub(in super::super) const SINGLE: &str = "tuner_single";
    pub(in super::super) const TENSOR: &str = "tuner_tensor";
}

/// Compiled helper kernels.
#[derive(Debug, Clone)]
pub struct Helpers {
    code: Code,
}

/// Why there are none.
#[derive(Debug, thiserror::Error)]
pub enum HelpersError {
    /// The compiler does not work.
    #[error(transparent)]
    Compiler(#[from] CompileError),
    /// It refuses them, most likely because it does not know the GPU.
    #[error("the tuner's own kernels do not compile for {arch}: {detail}")]
    Refused {
        /// Target.
        arch: String,
        /// The compiler's words.
        detail: String,
    },
}

/// Compiles one of our own sources, with `first` among its kernels.
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
    let launches = [LaunchShape {
        entry: first.to_owned(),
        dynamic_shared: 0,
    }];
    let binding = Binding {
        macros: &[],
        options: &[],
        launches: &launches,
    };
    match compiler.compile(&render(&template, binding, arch))? {
        CompileOutcome::Compiled(image) => Ok(code(&image)),
        other => Err(HelpersError::Refused {
            arch: arch.to_owned(),
            detail: other
                .failure()
                .map(|(_, detail)| detail)
                .unwrap_or_default(),
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

    /// Takes what [`Helpers::compile`] made, in the worker.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self { code }
    }

    /// Queues one of the kernels.
    pub(super) fn launch(
        &self,
        gpu: &mut Gpu,
        entry: &str,
        config: &LaunchConfig,
    ) -> Result<(), Judgement> {
        let function = gpu.function(&self.code, entry)?;
        gpu.opt_in(function, u64::from(config.shared_bytes))?;
        gpu.call(|driver, stream| driver.launch(function, stream, config))
    }
}

/// Blocks of `threads` threads with parameters and no shared memory.
pub(super) fn config(blocks: u32, threads: u32, parameters: Vec<Vec<u8>>) -> LaunchConfig {
    LaunchConfig {
        grid: [blocks.max(1), 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 0,
        parameters,
        cooperative: false,
    }
}

impl GpuSession {
    /// One of our kernels, loaded.
    pub(super) fn helper(&mut self, entry: &str) -> Result<Function, Judgement> {
        self.gpu.function(&self.helpers.code, entry)
    }

    /// Fills the shared memory of all multiprocessors with NaN: a block takes all of one, and
    /// there are several for each.
    pub(super) fn poison_shared(&mut self) -> Result<(), Judgement> {
        let facts = self.gpu.facts();
        let bytes = facts.shared_bytes_optin / 4 * 4;
        let words = (bytes / 4).to_le_bytes().to_vec();
        let config = LaunchConfig {
            shared_bytes: bytes,
            ..config(facts.sm_count * 2, 256, vec![words])
        };
        self.helpers
            .launch(&mut self.gpu, entry::POISON_SHARED, &config)
    }
}
