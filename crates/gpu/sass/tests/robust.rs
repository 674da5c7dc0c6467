//! The decoder accepts or refuses any bytes and never panics.

use proptest::prelude::*;

const SM: [u32; 6] = [75, 80, 86, 89, 90, 120];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_word_is_decoded_or_unknown(word: u128, address: u32) {
        for sm in SM {
            match sass::decode(word, address, sm) {
                Ok(instruction) => prop_assert!(!instruction.to_string().is_empty()),
                Err(unknown) => prop_assert_eq!(unknown.word, word),
            }
        }
    }

    #[test]
    fn words_that_begin_as_instructions_do(opcode in 0u128..0x1000, rest: u128, sparse: u128) {
        // Words with few set bits match more lines of the table than random words.
        for bits in [rest, rest & sparse, rest & sparse & rest.rotate_left(40)] {
            let word = bits & !0xffff | 0x7000 | opcode;
            for sm in SM {
                if let Ok(instruction) = sass::decode(word, 0, sm) {
                    prop_assert!(!instruction.to_string().is_empty());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_a_cubin_or_none(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.extend(&bytes);
        let _ = sass::Cubin::read(&file);
        let _ = sass::Cubin::read(&bytes);
    }
}

/// Returns a file with one small kernel, truncated and with changed bytes.
#[test]
fn damaged_cubins_are_read_or_refused() {
    let whole = include_bytes!("data/calls.sm_86.cubin").to_vec();
    assert!(sass::Cubin::read(&whole).is_ok());
    for length in (0..whole.len()).step_by(61) {
        let _ = sass::Cubin::read(&whole[..length]);
    }
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0xff;
        let _ = sass::Cubin::read(&changed);
    }
}

/// Expected contents of the file. Its source has `extern "C" __global__ void k(unsigned*,
/// unsigned*, char, float, int)` with 33 integers of shared memory, three functions that are not
/// inlined, a
/// `switch`, a variable `gv` and constants `cst`.
#[test]
fn a_cubin_says_what_its_source_says() {
    let cubin = sass::Cubin::read(include_bytes!("data/calls.sm_86.cubin")).unwrap();
    assert_eq!(cubin.sm, 86);
    let kernel = &cubin.kernels["k"];
    assert!(kernel.entry);
    assert!(kernel.code.iter().all(Result::is_ok));
    assert_eq!(kernel.info.parameter_base, 0x160);
    let sizes: Vec<(u32, u32)> = kernel
        .info
        .parameters
        .iter()
        .map(|parameter| (parameter.offset, parameter.size))
        .collect();
    assert_eq!(sizes, [(0, 8), (8, 8), (16, 1), (20, 4), (24, 4)]);
    assert_eq!(kernel.shared, 144);
    assert_eq!(kernel.info.barriers, 1);
    assert_eq!(kernel.info.registers, 28);
    assert_eq!(kernel.functions[0].name, "k");
    assert!(kernel.functions.iter().any(|f| f.name == "$k$_Z2fnjj"));
    assert!(!kernel.info.indirect.is_empty());
    assert_eq!(&kernel.constants[&3][..8], &[0, 0, 128, 63, 0, 0, 0, 64]);
    let variable = |r: &&sass::Relocation| r.symbol == "gv";
    let relocation = kernel.relocations.iter().find(variable).unwrap();
    assert_eq!(relocation.target, sass::RelocationTarget::Constant(4));
    let global = cubin.globals.iter().find(|global| global.name == "gv");
    assert_eq!(global.unwrap().size, 64);
}

/// The file's source has a kernel `k` with 40 floats of shared memory, and a kernel `none` without any.
#[test]
fn shared_memory_does_not_count_what_the_system_reserves() {
    let cubin = sass::Cubin::read(include_bytes!("data/shared.sm_90.cubin")).unwrap();
    assert_eq!(cubin.sm, 90);
    let declared = ["k", "none"].map(|name| cubin.kernels[name].shared);
    assert_eq!(declared, [160, 0]);
}
