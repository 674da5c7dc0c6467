//! Shadow values: each class of operations, where a shadow ends, and the way through memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a panic")]

use std::fmt::Write as _;
use vgpu::{Arch, Arg, FloatFormat, GlobalMemory, Launch, Module, launch};

/// Results of thread 0 and of all 64 threads of 2 blocks.
struct Outcome {
    values: Vec<f32>,
    shadows: Vec<Option<f64>>,
}

/// Runs a kernel in which thread `i` loads `x[i]` to `%f1`, runs the body, and stores `%f2`.
fn run(body: &str, input: f32) -> Outcome {
    run_with(body, input, 1, true)
}

fn run_with(body: &str, input: f32, threads: usize, shadow_values: bool) -> Outcome {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 x, .param .u64 y) {\n\
         .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<9>;\n\
         .reg .pred %p<4>; .shared .align 8 .b8 s[1024]; .local .align 8 .b8 l[16];\n\
         ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];\n\
         cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;\n\
         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; shl.b32 %r1, %r1, 6; add.u32 %r1, %r1, %r2;\n\
         mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;\n\
         shl.b32 %r3, %r2, 3; mov.u32 %r4, s; add.u32 %r4, %r4, %r3;\n\
         ld.global.f32 %f1, [%rd4];\n",
    );
    let _ = write!(text, "{body}\nst.global.f32 [%rd5], %f2;\nret;\n}}\n");
    let module = match shadow_values {
        true => Module::load_with_shadow_values(&text).unwrap(),
        false => Module::load(&text).unwrap(),
    };
    let mut memory = GlobalMemory::new(1 << 20);
    let x = memory.alloc(4 * 128, "x").unwrap();
    let y = memory.alloc(4 * 128, "y").unwrap();
    memory.write(x, 0, &input.to_le_bytes().repeat(128));
    memory.write(y, 0, &[0; 4 * 128]);
    let args = vec![Arg::Buffer(x), Arg::Buffer(y)];
    let ask = Launch {
        shadow_values,
        threads,
        ..Launch::new("k", [2, 1, 1], [64, 1, 1], args)
    };
    let report = launch(&module, &mut memory, Arch::by_name("h100").unwrap(), &ask).unwrap();
    assert_eq!(report.hazards, [], "{body}");
    let bytes = memory.read(y);
    let values = bytes.as_chunks::<4>().0.iter();
    Outcome {
        values: values.map(|code| f32::from_le_bytes(*code)).collect(),
        shadows: (0..128)
            .map(|at| memory.shadow_value(y, 4 * at, FloatFormat::Single))
            .collect(),
    }
}

/// Input whose third is inexact.
const INPUT: f32 = 1.3;
/// An inexact quotient in `%f3`, from which all bodies start.
const THIRD: &str = "div.rn.f32 %f3, %f1, 0f40400000;\n";
/// Its shadow.
fn third() -> f64 {
    f64::from(INPUT) / 3.0
}

/// Checks that all threads have this shadow, to a few units of a double.
fn assert_shadow(body: &str, want: f64) {
    let outcome = run(&format!("{THIRD}{body}"), INPUT);
    for (value, shadow) in outcome.values.iter().zip(&outcome.shadows) {
        assert!(shadow.is_some(), "{body}: no shadow of {value}");
        let shadow = shadow.unwrap();
        let error = (shadow - want).abs() / want.abs().max(1e-300);
        assert!(
            error < 1e-14,
            "{body}: {shadow:e} instead of {want:e}, value {value:e}"
        );
        // The value itself is a single, which the shadow is not.
        assert!(f64::from(*value) != shadow, "{body}: no error to see");
    }
}

