//! Compilation of a bound configuration to machine code: render the source, compile it with NVRTC in worker
//! processes, parse registers, spills and shared memory, cache the result on disk.
//!
//! ```text
//! Template + macros ─ render ─► Source ─ cache? ─► pool of workers ─ NVRTC ─► Image
//! ```
//!
//! A source that does not compile, or that makes the compiler hang, crash or grow, is a
//! [`CompileOutcome`]; an error here means that the tuner's own tools are broken.

mod cache;
mod compiler;
mod error;
mod constants;
mod cubin;
mod discover;
mod host_headers;
mod image;
mod nvrtc;
mod options;
mod pool;
mod precompiled;
mod prelude;
mod probe;
mod ptx_only;
mod render;
mod request;
mod resources;
mod sandbox;
mod template;
mod worker;

pub use cache::DiskCache;
pub use compiler::{Compiler, CompilerSettings, Isolation};
pub(crate) use discover::absolute_variable;
pub use discover::{Candidate, Surroundings, install_command};
pub use error::CompileError;
pub use host_headers::{included_host_headers, is_host_header};
pub use image::{CompileOutcome, Image};
pub use nvrtc::{Nvrtc, NvrtcError, NvrtcMissing};
pub use probe::{Probe, ProbedKernel};
pub use render::{Source, render, render_bound};
pub use resources::{KernelResources, parse_log};

pub use template::{Header, MacroDefault, Template, included_names};
pub(crate) use template::{conditions, definitions, included_macros};
pub use worker::{WORKER_COMMAND, serve};
