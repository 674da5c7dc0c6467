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