#[test]
fn each_operation_is_computed_in_double() {
    let (x, t) = (f64::from(INPUT), third());
    for (body, want) in [
        ("add.f32 %f2, %f3, %f1;", t + x),
        ("sub.rn.ftz.f32 %f2, %f3, %f1;", t - x),
        ("mul.f32 %f2, %f3, %f3;", t * t),
        ("fma.rn.f32 %f2, %f3, %f1, %f3;", t.mul_add(x, t)),
        ("fma.rz.f32 %f2, %f3, %f1, %f3;", t.mul_add(x, t)),
        ("fma.rn.sat.f32 %f2, %f3, %f3, %f3;", t.mul_add(t, t)),
        ("div.full.f32 %f2, %f3, %f1;", t / x),
        ("rcp.approx.ftz.f32 %f2, %f3;", 1.0 / t),
        ("sqrt.rn.f32 %f2, %f3;", t.sqrt()),
        ("rsqrt.approx.f32 %f2, %f3;", 1.0 / t.sqrt()),
        ("ex2.approx.ftz.f32 %f2, %f3;", t.exp2()),
        ("lg2.approx.f32 %f2, %f3;", t.log2()),
        ("sin.approx.f32 %f2, %f3;", t.sin()),
        ("cos.approx.f32 %f2, %f3;", t.cos()),
        ("tanh.approx.f32 %f2, %f3;", t.tanh()),
        ("neg.f32 %f2, %f3;", -t),
        ("neg.f32 %f4, %f3; abs.f32 %f2, %f4;", t),
        ("min.f32 %f2, %f3, %f1;", t),
        ("max.f32 %f2, %f3, 0f00000000;", t),
        ("copysign.f32 %f2, 0fBF800000, %f3;", -t),
    ] {
        assert_shadow(body, want);
    }
}

#[test]
fn conversions_between_formats_keep_the_shadow() {
    let t = third();
    for body in [
        "cvt.rn.f16.f32 %h1, %f3; cvt.f32.f16 %f2, %h1;",
        "cvt.rn.bf16.f32 %h1, %f3; cvt.f32.bf16 %f2, %h1;",
        "cvt.f64.f32 %d1, %f3; cvt.rn.f32.f64 %f2, %d1;",
        "cvt.sat.f32.f32 %f2, %f3;",
        "cvt.rn.f16x2.f32 %r5, %f1, %f3; mov.b32 {%h1, %h2}, %r5; cvt.f32.f16 %f2, %h1;",
        "cvt.rn.bf16x2.f32 %r5, %f3, %f1; mov.b32 {%h1, %h2}, %r5; cvt.f32.bf16 %f2, %h2;",
    ] {
        assert_shadow(body, t);
    }
}

#[test]
fn narrow_and_wide_arithmetic_is_computed_in_double() {
    let t = third();
    let halves = "cvt.rn.f16.f32 %h1, %f3; mov.b32 %r5, {%h1, %h1};";
    for (body, want) in [
        (
            format!("{halves} add.f16 %h2, %h1, %h1; cvt.f32.f16 %f2, %h2;"),
            t + t,
        ),
        (
            format!("{halves} fma.rn.f16 %h2, %h1, %h1, %h1; cvt.f32.f16 %f2, %h2;"),
            t * t + t,
        ),
        (
            format!(
                "{halves} mul.f16x2 %r5, %r5, %r5; mov.b32 {{%h1, %h2}}, %r5; cvt.f32.f16 %f2, %h2;"
            ),
            t * t,
        ),
        (
            "cvt.f64.f32 %d1, %f3; sqrt.rn.f64 %d2, %d1; fma.rn.f64 %d2, %d2, %d1, %d1;\
             cvt.rn.f32.f64 %f2, %d2;"
                .to_owned(),
            t.sqrt() * t + t,
        ),
    ] {
        assert_shadow(&body, want);
    }
}

