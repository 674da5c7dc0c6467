//! Facts of a cubin: a hash of its executable content, and register counts to check the log
//! against.

use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{Endianness, ReadRef as _};
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

/// Prefixes of the sections that decide a kernel's behaviour. Debug sections, notes and the string
/// tables are excluded: they hold line numbers and file names, so a template that differs in a
/// comment hashes the same.
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
/// A message, if the bytes are not a 64-bit ELF file.
pub(super) fn read(cubin: &[u8]) -> Result<CubinFacts, String> {
    let describe = |error: object::read::Error| format!("the cubin is not readable: {error}");
    let header = FileHeader64::<Endianness>::parse(cubin).map_err(describe)?;
    let endian = header.endian().map_err(describe)?;
    let sections = header.sections(endian, cubin).map_err(describe)?;
    let mut decisive: BTreeMap<&[u8], Vec<u8>> = BTreeMap::new();
    let mut registers = BTreeMap::new();
    let mut text_bytes = 0;
    for section in sections.iter() {
        let name = sections.section_name(endian, section).map_err(describe)?;
        let text = String::from_utf8_lossy(name);
        if !DECISIVE.iter().any(|prefix| text.starts_with(prefix)) {
            continue;
        }
        let info = section.sh_info(endian);
        if let Some(kernel) = text.strip_prefix(".text.") {
            // The top byte of the section's info field is the register count.
            registers.insert(kernel.to_owned(), info >> 24);
            text_bytes += section.sh_size(endian);
        }
        let mut content = Vec::new();
        content.extend(section.sh_type(endian).0.to_le_bytes());
        content.extend(section.sh_flags(endian).0.to_le_bytes());
        content.extend(section.sh_size(endian).to_le_bytes());
        content.extend(info.to_le_bytes());
        if let Some((offset, size)) = section.file_range(endian) {
            let bytes = cubin.read_bytes_at(offset, size);
            content.extend(bytes.map_err(|()| "the cubin is truncated".to_owned())?);
        }
        decisive.insert(name, content);
    }
    let parts = decisive
        .iter()
        .flat_map(|(name, content)| [*name, content.as_slice()]);
    Ok(CubinFacts {
        hash: ContentHash::from_parts(parts),
        text_bytes,
        registers,
    })
}

#[cfg(test)]
mod tests;
