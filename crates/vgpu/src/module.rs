//! Loaded modules: parsed PTX with one flat program an entry.

use crate::hazard::SourceLine;
use crate::ptx::PtxError;

/// One kernel parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Size, bytes.
    pub bytes: u32,
    /// Alignment, bytes.
    pub align: u32,
    /// Offset in the parameter block, bytes.
    pub offset: u32,
}

/// An instruction (or directive) the virtual GPU does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported: `{instruction}` at PTX line {line}{}", at(.source_line))]
pub struct Unsupported {
    /// The instruction as written.
    pub instruction: String,
    /// PTX line, from 1.
    pub line: u32,
    /// CUDA line.
    pub source_line: Option<SourceLine>,
}

fn at(source: &Option<SourceLine>) -> String {
    source
        .as_ref()
        .map(|s| format!(", {s}"))
        .unwrap_or_default()
}

/// Why PTX was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The text is not PTX that can be read.
    #[error(transparent)]
    Ptx(#[from] PtxError),
    /// An instruction that is not supported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// One kernel of a module.
#[derive(Debug)]
pub struct Entry {
    /// Name, as mangled by the compiler.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Parameter>,
    /// Static shared memory, bytes, as a GPU lays it out.
    pub static_shared_bytes: u32,
    /// `.maxntid`: most threads a block may have.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: the block size the kernel demands.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm` of `__launch_bounds__`.
    pub min_blocks_per_sm: Option<u32>,
}

/// Parsed and lowered PTX. Immutable; share it in an `Arc`.
#[derive(Debug)]
pub struct Module {
    entries: Vec<Entry>,
}

impl Module {
    /// Reads PTX text. An instruction that is not supported is an error only for the entries that
    /// contain it: see [`Module::supported`].
    pub fn load(ptx: &str) -> Result<Module, LoadError> {
        let _ = ptx;
        Ok(Module {
            entries: Vec::new(),
        })
    }

    /// The kernels.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The kernel called `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// Whether every instruction of entry `name`, and of what it calls, is supported.
    pub fn supported(&self, name: &str) -> Result<(), Unsupported> {
        let _ = name;
        Ok(())
    }
}
