//! Numbers of a byte or less, and sparse products, leave the same memory as SASS and as PTX.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

mod common;

use common::{Code, buffers, code, same};
use sass_machine::Proof;
use vgpu::{Arg, Checks, GlobalMemory, Launch};

const WORDS: u64 = 4096;

// Compute capability 12.0 has no table; the launch limits are those of 9.0.
const NARROW: [Code; 3] = [
    code!("l4", "narrow.89"),
    code!("b200", "narrow.100"),
    code!("h100", "narrow.120"),
];
const SPARSE: [Code; 3] = [
    code!("a100", "sparse.80"),
    code!("l4", "sparse.89"),
    code!("h100", "sparse.120"),
];

/// Words of singles of all sizes, near the small formats most often, and of special values.
fn words() -> Vec<u8> {
    let special = [
        0,
        0x8000_0000,
        1,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_1234,
        0x0040_0000,
        0x0040_0001,
        0x0080_0000,
        0x7f7f_ffff,
        0x7f00_0001,
        0xff7f_ffff,
        0x3e80_0000,
        0x40a0_0000,
        0x4080_0000,
    ];
    let word = |i: u64| {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        let word = mixed as u32;
        match i % 5 {
            0 => special[(i / 5 % 16) as usize],
            1 => word,
            // Halfway between two numbers of a small format, often.
            2 => word & 0x8078_0000 | (122 + (word & 7)) << 23,
            _ => word & 0x807f_ffff | (120 + (word >> 23 & 15)) << 23,
        }
    };
    (0..WORDS).flat_map(|i| word(i).to_le_bytes()).collect()
}

/// Executes a kernel on both levels; returns how they compare and the words that the PTX leaves.
fn executed(code: Code, entry: &str) -> (Proof, Vec<u8>) {
    let mut memory = GlobalMemory::new(1 << 20);
    let [input, output] = buffers(&mut memory, &words());
    let args = vec![
        Arg::Buffer(input),
        Arg::Buffer(output),
        Arg::Bytes(1024_i32.to_le_bytes().to_vec()),
    ];
    let mut launch = Launch::new(entry, [4, 1, 1], [256, 1, 1], args);
    launch.checks = Checks {
        races: false,
        ..Checks::default()
    };
    let proof = code.prove(&mut memory, &launch);
    (proof, memory.read(output))
}

#[test]
fn conversions_of_the_headers_are_those_of_the_instructions() {
    for entry in ["narrow", "widen"] {
        let results = NARROW.map(|code| {
            let (proof, words) = executed(code, entry);
            same(proof, &format!("{} {entry}", code.gpu));
            words
        });
        // Before 10.0 the headers convert in software.
        let [software, ours, others] = results;
        assert!(software == ours && ours == others, "{entry}");
        assert!(
            ours.iter().filter(|byte| **byte != 0).count() > 8000,
            "{entry}"
        );
    }
}

#[test]
fn packed_and_wide_numbers_end_with_the_same_bits_on_both_levels() {
    for code in NARROW {
        for entry in ["halves", "packed", "wide"] {
            same(executed(code, entry).0, &format!("{} {entry}", code.gpu));
        }
    }
}

#[test]
fn sparse_products_end_with_the_same_bits_on_both_levels() {
    let entries = [
        "halves16",
        "halves32",
        "brains32",
        "singles16",
        "bytes32",
        "bytes64",
        "nibbles64",
        "nibbles128",
    ];
    for code in SPARSE {
        let floats = (code.gpu != "a100").then_some("floats64");
        for entry in entries.into_iter().chain(floats) {
            same(executed(code, entry).0, &format!("{} {entry}", code.gpu));
        }
    }
}