#[test]
fn moves_keep_the_shadow() {
    let t = third();
    for body in [
        "mov.f32 %f2, %f3;",
        "mov.b32 %r5, %f3; mov.b32 %f2, %r5;",
        "mov.b64 %rd6, {%f1, %f3}; mov.b64 {%f4, %f2}, %rd6;",
        "mov.b64 %rd6, {%f1, %f3}; shr.u64 %rd6, %rd6, 32; cvt.u32.u64 %r5, %rd6; mov.b32 %f2, %r5;",
        "setp.lt.u32 %p1, %r2, 99; selp.f32 %f2, %f3, %f1, %p1;",
        "mov.b32 %r5, %f3; or.b32 %r5, %r5, 0; mov.b32 %f2, %r5;",
        "shfl.sync.bfly.b32 %f2, %f3, 1, 31, -1;",
        "st.shared.f32 [%r4], %f3; ld.shared.f32 %f2, [%r4];",
        "st.shared.v2.f32 [%r4], {%f1, %f3}; ld.shared.u64 %rd6, [%r4]; mov.b64 {%f4, %f2}, %rd6;",
        "cvt.f64.f32 %d1, %f3; st.shared.f64 [%r4], %d1; ld.shared.f64 %d2, [%r4]; cvt.rn.f32.f64 %f2, %d2;",
        "cvt.rn.f16.f32 %h1, %f3; st.shared.b16 [%r4+2], %h1; ld.shared.b16 %h2, [%r4+2]; cvt.f32.f16 %f2, %h2;",
        "st.local.f32 [l+8], %f3; ld.local.f32 %f2, [l+8];",
        "st.global.f32 [%rd5], %f3; ld.global.f32 %f2, [%rd5];",
        "st.global.f32 [%rd5], %f3; mov.u64 %rd6, %rd5; ld.f32 %f2, [%rd6];",
    ] {
        assert_shadow(body, t);
    }
}

#[test]
fn atomics_compute_on_shadows() {
    let (x, t) = (f64::from(INPUT), third());
    for (body, want) in [
        (
            "red.global.add.f32 [%rd5], %f3; red.global.add.f32 [%rd5], %f3; ld.global.f32 %f2, [%rd5];",
            t + t,
        ),
        (
            "st.shared.f32 [%r4], %f1; atom.shared.add.f32 %f4, [%r4], %f3; ld.shared.f32 %f2, [%r4];",
            x + t,
        ),
        (
            "mov.b32 %r5, %f3; atom.global.exch.b32 %r6, [%rd5], %r5; ld.global.f32 %f2, [%rd5];",
            t,
        ),
        (
            "st.global.f32 [%rd5], %f3; mov.b32 %r5, %f1; atom.global.exch.b32 %r6, [%rd5], %r5; mov.b32 %f2, %r6;",
            t,
        ),
        (
            "mov.b32 %r5, %f3; atom.global.cas.b32 %r6, [%rd5], 0, %r5; ld.global.f32 %f2, [%rd5];",
            t,
        ),
    ] {
        assert_shadow(body, want);
    }
}

#[test]
fn a_shadow_ends_where_bits_or_integers_decide() {
    for body in [
        // The exponent plus one.
        "mov.b32 %r5, %f3; add.u32 %r5, %r5, 8388608; mov.b32 %f2, %r5;",
        // Rounded to an integer, as branches follow the ordinary value.
        "cvt.rni.f32.f32 %f2, %f3;",
        "add.f32 %f4, %f3, 0f4B400000; sub.f32 %f2, %f4, 0f4B400000;",
        "cvt.rzi.s32.f32 %r5, %f3; cvt.rn.f32.s32 %f2, %r5;",
    ] {
        let outcome = run(&format!("{THIRD}{body}"), INPUT);
        for (value, shadow) in outcome.values.iter().zip(&outcome.shadows) {
            let shadow = shadow.unwrap_or((*value).into());
            assert_eq!(shadow, f64::from(*value), "{body}");
        }
    }
    // A register that an instruction without a shadow overwrote.
    let outcome = run(
        &format!("{THIRD}mov.f32 %f2, %f3; mov.u32 %r5, 7; mov.b32 %f2, %r5;"),
        INPUT,
    );
    assert_eq!(outcome.shadows, vec![None; 128]);
}

