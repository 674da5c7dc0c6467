//! Facts of a cubin: a hash of its executable content, and register counts for comparison with the log.

use sass::{CubinError, Section};
use std::collections::BTreeMap;
use tuner_core::units::ContentHash;

/// Facts read from one cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CubinFacts {
    /// Hash of code, constants, launch attributes and relocations.
    pub(super) hash: ContentHash,
    /// Length of all kernels' instructions, bytes.
    pub(super) text_bytes: u64,
    /// Registers of each kernel.
    pub(super) registers: BTreeMap<String, u32>,
}

/// Prefixes of the sections that determine a kernel's behaviour. Debug sections, notes and string tables
/// are excluded: they contain line numbers and file names, so that templates that differ in a comment have
/// equal hashes.
const DECISIVE: [&str; 7] = [
    ".text.",
    ".nv.info",
    ".nv.constant",
    ".nv.shared",
    ".nv.global",
    ".rela.text",
    ".rel.text",
];

/// Reads a cubin.
///
/// # Errors
/// Bytes that are not a complete 64-bit ELF file.
pub(super) fn read(cubin: &[u8]) -> Result<CubinFacts, CubinError> {
    let mut decisive = BTreeMap::new();
    let mut registers = BTreeMap::new();
    let mut text_bytes = 0;
    for section in Section::read_all(cubin).ok_or(CubinError)? {
        let is_decisive = |prefix: &&str| section.name.starts_with(prefix);
        if !DECISIVE.iter().any(is_decisive) {
            continue;
        }
        if let Some(kernel) = section.name.strip_prefix(".text.") {
            registers.insert(kernel.to_owned(), section.info >> 24);
            text_bytes += section.size;
        }
        let mut content = Vec::new();
        content.extend(section.kind.to_le_bytes());
        content.extend(section.flags.to_le_bytes());
        content.extend(section.size.to_le_bytes());
        content.extend(section.info.to_le_bytes());
        content.extend(section.data);
        decisive.insert(section.name, content);
    }
    let parts = decisive
        .iter()
        .flat_map(|(name, content)| [name.as_bytes(), content.as_slice()]);
    Ok(CubinFacts {
        hash: ContentHash::from_parts(parts),
        text_bytes,
        registers,
    })
}

#[cfg(test)]
mod tests;
