//! Comparison of every instruction's text with `nvdisasm`.
//!
//! Each line of `data/recorded.tsv.gz` has architectures, a word and its text by `nvdisasm` 13.1, or
//! 13.5 for `wgmma`, `tcgen05`, tensor maps, textures, sparse products and everything of compute
//! capability 10.x. The words are NVRTC 13.0's code for the shipped templates, the hazard suite and
//! kernels of single PTX
//! instructions, with each form a few times. The ignored test takes a folder of cubins.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

fn recorded() -> Vec<(u32, u128, String)> {
    let packed: &[u8] = include_bytes!("data/recorded.tsv.gz");
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(packed);
    reader.read_to_string(&mut text).unwrap();
    let mut out = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, '\t');
        let archs = parts.next().unwrap();
        let word = u128::from_str_radix(parts.next().unwrap(), 16).unwrap();
        let text = parts.next().unwrap();
        for arch in archs.split(',') {
            out.push((number(arch), word, text.to_owned()));
        }
    }
    out
}

fn number(arch: &str) -> u32 {
    arch.trim_end_matches('a').parse().unwrap()
}

/// Decodes a word to text, or returns the reason for the refusal.
fn text(word: u128, address: u32, sm: u32) -> String {
    match sass::decode(word, address, sm) {
        Ok(instruction) => instruction.to_string().trim().to_owned(),
        Err(unknown) => format!("unknown: {unknown}"),
    }
}

/// Forms that the table lacks: matrix instructions of 8x8x4 (7.5). The decoder must refuse them
/// instead of guessing.
fn unknown(text: &str) -> bool {
    text.contains("HMMA.884")
}

#[test]
fn recorded_instructions_have_the_recorded_text() {
    let all = recorded();
    assert!(all.len() > 8000, "only {} are recorded", all.len());
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|(sm, word, want)| {
            let got = text(*word, 0, *sm);
            if unknown(want) {
                return (!got.starts_with("unknown")).then(|| format!("{want} is decoded: {got}"));
            }
            (got != want.trim()).then(|| format!("{sm} {word:032x}\n want {want}\n got  {got}"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        all.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn uniform_products_take_carries() {
    // The first word is of a division of 64 bits by nvcc 13.0 for sm_80; the others differ in single fields.
    for (word, want) in [
        (
            0x000f_e200_080e_0408_0000_000d_0a04_72a5,
            "UIMAD.WIDE.U32.X UR4, UR10, UR13, UR8, UP0",
        ),
        (
            0x000f_e200_0d84_0e08_0000_000d_0a04_78a5,
            "UIMAD.WIDE.X UR4, UP2, UR10, 0xd, ~UR8, !UP3",
        ),
        (
            0x000f_e200_080e_0c08_0000_000d_0a04_78a4,
            "UIMAD.U32.X UR4, UR10, 0xd, ~UR8, UP0",
        ),
    ] {
        assert_eq!(text(word, 0, 80), want);
    }
}

#[test]
fn moves_between_uniform_predicates_and_registers_are_known_since_the_first_uniform_datapath() {
    // Word of a cubin that NVRTC 13.0 made for sm_80; the list of 7.5 ("CUDA Binary Utilities") has both.
    let word = 0x000f_e400_0800_0000_0000_0001_3f07_7883;
    for sm in [75, 80, 86, 89, 90] {
        assert_eq!(text(word, 0, sm), "UP2UR UR7, UPR, URZ, 0x1");
    }
}

#[test]
fn every_architecture_and_most_operations_are_recorded() {
    let mut names: BTreeMap<u32, Vec<&'static str>> = BTreeMap::new();
    for (sm, word, _) in recorded() {
        if let Ok(instruction) = sass::decode(word, 0, sm) {
            names.entry(sm).or_default().push(instruction.opcode);
        }
    }
    assert_eq!(
        names.keys().copied().collect::<Vec<_>>(),
        [75, 80, 86, 89, 90, 100, 103, 120]
    );
    for (sm, mut names) in names {
        names.sort_unstable();
        names.dedup();
        // Of compute capability 10.x only kernels of single instructions are recorded.
        let least = if matches!(sm, 100 | 103) { 60 } else { 90 };
        assert!(names.len() > least, "{sm}: {} operations", names.len());
    }
}

/// Returns the folder's cubins by architecture, from sub-folders named as `nvdisasm` names it.
fn cubins(folder: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut out: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for arch in std::fs::read_dir(folder).unwrap().flatten() {
        let Ok(files) = std::fs::read_dir(arch.path()) else {
            continue;
        };
        let name = arch.file_name().to_string_lossy().into_owned();
        let files = files.flatten().map(|file| file.path());
        out.entry(name)
            .or_default()
            .extend(files.filter(|path| path.extension().is_some_and(|e| e == "cubin")));
    }
    out
}

/// Returns the words of a file's kernels, in order.
fn words(path: &Path) -> Vec<u128> {
    let bytes = std::fs::read(path).unwrap();
    let cubin = sass::Cubin::read(&bytes).unwrap();
    cubin
        .kernels
        .values()
        .flat_map(|kernel| &kernel.code)
        .map(|decoded| match decoded {
            Ok(instruction) => instruction.word,
            Err(unknown) => unknown.word,
        })
        .collect()
}

/// Returns `nvdisasm`'s text of words, each at 16 times its index.
fn disassembled(tool: &str, arch: &str, words: &[u128]) -> Vec<String> {
    let file = std::env::temp_dir().join(format!("sass-words-{}.bin", std::process::id()));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&file, bytes).unwrap();
    let run = Command::new(tool)
        .args(["-b", &format!("SM{arch}")])
        .arg(&file)
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let mut out = vec![String::new(); words.len()];
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        let Some((address, rest)) = line
            .trim_start()
            .strip_prefix("/*")
            .and_then(|line| line.split_once("*/"))
        else {
            continue;
        };
        let index = usize::from_str_radix(address, 16).unwrap() / 16;
        let end = rest.find(';').unwrap_or(rest.len());
        out[index] = rest[..end].trim().to_owned();
    }
    out
}

#[test]
#[ignore = "needs NVIDIA's nvdisasm and a folder ARCH/NAME.cubin: set SASS_NVDISASM and SASS_CUBINS"]
fn every_instruction_of_a_folder_has_nvdisasms_text() {
    let tool = std::env::var("SASS_NVDISASM").expect("SASS_NVDISASM: path of nvdisasm");
    let folder = std::env::var("SASS_CUBINS").expect("SASS_CUBINS: folder of cubins");
    let (mut total, mut wrong) = (0usize, Vec::new());
    for (arch, files) in cubins(Path::new(&folder)) {
        let all: Vec<u128> = files.iter().flat_map(|path| words(path)).collect();
        for part in all.chunks(500_000) {
            let texts = disassembled(&tool, &arch, part);
            for (index, (word, want)) in part.iter().zip(&texts).enumerate() {
                let got = text(*word, index as u32 * 16, number(&arch));
                if got != *want {
                    wrong.push(format!("{arch} {word:032x}\n want {want}\n got  {got}"));
                }
            }
        }
        println!(
            "{arch}: {} instructions of {} cubins",
            all.len(),
            files.len()
        );
        total += all.len();
    }
    println!("{total} instructions, {} differ", wrong.len());
    assert!(
        wrong.is_empty(),
        "{}",
        wrong[..wrong.len().min(50)].join("\n")
    );
}
