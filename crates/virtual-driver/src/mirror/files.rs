//! Images that a compiler embedded in the files of a process.

use std::collections::BTreeSet;
use std::path::PathBuf;

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, SectionHeader as _};

/// Section of the images.
const SECTION: &[u8] = b".nv_fatbin";
/// First word of an image.
const MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
/// Alignment of images in the section.
const ALIGNMENT: usize = 8;
/// Bytes of all images of a file at most: libraries of kernels have more.
const MAX_BYTES: usize = 64 << 20;

/// The images in the program and the libraries of a process.
pub(super) fn images_of_process(process: u32) -> Vec<Vec<u8>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let paths = maps.lines().filter_map(|line| {
        let path = line.get(line.find('/')?..)?;
        path.starts_with('/').then(|| PathBuf::from(path))
    });
    let paths: BTreeSet<PathBuf> = paths.collect();
    let contents = paths.iter().filter_map(|path| std::fs::read(path).ok());
    contents.flat_map(|bytes| images_of_file(&bytes)).collect()
}

/// The images in the bytes of a file; none where it is no program.
fn images_of_file(bytes: &[u8]) -> Vec<Vec<u8>> {
    let section = section(bytes).ok().flatten();
    let section = section.filter(|section| section.len() <= MAX_BYTES);
    section.map(split).unwrap_or_default()
}

fn section(bytes: &[u8]) -> object::read::Result<Option<&[u8]>> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    match sections.section_by_name(endian, SECTION) {
        Some((_, section)) => section.data(endian, bytes).map(Some),
        None => Ok(None),
    }
}

/// The images of a section, one after the other.
fn split(section: &[u8]) -> Vec<Vec<u8>> {
    let mut images = Vec::new();
    let mut rest = section;
    while let Some(head) = rest.first_chunk::<16>() {
        let [a, b, c, d, _, _, low, high, size @ ..] = *head;
        if [a, b, c, d] != MAGIC {
            rest = rest.get(ALIGNMENT..).unwrap_or_default();
            continue;
        }
        let head_bytes = usize::from(u16::from_le_bytes([low, high]));
        let size = usize::try_from(u64::from_le_bytes(size)).unwrap_or(usize::MAX);
        let bytes = head_bytes.saturating_add(size);
        let Some(image) = rest.get(..bytes) else {
            break;
        };
        images.push(image.to_vec());
        let next = bytes.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        rest = rest.get(next..).unwrap_or_default();
    }
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(body: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn images_of_a_section_are_separated() {
        let (first, second) = (image(&[7; 13]), image(&[8; 16]));
        let mut section = first.clone();
        section.resize(section.len().next_multiple_of(ALIGNMENT) + 2 * ALIGNMENT, 0);
        section.extend(&second);
        assert_eq!(split(&section), [first, second.clone()]);
        let cut = second.get(..20).unwrap_or_default();
        assert!(split(cut).is_empty());
    }

    #[test]
    fn a_program_has_the_images_of_its_section() {
        let folder = tempfile::tempdir().expect("a folder");
        let [source, program] = ["source.c", "program"].map(|name| folder.path().join(name));
        let bytes: Vec<String> = image(&[7; 8]).iter().map(u8::to_string).collect();
        let text = format!(
            "__attribute__((section(\".nv_fatbin\"), aligned(8))) char code[] = {{ {} }};\nint main() {{}}\n",
            bytes.join(", ")
        );
        std::fs::write(&source, text).expect("a source");
        let mut compiler = std::process::Command::new("cc");
        let compiled = compiler.arg("-w").arg(&source).arg("-o").arg(&program);
        assert!(compiled.status().expect("a C compiler").success());
        let found = images_of_file(&std::fs::read(&program).expect("a program"));
        assert_eq!(found, [image(&[7; 8])]);
    }

    #[test]
    fn a_text_has_no_images() {
        assert!(images_of_file(b"#!/bin/sh\n").is_empty());
    }
}
