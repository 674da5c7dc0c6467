//! Changed tensor maps, weight-stationary products, shifts of tensor memory and sparse products of warp-groups leave the
//! same memory as SASS and as PTX.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

use sass_machine::{Execution, Machine, Proof, prove};
use vgpu::{Arch, Arg, Checks, GlobalMemory, Launch, Module, TensorElement, TensorMap};

const WORDS: u64 = 4096;

/// PTX and SASS of a file, its kernel and the threads of a block.
struct Code {
    ptx: &'static str,
    cubin: &'static [u8],
    entry: &'static str,
    threads: u32,
}

macro_rules! code {
    ($file:literal, $entry:literal, $threads:literal) => {
        Code {
            ptx: include_str!(concat!("machine/", $file, ".ptx")),
            cubin: include_bytes!(concat!("machine/", $file, ".cubin")),
            entry: $entry,
            threads: $threads,
        }
    };
}

/// Words without a pattern, behind the bytes at the start.
fn words(start: &[u8]) -> Vec<u8> {
    let word = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) as u32;
    let words = (0..WORDS).map(|i| word(i).wrapping_mul(0x85eb_ca6b));
    let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    bytes[..start.len()].copy_from_slice(start);
    bytes
}

/// Executes a kernel on both levels, and returns the words that it leaves.
fn executed(gpu: &str, code: &Code, start: &[u8]) -> (Box<Execution>, Vec<u32>) {
    let machine = Machine::load(code.cubin, code.entry).unwrap();
    assert!(
        machine.code().iter().all(Result::is_ok),
        "{gpu} {}",
        code.entry
    );
    let mut memory = GlobalMemory::new(1 << 20);
    let input = memory.alloc(WORDS * 4, "input").unwrap();
    memory.write(input, 0, &words(start));
    let output = memory.alloc(WORDS * 4, "output").unwrap();
    let args = vec![
        Arg::Buffer(input),
        Arg::Buffer(output),
        Arg::Bytes(1000_i32.to_le_bytes().to_vec()),
    ];
    let mut launch = Launch::new(code.entry, [1; 3], [code.threads, 1, 1], args);
    launch.checks = Checks::default();
    launch.threads = 1;
    let arch = Arch::by_name(gpu).unwrap();
    let module = Module::load(code.ptx).unwrap();
    let (report, proof) = prove(&machine, &module, &mut memory, arch, &launch).unwrap();
    assert_eq!(report.hazards, [], "{gpu} {}", code.entry);
    let execution = match proof {
        Proof::Same(execution) => execution,
        other => panic!("{gpu} {}: {other:?}", code.entry),
    };
    let bytes = memory.read(output);
    let words = bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word));
    (execution, words.collect())
}

#[test]
fn the_code_of_the_assembler_changes_the_fields_of_a_tensor_map() {
    let map = TensorMap {
        element: TensorElement::F64,
        address: 16,
        sizes: vec![7, 6, 5, 4],
        strides: vec![1 << 38, 32, 48],
        boxes: vec![2, 200, 3, 4],
        steps: vec![1, 8, 7, 2],
        interleave: 0,
        swizzle: 0,
        promotion: 1,
        fills_nan: true,
        pixels: None,
    };
    let codes = [
        ("h100", code!("maps.90", "maps", 32)),
        ("b200", code!("maps.100", "maps", 32)),
    ];
    for (gpu, code) in codes {
        let (execution, found) = executed(gpu, &code, &map.encode());
        assert!(execution.by_opcode.contains_key("UTMACCTL"));
        let bytes = words(&map.encode());
        let input = |word: usize| u32::from_le_bytes(*bytes[word * 4..].first_chunk().unwrap());
        // Rows 2, 4 … of 48 words from the 512th on, of 40 that exist, by a swizzle of 128 bytes.
        for (n, word) in found.iter().take(256).enumerate() {
            let (line, place) = (n / 32, n % 32);
            let column = 16 + ((place / 4) ^ (line % 8)) * 4 + place % 4;
            let row = 2 + 2 * line;
            let inside = column < 40 && row < 12;
            let wanted = if inside {
                input(512 + row * 48 + column)
            } else {
                0
            };
            assert_eq!(*word, wanted, "{gpu} {n}");
        }
        // Rows from the second on of the map at the 1024th word, by a swizzle of 32 bytes, NaN outside.
        for (n, word) in found[256..384].iter().enumerate() {
            let (row, place) = (2 + n / 8, n % 8);
            let column = 36 + ((place / 4) ^ (n / 32 % 2)) * 4 + place % 4;
            let inside = column < 40 && row < 12;
            let wanted = if inside {
                input(1024 + row * 48 + column)
            } else {
                0x7fff_ffff
            };
            assert_eq!(*word, wanted, "{gpu} {n}");
        }
    }
}

#[test]
fn products_and_shifts_of_tensor_memory_end_with_the_same_bits_on_both_levels() {
    let code = code!("blackwell.100", "products", 128);
    let (execution, found) = executed("b200", &code, &[]);
    for opcode in ["UTCHMMA", "UTCSHIFT", "UMEMSETS"] {
        assert!(execution.by_opcode.contains_key(opcode), "{opcode}");
    }
    let cleared = &found[512..768];
    assert!(cleared[64..192].iter().all(|word| *word == 0));
    assert!(cleared[..64].iter().all(|word| *word != 0));
}

#[test]
fn sparse_products_of_a_warp_group_end_with_the_same_bits_on_both_levels() {
    let (execution, found) = executed("h100", &code!("hopper.90", "sparse", 128), &[]);
    for opcode in ["HGMMA", "QGMMA", "IGMMA"] {
        assert!(execution.by_opcode.contains_key(opcode), "{opcode}");
    }
    for product in found.chunks(512).take(6) {
        assert!(product.iter().filter(|word| **word != 0).count() > 400);
    }
}
