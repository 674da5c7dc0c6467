//! `tcgen05.ld` and `tcgen05.st` of one warp.

use vgpu::{Arch, Arg, GlobalMemory, HazardKind, Launch, Module, launch};

/// Runs one warp with 32 columns at `%r20`; each thread stores `%r0` to `%r4`. Returns its words and the kinds of hazards.
fn run(body: &str) -> (Vec<[u32; 5]>, Vec<HazardKind>) {
    let text = format!(
        ".version 9.0\n.target sm_103a\n.address_size 64\n.shared .align 8 .b32 place;\n\
         .visible .entry k(.param .u64 out) {{\n\
         .reg .b32 %r<32>; .reg .b64 %q<8>;\n\
         mov.u32 %r8, %tid.x; ld.param.u64 %q1, [out]; mul.wide.u32 %q2, %r8, 20; add.s64 %q1, %q1, %q2;\n\
         mov.u32 %r21, place; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r21], 32;\n\
         bar.sync 0; ld.shared.u32 %r20, [%r21];\n\
         mov.u32 %r4, 0;\n{body}\n\
         st.global.u32 [%q1], %r0; st.global.u32 [%q1+4], %r1; st.global.u32 [%q1+8], %r2;\n\
         st.global.u32 [%q1+12], %r3; st.global.u32 [%q1+16], %r4;\n\
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 32;\nret;\n}}\n"
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
    let mut memory = GlobalMemory::new(1 << 20);
    let out = memory.alloc(640, "out").unwrap();
    let mut spec = Launch::new("k", [1; 3], [32, 1, 1], vec![Arg::Buffer(out)]);
    spec.threads = 1;
    let arch = Arch::by_name("b200").unwrap();
    let report =
        launch(&module, &mut memory, arch, &spec).unwrap_or_else(|e| panic!("{body}: {e}"));
    let bytes = memory.read(out);
    let words = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|w| u32::from_le_bytes(*w));
    let words: Vec<u32> = words.collect();
    let hazards = report.hazards.iter().map(|hazard| hazard.kind);
    (words.as_chunks::<5>().0.to_vec(), hazards.collect())
}

/// Writes -5, 7, thread and 3 to the columns, as singles or integers.
fn store(single: bool) -> String {
    let numbers = match single {
        true => {
            "mov.f32 %r10, 0fC0A00000; mov.f32 %r11, 0f40E00000; cvt.rn.f32.u32 %r12, %r8; mov.f32 %r13, 0f7FFFFFFF;"
        }
        false => "mov.u32 %r10, -5; mov.u32 %r11, 7; mov.u32 %r12, %r8; mov.u32 %r13, 3;",
    };
    format!(
        "{numbers} tcgen05.st.sync.aligned.32x32b.x4.b32 [%r20], {{%r10, %r11, %r12, %r13}};\n\
         tcgen05.wait::st.sync.aligned;\n"
    )
}

#[test]
fn a_load_reduces_the_columns_of_each_lane() {
    let load = |form: &str| {
        format!(
            "tcgen05.ld.red.sync.aligned.32x32b.x4.{form} {{%r0, %r1, %r2, %r3}}, %r4, [%r20];\n\
             tcgen05.wait::ld.sync.aligned;"
        )
    };
    for (form, want) in [
        ("max.s32", (|n| n.max(7)) as fn(u32) -> u32),
        ("min.s32", |_| -5_i32 as u32),
        ("max.u32", |_| -5_i32 as u32),
        ("min.u32", |n| n.min(3)),
    ] {
        let (got, hazards) = run(&(store(false) + &load(form)));
        assert!(hazards.is_empty(), "{form}");
        for (n, words) in (0..).zip(got) {
            assert_eq!(words, [-5_i32 as u32, 7, n, 3, want(n)], "{form}");
        }
    }
    for (form, want) in [
        ("max.f32", (|n| n.max(7.0)) as fn(f32) -> f32),
        ("min.f32", |_| -5.0),
        ("min.abs.f32", |n| n.min(5.0)),
        ("max.NaN.f32", |_| f32::NAN),
    ] {
        let (got, hazards) = run(&(store(true) + &load(form)));
        assert!(hazards.is_empty(), "{form}");
        for (n, words) in (0_u8..).zip(got) {
            let (got, want) = (f32::from_bits(words[4]), want(n.into()));
            assert!(
                got == want || got.is_nan() && want.is_nan(),
                "{form} {n}: {got}"
            );
        }
    }
}

