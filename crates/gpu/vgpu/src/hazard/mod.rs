//! Hazards: defects of a kernel, their locations, and the conflicting accesses.
#![expect(
    clippy::indexing_slicing,
    reason = "the executor: threads and blocks are numbered by the launch, whose tables have an entry for each"
)]

pub(crate) mod clock;
pub(crate) mod shadow;
pub(crate) mod history;
mod past;
mod packed;
pub(crate) mod word;
pub(crate) mod global;
pub(crate) mod sync;
pub(crate) mod report;
mod details;

pub use details::{CodeLine, HazardAccess, HazardAllocation, HazardConflict, HazardKey};

use std::fmt;
use std::sync::Arc;

/// A line of CUDA source, from the `.loc` directives of `-lineinfo`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// File name as the compiler recorded it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Memory space of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Device memory.
    Global,
    /// Memory of one block.
    Shared,
    /// Memory of one thread.
    Local,
    /// Constant memory.
    Const,
    /// Kernel or function parameters.
    Param,
    /// Tensor memory of one block; an address has the lane above its 16 bits of the column.
    Tensor,
    /// An address in none of the windows.
    Generic,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
            Space::Tensor => "tensor",
            Space::Generic => "generic",
        })
    }
}

/// Kind of defect, in order of precedence (the first is the verdict).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HazardKind {
    /// An access outside every allocation, counted from requested sizes.
    OutOfBounds,
    /// An address that is not a multiple of the access size.
    Misaligned,
    /// Threads wait at different barriers of one phase, or exited while others wait.
    BarrierDivergence,
    /// No thread can make progress.
    Deadlock,
    /// Two accesses to one byte, at least one a write, not both atomic, without order.
    Race,
    /// A load of bytes that were never written.
    Uninitialized,
    /// The instruction budget or the deadline ran out.
    Timeout,
    /// Trap, failed assertion or illegal operand.
    Crashed,
    /// A read of a module variable that holds the value of an earlier run, not its loaded value.
    ModuleState,
}

impl HazardKind {
    /// The word used in verdicts, such as `out_of_bounds`.
    pub fn name(self) -> &'static str {
        match self {
            HazardKind::OutOfBounds => "out_of_bounds",
            HazardKind::Misaligned => "misaligned",
            HazardKind::BarrierDivergence => "barrier_divergence",
            HazardKind::Deadlock => "deadlock",
            HazardKind::Race => "race",
            HazardKind::Uninitialized => "uninitialized",
            HazardKind::Timeout => "timeout",
            HazardKind::Crashed => "crashed",
            HazardKind::ModuleState => "module_state",
        }
    }
}

/// One hazard; equal ones (same kind and instructions) are counted in `repeated`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hazard {
    /// Kind of defect.
    pub kind: HazardKind,
    /// One sentence for the user.
    pub detail: String,
    /// CUDA line of the reported access.
    pub source: Option<SourceLine>,
    /// CUDA line of the conflicting access.
    pub other: Option<SourceLine>,
    /// Line in the PTX text, from 1.
    pub ptx_line: u32,
    /// Block index of the thread.
    pub block: [u32; 3],
    /// Thread index in its block.
    pub thread: [u32; 3],
    /// Address within `space` (global: virtual address; shared and local: offset).
    pub address: u64,
    /// Memory space of the access.
    pub space: Space,
    /// Number of occurrences, including this one.
    pub repeated: u64,
    /// Size and direction of the access that was caught, where it is one.
    pub access: Option<HazardAccess>,
    /// The allocation it hit or meant, in global memory.
    pub allocation: Option<HazardAllocation>,
    /// The earlier access of a race.
    pub conflict: Option<HazardConflict>,
}
