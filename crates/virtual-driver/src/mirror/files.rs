//! Images that a compiler embedded in the files of a process.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::fatbin::split_images;
use crate::linkage::embedded_images;

/// Maximum bytes of all images of a file: libraries of kernels have more.
const MAX_BYTES: usize = 64 << 20;

/// Returns the images in the program and the libraries of a process.
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

/// Returns the images in the bytes of a file; empty if it is not a program.
fn images_of_file(bytes: &[u8]) -> Vec<Vec<u8>> {
    let section = embedded_images(bytes).filter(|section| section.len() <= MAX_BYTES);
    section.map(split_images).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_images_of_its_section() {
        let folder = tempfile::tempdir().expect("a folder");
        let [source, program] = ["source.c", "program"].map(|name| folder.path().join(name));
        // Magic number, version, size of the head, size of the entries.
        let image = [
            0x50_u8, 0xed, 0x55, 0xba, 1, 0, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0,
        ];
        let image = [image.as_slice(), &[7; 8]].concat();
        let bytes: Vec<String> = image.iter().map(u8::to_string).collect();
        let text = format!(
            "__attribute__((section(\".nv_fatbin\"), aligned(8))) char code[] = {{ {} }};\nint main() {{}}\n",
            bytes.join(", ")
        );
        std::fs::write(&source, text).expect("a source");
        let mut compiler = std::process::Command::new("cc");
        let compiled = compiler.arg("-w").arg(&source).arg("-o").arg(&program);
        assert!(compiled.status().expect("a C compiler").success());
        let found = images_of_file(&std::fs::read(&program).expect("a program"));
        assert_eq!(found, [image]);
    }

    #[test]
    fn a_text_has_no_images() {
        assert!(images_of_file(b"#!/bin/sh\n").is_empty());
    }
}
