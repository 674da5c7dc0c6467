//! Hazards as data: the access, the allocation, the other access of a race, and a key that is the
//! same in every launch.

use super::{Hazard, HazardKind, SourceLine, Space};
use crate::memory::BufferId;

/// Size and direction of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HazardAccess {
    /// Bytes of one thread.
    pub bytes: u32,
    /// It stores.
    pub write: bool,
}

/// The allocation of global memory that an access hit or meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HazardAllocation {
    /// The buffer.
    pub buffer: BufferId,
    /// Its name.
    pub name: String,
    /// Byte of it; before or behind it where the access is out of bounds.
    pub offset: i64,
    /// Its size, bytes; that before it was freed.
    pub bytes: u64,
    /// It was freed.
    pub freed: bool,
}

/// The earlier access of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HazardConflict {
    /// Block and thread index; `None` where several blocks were there.
    pub thread: Option<[[u32; 3]; 2]>,
    /// It stores.
    pub write: bool,
    /// An asynchronous copy that was not waited for.
    pub asynchronous: bool,
    /// Its size, bytes, where it is known.
    pub bytes: Option<u32>,
    /// Its line in the PTX text, from 1.
    pub ptx_line: u32,
}

/// Identity of a hazard across launches: the same for every block and thread that finds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HazardKey {
    /// Its kind.
    pub kind: HazardKind,
    /// Memory space of the access.
    pub space: Space,
    /// CUDA line of the access, or its PTX line where none is known.
    pub at: CodeLine,
    /// The same of the access it conflicts with.
    pub other: Option<CodeLine>,
}

/// A line of code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeLine {
    /// Of the CUDA source.
    Source(SourceLine),
    /// Of the PTX text, from 1.
    Ptx(u32),
}

impl CodeLine {
    fn new(source: Option<&SourceLine>, ptx_line: u32) -> CodeLine {
        match source {
            Some(line) => CodeLine::Source(line.clone()),
            None => CodeLine::Ptx(ptx_line),
        }
    }
}

impl Hazard {
    /// The key under which the same mistake is found in every launch.
    #[must_use]
    pub fn key(&self) -> HazardKey {
        let ptx_line = self.conflict.map(|c| c.ptx_line);
        let other = match (&self.other, ptx_line) {
            (None, None) => None,
            (source, line) => Some(CodeLine::new(source.as_ref(), line.unwrap_or(0))),
        };
        HazardKey {
            kind: self.kind,
            space: self.space,
            at: CodeLine::new(self.source.as_ref(), self.ptx_line),
            other,
        }
    }
}
