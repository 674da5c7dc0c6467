//! Linkage of a program with the CUDA runtime, and its embedded images.

use cuda_shim::redirect::{Runtime, runtime_in};
use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable};

/// Linkage of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linkage {
    /// A runtime library of this crate, or none.
    Shared,
    /// The runtime is part of the program, whose symbol table has its functions.
    StaticRuntime,
    /// The runtime is part of the program, and its functions cannot be found: the symbol table is missing.
    StrippedRuntime,
    /// A runtime library that this crate does not have, by name.
    OldRuntime(String),
    /// A script, or a program without CUDA.
    Other,
}

/// Section of the images that the compiler embeds.
const SECTION: &[u8] = b".nv_fatbin";
/// Begin of the runtime libraries' names.
const LIBRARY: &str = "libcudart.so.";

/// Reads the linkage from the bytes of a program: a fat binary without a shared runtime library means that
/// the runtime is in the program.
#[must_use]
pub fn read_linkage(bytes: &[u8]) -> Linkage {
    read(bytes).unwrap_or(Linkage::Other)
}

/// Reads the concatenated images in the bytes of a program; `None` if it embeds none.
pub(crate) fn embedded_images(bytes: &[u8]) -> Option<&[u8]> {
    let (endian, sections) = sections(bytes).ok()?;
    let (_, section) = sections.section_by_name(endian, SECTION)?;
    section.data(endian, bytes).ok()
}

type Sections<'a> = SectionTable<'a, FileHeader64<Endianness>>;

/// Returns the sections of a program; an error unless it is a 64-bit one.
fn sections(bytes: &[u8]) -> object::read::Result<(Endianness, Sections<'_>)> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    Ok((endian, header.sections(endian, bytes)?))
}

fn read(bytes: &[u8]) -> object::read::Result<Linkage> {
    let (endian, sections) = sections(bytes)?;
    let table = sections.dynamic_table(endian, bytes)?;
    let mut runtime = None;
    for entry in table.iter().filter(|entry| entry.tag == DT_NEEDED) {
        let name = String::from_utf8_lossy(table.string(entry)?).into_owned();
        if name.starts_with(LIBRARY) {
            runtime = Some(name);
        }
    }
    let known = ["libcudart.so.12", "libcudart.so.13"];
    Ok(match runtime {
        Some(name) if known.contains(&name.as_str()) => Linkage::Shared,
        Some(name) => Linkage::OldRuntime(name),
        None if sections.section_by_name(endian, SECTION).is_none() => Linkage::Other,
        None => match runtime_in(bytes) {
            None => Linkage::StrippedRuntime,
            Some(Runtime::Older) => {
                Linkage::OldRuntime("the runtime of CUDA 11 or older".to_owned())
            }
            Some(Runtime::Cuda12 | Runtime::Cuda13) => Linkage::StaticRuntime,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_data_of_a_program_are_not_its_libraries() {
        let own = std::env::current_exe().and_then(std::fs::read);
        let own = own.expect("the bytes of this program");
        let name = b"libcudart.so.11.0\0";
        assert!(own.windows(name.len()).any(|window| window == name));
        assert_eq!(read_linkage(&own), Linkage::Other);
        assert_eq!(read_linkage(b"#!/bin/sh\n"), Linkage::Other);
        assert_eq!(read_linkage(b"\x7fELF cut short"), Linkage::Other);
    }
}