#[test]
fn inputs_are_exact_and_control_flow_follows_the_values() {
    let outcome = run("add.f32 %f2, %f1, 0f00000000;", INPUT);
    assert_eq!(outcome.shadows[0], Some(f64::from(INPUT)));
    // One third times three is one as a single and a double, but the sum of ten tenths is not.
    let sum = "mov.f32 %f2, 0f00000000; mov.u32 %r5, 0;\n\
               L: add.f32 %f2, %f2, %f1; add.u32 %r5, %r5, 1; setp.lt.f32 %p1, %f2, 0f447A0000;\n\
               @%p1 bra L;";
    let outcome = run(sum, 0.1);
    let steps = (outcome.shadows[0].unwrap() / f64::from(0.1_f32)).round();
    // The value decided when to stop: its error is far larger than the shadow's.
    assert!((9990.0..10010.0).contains(&steps), "{steps}");
    assert!((outcome.shadows[0].unwrap() - steps * f64::from(0.1_f32)).abs() < 1e-9);
    assert!(outcome.values[0] >= 1000.0);
}

#[test]
fn long_sums_lose_nothing() {
    let body = "mov.f32 %f2, 0f00000000; mov.u32 %r5, 0;\n\
                L: add.f32 %f2, %f2, %f1; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 100000;\n\
                @%p1 bra L;";
    let outcome = run(body, 0.1);
    let exact = 1e5 * f64::from(0.1_f32);
    let error = |value: f64| (value - exact).abs() / exact;
    assert!(error(outcome.values[0].into()) > 1e-5);
    assert!(error(outcome.shadows[0].unwrap()) < 1e-11);
}

#[test]
fn ordinary_values_and_threads_are_unaffected() {
    let body = "mul.f32 %f2, %f1, %f1; atom.global.add.f32 %f4, [%rd5], %f2;\n\
                shfl.sync.down.b32 %f5, %f2, 1, 31, -1; fma.rn.f32 %f2, %f2, %f1, %f5;";
    let plain = run_with(body, INPUT, 1, false);
    assert_eq!(plain.shadows, vec![None; 128]);
    let one = run_with(body, INPUT, 1, true);
    assert_eq!(plain.values, one.values);
    let two = run_with(body, INPUT, 2, true);
    assert_eq!(one.values, two.values);
    assert_eq!(one.shadows, two.shadows);
}

#[test]
fn matrix_products_are_computed_in_double() {
    let (x, t) = (f64::from(INPUT), third());
    // All elements are one number in half precision, whose shadow is the input.
    let halves = "cvt.rn.f16.f32 %h1, %f1; mov.b32 %r5, {%h1, %h1};";
    let product = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f5, %f6, %f7}, \
                   {%r5, %r5, %r5, %r5}, {%r6, %r6}, {%f3, %f3, %f3, %f3};";
    let wide = "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 \
                {%f2, %f4, %f5, %f6, %f7, %f8, %f3, %f1}, \
                {%r5, %r5, %r5, %r5, %r5, %r5, %r5, %r5}, \
                {%r5, %r5, %r5, %r5, %r5, %r5, %r5, %r5}, \
                {%f3, %f3, %f3, %f3, %f3, %f3, %f3, %f3};";
    let want = 16.0 * x * x + t;
    assert_shadow(&format!("{halves} mov.b32 %r6, %r5; {product}"), want);
    assert_shadow(&format!("{halves} {wide}"), want);
    // Rows of 16 bytes in shared memory, 8 bytes from each thread.
    let store = "st.shared.v2.b32 [%r4], {%r5, %r5}; bar.sync 0; and.b32 %r7, %r2, 15; \
                 shl.b32 %r7, %r7, 4; mov.u32 %r8, s; add.u32 %r8, %r8, %r7;";
    for trans in ["", ".trans"] {
        let load = format!("ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {{%r6}}, [%r8];");
        assert_shadow(&format!("{halves} {store} {load} {product}"), want);
    }
}