#[test]
fn the_result_of_a_reduction_is_in_flight_until_the_wait() {
    let early = store(false)
        + "tcgen05.ld.red.sync.aligned.32x32b.x4.max.s32 {%r0, %r1, %r2, %r3}, %r5, [%r20];\n\
           add.u32 %r4, %r5, 1; tcgen05.wait::ld.sync.aligned;";
    assert_eq!(run(&early).1, [HazardKind::Race]);
}

#[test]
fn the_distance_of_two_halves_precedes_the_registers_of_a_store() {
    let body = "mov.u32 %r10, %r8; add.u32 %r11, %r8, 100;\n\
         tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r20], 8, {%r10, %r11}; tcgen05.wait::st.sync.aligned;\n\
         tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%r0, %r1}, [%r20], 8; tcgen05.wait::ld.sync.aligned;\n\
         mov.u32 %r2, 0; mov.u32 %r3, 0;";
    let (got, hazards) = run(body);
    assert!(hazards.is_empty());
    for (n, words) in (0..).zip(got) {
        assert_eq!(words[..2], [n, n + 100]);
    }
}

/// Values of the codes of `e2m1`.
const E2M1: [f32; 16] = [
    0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0,
];

/// Runs a product of 128 rows, 16 columns and K = 32 whose A and B are packed in shared memory, with B behind A; A is copied to
/// tensor memory first. Returns the first 32 rows.
fn product(format: &str, code: u32, rows: &[[u8; 32]], columns: &[[u8; 32]]) -> Vec<[f32; 16]> {
    // M = 128, N = 16, single precision.
    let form = 8 << 24 | 2 << 17 | code << 10 | code << 7 | 1 << 4;
    // Blocks of 8 rows of 16 bytes: 128 bytes to the next rows, and so many to the next 16 bytes of a row.
    let descriptor = |along_k: u64| 1_u64 << 46 | 8 << 32 | (along_k / 16) << 16;
    let stores: String = (0..16)
        .map(|n| format!("st.global.u32 [%q1+{}], %r{};\n", 4 * n, 40 + n))
        .collect();
    let registers: Vec<String> = (40..56).map(|n| format!("%r{n}")).collect();
    let text = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n\
         .shared .align 1024 .b8 box[4608]; .shared .align 8 .b64 done; .shared .align 8 .b32 place;\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {{\n\
         .reg .b32 %r<64>; .reg .b64 %q<16>; .reg .pred %p<4>;\n\
         mov.u32 %r8, %tid.x; ld.param.u64 %q1, [out]; ld.param.u64 %q2, [in];\n\
         mov.u32 %r21, place; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r21], 32;\n\
         mov.u32 %r22, box; mov.u32 %r23, done; mov.u32 %r9, %r8;\n\
         copy: mul.wide.u32 %q3, %r9, 4; add.s64 %q4, %q2, %q3; ld.global.u32 %r10, [%q4]; shl.b32 %r11, %r9, 2;\n\
         add.u32 %r11, %r22, %r11; st.shared.u32 [%r11], %r10; add.u32 %r9, %r9, 32; setp.lt.u32 %p1, %r9, 1152; @%p1 bra copy;\n\
         setp.ne.u32 %p2, %r8, 0; @%p2 bra issued; mbarrier.init.shared::cta.b64 [%r23], 1;\n\
         issued: fence.proxy.async; bar.sync 0; ld.shared.u32 %r20, [%r21]; @%p2 bra wait;\n\
         cvt.u64.u32 %q5, %r22; shr.u64 %q5, %q5, 4; or.b64 %q6, %q5, {of_a}; add.u64 %q7, %q5, 256; or.b64 %q7, %q7, {of_b};\n\
         tcgen05.cp.cta_group::1.128x256b.b8x16.{format} [%r20], %q6; add.u32 %r24, %r20, 8; mov.u32 %r25, {form};\n\
         setp.ne.u32 %p3, 0, 0;\n\
         tcgen05.mma.cta_group::1.kind::f8f6f4 [%r24], [%r20], %q7, %r25, %p3;\n\
         tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r23];\n\
         wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r23], 0; @!%p1 bra wait;\n\
         add.u32 %r24, %r20, 8; tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{registers}}}, [%r24]; tcgen05.wait::ld.sync.aligned;\n\
         mul.wide.u32 %q3, %r8, 64; add.s64 %q1, %q1, %q3;\n{stores}\
         bar.sync 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 32;\nret;\n}}\n",
        of_a = descriptor(2048),
        of_b = descriptor(256),
        registers = registers.join(","),
    );
    let bits = if format == "b4x16_p64" { 4 } else { 6 };
    let mut bytes = vec![0; 4608];
    for (first, lines) in [(0, rows), (4096, columns)] {
        for (n, line) in lines.iter().enumerate() {
            for (half, codes) in line.chunks(16).enumerate() {
                let packed = codes
                    .iter()
                    .rev()
                    .fold(0_u128, |all, code| all << bits | u128::from(*code));
                let at = first + half * lines.len() * 16 + n * 16;
                bytes[at..at + 16].copy_from_slice(&packed.to_le_bytes());
            }
        }
    }
    let module = Module::load(&text).unwrap();
    let mut memory = GlobalMemory::new(1 << 20);
    let out = memory.alloc(2048, "out").unwrap();
    let input = memory.alloc(4608, "in").unwrap();
    memory.write(input, 0, &bytes);
    let mut spec = Launch::new(
        "k",
        [1; 3],
        [32, 1, 1],
        vec![Arg::Buffer(out), Arg::Buffer(input)],
    );
    spec.threads = 1;
    let report = launch(&module, &mut memory, Arch::by_name("b200").unwrap(), &spec).unwrap();
    assert!(report.hazards.is_empty(), "{:?}", report.hazards);
    let bytes = memory.read(out);
    let words = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|w| f32::from_le_bytes(*w));
    let words: Vec<f32> = words.collect();
    words.as_chunks::<16>().0.to_vec()
}

