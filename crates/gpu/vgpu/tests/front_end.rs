//! The PTX front end: no text causes a panic, and unsupported input is reported with its line.

use proptest::prelude::*;
use vgpu::{LoadError, Module};

const KERNELS: &[&str] = &[
    include_str!("ptx/basic.ptx"),
    include_str!("../benches/fa2.ptx"),
];

fn module(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n{body}\nret;\n}}\n"
    )
}

#[test]
fn compiled_kernels_load_with_all_their_entries() {
    let basic = Module::load(KERNELS[0]).unwrap();
    assert_eq!(basic.entries().count(), 10);
    for entry in basic.entries() {
        basic.supported(&entry.name).unwrap();
    }
    let attention = Module::load(KERNELS[1]).unwrap();
    attention.supported("attention").unwrap();
    assert_eq!(
        attention.entry("attention").unwrap().max_threads,
        Some([128, 1, 1])
    );
}

#[test]
fn an_unknown_instruction_is_named_with_its_line() {
    let text = module(".reg .b32 %r<3>;\nfrobnicate.b32 %r1, %r2;");
    let unsupported = Module::load(&text).unwrap().supported("k").unwrap_err();
    assert_eq!(
        (unsupported.instruction.as_str(), unsupported.line),
        ("frobnicate.b32", 7)
    );
}

#[test]
fn what_is_not_executed_is_unsupported_by_name() {
    for (text, name) in [
        (
            "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [0], 4;",
            "tensormap.replace.tile.swizzle_mode.global.b1024.b32",
        ),
        (
            "cp.async.bulk.shared::cluster.shared::cluster.mbarrier::complete_tx::bytes [0], [0], 16, [0];",
            "cp.async.bulk.shared::cluster.shared::cluster.mbarrier::complete_tx::bytes (between these state spaces)",
        ),
        (
            "vmad.u32.u32.u32.sat 0, 0, 0, 0;",
            "vmad.u32.u32.u32.sat (unsigned words with a scale or saturation, which the assembler takes for signed ones)",
        ),
        (
            "fma.rn.oob.f16 0, 0, 0, 0;",
            "fma.rn.oob.f16 (the PTX ISA does not give the bits of the NaN outside a tensor)",
        ),
        (
            "tcgen05.mma.sp.cta_group::1.kind::f16 [0], 0, 0, [0], 0, 1;",
            "tcgen05.mma.sp.cta_group::1.kind::f16 (sparse: the PTX ISA has figures only of the metadata in tensor memory)",
        ),
        (
            "multimem.st.relaxed.gpu.global.u32 [0], 1;",
            "multimem.st.relaxed.gpu.global.u32 (a virtual device has no multicast objects that it could address)",
        ),
        (
            "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [0], [0, {1, 2, 3}], [0], {1, 1};",
            "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes (this mode)",
        ),
    ] {
        let unsupported = Module::load(&module(text))
            .unwrap()
            .supported("k")
            .unwrap_err();
        assert_eq!(
            (unsupported.instruction.as_str(), unsupported.line),
            (name, 6)
        );
    }
}

#[test]
fn an_unknown_function_of_the_device_runtime_is_unsupported_by_name() {
    let runtime = ".extern .func (.param .b32 r) __cudaCDP2Memcpy3DAsync();";
    for (body, name) in [
        (
            ".param .b32 r;\ncall (r), __cudaCDP2Memcpy3DAsync, ();",
            "call (call of the external function `__cudaCDP2Memcpy3DAsync` of the device runtime)",
        ),
        (
            ".reg .b64 %rd<2>;\nmov.u64 %rd1, nothing;",
            "mov.u64 (`nothing` is not a variable)",
        ),
    ] {
        let text = module(body).replacen(".visible", &format!("{runtime}\n.visible"), 1);
        let unsupported = Module::load(&text).unwrap().supported("k").unwrap_err();
        assert_eq!(unsupported.instruction, name);
    }
}

#[test]
fn an_undeclared_register_is_an_error_with_line_and_column() {
    let Err(LoadError::Ptx(error)) = Module::load(&module("mov.u32 %r1, 0;")) else {
        panic!("an error is expected")
    };
    assert_eq!((error.line, error.column), (6, 12), "{error}");
}

#[test]
fn text_of_another_isa_version_is_refused() {
    assert!(Module::load(".version 42.0\n.target sm_80\n").is_err());
    assert!(Module::load("").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn truncated_text_is_an_error_and_no_panic(at in 0usize..60_000, which in 0usize..2) {
        let text = KERNELS[which];
        let end = at.min(text.len());
        let _ = Module::load(&text[..end]);
    }

    #[test]
    fn damaged_text_does_not_panic(
        places in prop::collection::vec((0usize..40_000, 0u8..128), 1..8),
        which in 0usize..2,
    ) {
        let mut bytes = KERNELS[which].as_bytes().to_vec();
        for (at, byte) in places {
            let n = bytes.len();
            bytes[at % n] = byte;
        }
        let _ = Module::load(&String::from_utf8(bytes).unwrap());
    }

    #[test]
    fn shuffled_lines_do_not_panic(moves in prop::collection::vec((0usize..900, 0usize..900), 1..12)) {
        let mut lines: Vec<&str> = KERNELS[0].lines().collect();
        for (a, b) in moves {
            let n = lines.len();
            lines.swap(a % n, b % n);
        }
        let _ = Module::load(&lines.join("\n"));
    }

    #[test]
    fn random_words_do_not_panic(words in prop::collection::vec(
        prop::sample::select(vec![
            ".reg", ".b32", ".pred", "%r<5>", "%r1", "%p", ";", "{", "}", "[", "]", "(", ")", ",",
            "mov", ".u32", "ld", ".param", ".shared", ".local", "@", "!", "bra", "$L", ":", "ret",
            "call", "f", "1", "-", "+", "0f3F800000", "setp", ".lt", "|", ".loc", "mma", "bar",
            ".sync", "brx.idx", ".v4", "cvt", ".f16x2", "_", "atom", ".add", ".align", "vprintf",
        ]), 0..60)) {
        let _ = Module::load(&module(&words.join(" ")));
    }
}
