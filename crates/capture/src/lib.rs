//! Captured launches: the format of a folder that `tuner exec --capture` writes and `tuner adopt
//! --captured` reads.
//!
//! ```text
//! DIR/capture.json        the launches, see docs/captures.md
//! DIR/data/HASH.gz        contents of buffers, named by the SHA-256 of the uncompressed bytes
//! ```
//! Files are written to a temporary name and renamed, contents before the document that names them: if the
//! writer is interrupted, all launches in the document are complete.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod read;
mod write;

pub use read::{Capture, CaptureError, base_name, is_value_name};
pub use write::{BufferContents, Limits, Shape, Writer, shown_bytes};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Version of the document.
pub const FORMAT: u32 = 1;
/// Name of the document in its folder.
pub const DOCUMENT: &str = "capture.json";
/// Name of the folder of contents.
pub const DATA: &str = "data";

/// Contents of `capture.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of the format: [`FORMAT`].
    pub format: u32,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Named values from the user: macros with which the program was built, or arguments.
    #[serde(default)]
    pub values: BTreeMap<String, i64>,
    /// The device, such as `vgpu:a100`.
    pub device: String,
    /// The end of the program; absent if the capture was interrupted.
    #[serde(default)]
    pub ended: Option<Ended>,
    /// Sentences about launches that were not captured.
    #[serde(default)]
    pub skipped: Vec<String>,
    /// The launches, in the order of the program.
    pub launches: Vec<Launch>,
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its exit code; absent if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// One launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Name of the kernel as in the source, without parameters.
    pub kernel: String,
    /// The name with template arguments and parameters.
    pub signature: String,
    /// Mangled name.
    pub symbol: String,
    /// Number of the launch in the program, from 1.
    pub number: u64,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// All blocks are resident at once.
    #[serde(default)]
    pub cooperative: bool,
    /// Blocks of a cluster in x, y, z, if the launch specifies them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Position of the kernel in the source, from the line information of its PTX.
    #[serde(default)]
    pub source: Option<SourcePlace>,
    /// The parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Allocations that the parameters point to, and module variables that the launch used.
    pub buffers: Vec<Buffer>,
    /// Hazards that the launch has.
    #[serde(default)]
    pub hazards: u64,
}

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePlace {
    /// The file as the compiler recorded it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// SHA-256 of the file at the time of the capture; absent if it could not be read.
    pub sha256: Option<String>,
}

/// A parameter of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Offset in the parameter block, bytes.
    pub offset: u32,
    /// Size, bytes.
    pub bytes: u32,
    /// Its bytes, hexadecimal.
    pub value: String,
    /// Words of it that are addresses in [`Launch::buffers`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<Pointer>,
}

impl Parameter {
    /// Returns the bytes of the value; empty if the text is damaged.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        hex::decode(&self.value).unwrap_or_default()
    }
}

/// An address in a parameter or a module variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// Byte offset of the address in its parameter or variable.
    pub at: u32,
    /// Index of the buffer.
    pub buffer: usize,
    /// Offset in the buffer, bytes.
    pub offset: u64,
}

/// Memory that a launch used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Display name, such as `device memory of 4096 bytes (allocation 1)`.
    pub name: String,
    /// The module variable, as in the source; absent for allocations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Size, bytes.
    pub bytes: u64,
    /// Hash of its contents before the launch; absent if the launch did not reach it by a pointer.
    #[serde(default)]
    pub before: Option<String>,
    /// Hash of its contents after the launch, if the launch wrote to it.
    #[serde(default)]
    pub after: Option<String>,
    /// Bytes that the launch read.
    pub read: Ranges,
    /// Bytes that it wrote.
    pub written: Ranges,
    /// Bytes that were never written before the launch.
    #[serde(default, skip_serializing_if = "Ranges::is_empty")]
    pub undefined: Ranges,
    /// Addresses that a variable contained before the launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<Pointer>,
}

/// Maximum number of stored ranges of a list.
pub const MAX_RANGES: usize = 1024;

/// Byte ranges, ascending and disjoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges {
    /// Total bytes of all ranges.
    pub bytes: u64,
    /// First byte and end of each; the first [`MAX_RANGES`].
    pub list: Vec<[u64; 2]>,
    /// First byte of the first and end of the last.
    pub bounds: [u64; 2],
    /// The list is incomplete, or the launch had more accesses than the device records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Ranges {
    /// Merges ranges in any order.
    #[must_use]
    pub fn merge(mut ranges: Vec<Range<u64>>) -> Ranges {
        ranges.retain(|range| range.start < range.end);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut list: Vec<[u64; 2]> = Vec::new();
        for range in ranges {
            match list.last_mut() {
                Some([_, end]) if range.start <= *end => *end = (*end).max(range.end),
                _ => list.push([range.start, range.end]),
            }
        }
        // Of the whole list: `within` needs the end of the ranges that are cut off below.
        let bounds = match (list.first(), list.last()) {
            (Some([start, _]), Some([_, end])) => [*start, *end],
            _ => [0, 0],
        };
        let bytes = list.iter().map(|[start, end]| end - start).sum();
        let cut = list.len() > MAX_RANGES;
        list.truncate(MAX_RANGES);
        Ranges {
            bytes,
            list,
            bounds,
            cut,
        }
    }

    /// Reports whether there are no ranges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0 && !self.cut
    }

    /// Returns the part of the ranges inside `window`, relative to its start.
    #[must_use]
    pub fn within(&self, window: &Range<u64>) -> Ranges {
        let clipped = self.list.iter().map(|[start, end]| {
            let (start, end) = ((*start).max(window.start), (*end).min(window.end));
            start.saturating_sub(window.start)..end.saturating_sub(window.start)
        });
        let mut part = Ranges::merge(clipped.collect());
        if self.cut {
            // Ranges beyond the list may be anywhere between the bounds.
            part.cut = self.bounds[0] < window.end && window.start < self.bounds[1];
        }
        part
    }

    /// Reports whether every byte below `length` is in the ranges.
    #[must_use]
    pub fn covers(&self, length: u64) -> bool {
        matches!(self.list.as_slice(), [[0, end], ..] if *end >= length)
    }
}

#[cfg(test)]
mod tests;