#[test]
fn a_copy_unpacks_elements_of_which_a_product_reads_one_in_a_byte() {
    let six = |code: u8| {
        let (field, fraction) = (code >> 3 & 3, f32::from(code & 7));
        let size = match field {
            0 => fraction / 8.0,
            _ => (1.0 + fraction / 8.0) * 2.0_f32.powi(i32::from(field) - 1),
        };
        if code >> 5 == 1 { -size } else { size }
    };
    for (format, code, bits) in [("b4x16_p64", 5, 4), ("b6x16_p32", 3, 6)] {
        let line = |n: usize, step: usize| {
            std::array::from_fn(|k| ((n * 5 + k * step + k * k) % (1 << bits)) as u8)
        };
        let rows: Vec<[u8; 32]> = (0..128).map(|n| line(n, 3)).collect();
        let columns: Vec<[u8; 32]> = (0..16).map(|n| line(n, 7)).collect();
        let value = |code: u8| {
            if bits == 4 {
                E2M1[usize::from(code)]
            } else {
                six(code)
            }
        };
        let got = product(format, code, &rows, &columns);
        for (row, got) in rows.iter().zip(got) {
            for (column, got) in columns.iter().zip(got) {
                let products = row.iter().zip(column).map(|(a, b)| value(*a) * value(*b));
                assert_eq!(got, products.sum::<f32>(), "{format}");
            }
        }
    }
}
