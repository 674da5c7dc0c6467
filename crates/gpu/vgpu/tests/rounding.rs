//! Random rounding: affected and unaffected instructions, and dependence on the seed alone.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a panic")]

use std::fmt::Write as _;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module, Rounding, launch};

/// Returns a kernel of 64 threads per block: thread `i` loads `x[i]` to `%f1`, runs the body, and
/// stores `%f2`.
fn kernel(body: &str) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 x, .param .u64 y) {\n\
         .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<9>;\n\
         ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];\n\
         cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;\n\
         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; shl.b32 %r1, %r1, 6; add.u32 %r1, %r1, %r2;\n\
         mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;\n\
         ld.global.f32 %f1, [%rd4];\n",
    );
    let _ = write!(text, "{body}\nst.global.f32 [%rd5], %f2;\nret;\n}}\n");
    text
}

fn run(body: &str, input: f32, rounding: Option<Rounding>, threads: usize) -> Vec<f32> {
    let ptx = kernel(body);
    let module = match rounding {
        Some(_) => Module::load_randomly_rounded(&ptx).unwrap(),
        None => Module::load(&ptx).unwrap(),
    };
    let mut memory = GlobalMemory::new(1 << 20);
    let x = memory.alloc(4 * 512, "x").unwrap();
    let y = memory.alloc(4 * 512, "y").unwrap();
    memory.write(x, 0, &input.to_le_bytes().repeat(512));
    memory.write(y, 0, &[0; 4 * 512]);
    let args = vec![Arg::Buffer(x), Arg::Buffer(y)];
    let ask = Launch {
        rounding,
        threads,
        ..Launch::new("k", [8, 1, 1], [64, 1, 1], args)
    };
    let report = launch(&module, &mut memory, Arch::by_name("h100").unwrap(), &ask).unwrap();
    assert_eq!(report.hazards, []);
    let bytes = memory.read(y);
    let singles = bytes.as_chunks::<4>().0.iter();
    singles.map(|code| f32::from_le_bytes(*code)).collect()
}

fn random(body: &str, input: f32, seed: u64, precision: u32) -> Vec<f32> {
    let rounding = Rounding {
        seed,
        inverted: false,
        precision,
    };
    run(body, input, Some(rounding), 1)
}

/// Distinct values, ascending.
fn distinct(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_by(f32::total_cmp);
    values.dedup();
    values
}

const THIRD: &str = "div.rn.f32 %f2, %f1, 0f40400000;";

#[test]
fn an_inexact_result_is_one_of_its_neighbours_and_an_exact_one_stays() {
    let third = 1.0_f32 / 3.0;
    let below = f32::from_bits(third.to_bits() - 1);
    assert_eq!(distinct(random(THIRD, 1.0, 1, 24)), [below, third]);
    assert_eq!(distinct(random(THIRD, 6.0, 1, 24)), [2.0]);
    for exact in [
        "add.f32 %f2, %f1, %f1;",
        "fma.rn.f32 %f2, %f1, %f1, %f1;",
        "sqrt.rn.f32 %f2, %f1;",
        "ex2.approx.f32 %f2, %f1;",
        "cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f2, %h1;",
    ] {
        let plain = run(exact, 4.0, None, 1)[0];
        assert_eq!(distinct(random(exact, 4.0, 1, 24)), [plain], "{exact}");
    }
}

#[test]
fn every_kind_of_rounding_moves() {
    for body in [
        "add.f32 %f2, %f1, 0f2F800000;",
        "sub.rn.f32 %f2, %f1, 0f2F800000;",
        "mul.f32 %f2, %f1, %f1;",
        "fma.rn.f32 %f2, %f1, %f1, %f1;",
        "div.full.f32 %f2, %f1, 0f40E00000;",
        "rcp.rn.f32 %f2, %f1;",
        "sqrt.approx.f32 %f2, %f1;",
        "rsqrt.approx.f32 %f2, %f1;",
        "ex2.approx.ftz.f32 %f2, %f1;",
        "lg2.approx.f32 %f2, %f1;",
        "sin.approx.f32 %f2, %f1;",
        "cos.approx.f32 %f2, %f1;",
        "tanh.approx.f32 %f2, %f1;",
        "cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f2, %h1;",
        "cvt.rn.bf16.f32 %h1, %f1; cvt.f32.bf16 %f2, %h1;",
        "cvt.f64.f32 %d1, %f1; mul.f64 %d1, %d1, %d1; cvt.rn.f32.f64 %f2, %d1;",
        "atom.global.add.f32 %f3, [%rd5], %f1; bar.warp.sync -1;\
         atom.global.add.f32 %f3, [%rd5], 0f2F800000; ld.global.f32 %f2, [%rd5];",
    ] {
        let seen = distinct(random(body, 1.1, 1, 24));
        assert!((2..=3).contains(&seen.len()), "{body}: {seen:?}");
    }
}

#[test]
fn roundings_that_kernels_rely_on_stay() {
    let to_whole = "add.f32 %f2, %f1, 0f4B400000; sub.f32 %f2, %f2, 0f4B400000;";
    assert_eq!(distinct(random(to_whole, 2.7, 1, 24)), [3.0]);
    let down = "fma.rm.f32 %f2, %f1, %f1, %f1;";
    let plain = run(down, 1.1, None, 1)[0];
    assert_eq!(distinct(random(down, 1.1, 1, 24)), [plain]);
    let whole = "cvt.rni.f32.f32 %f2, %f1;";
    assert_eq!(distinct(random(whole, 2.7, 1, 24)), [3.0]);
}

#[test]
fn doubles_are_rounded_to_the_precision_that_is_asked_for() {
    let body = "cvt.f64.f32 %d1, %f1; div.rn.f64 %d1, %d1, 0d4008000000000000;\
                mul.f64 %d1, %d1, 0d41E0000000000000; cvt.rzi.s64.f64 %rd6, %d1;\
                and.b64 %rd6, %rd6, 127; cvt.rn.f32.s64 %f2, %rd6;";
    assert_eq!(distinct(random(body, 1.0, 1, 53)).len(), 1);
    assert_eq!(distinct(random(body, 1.0, 1, 24)).len(), 2);
}

#[test]
fn inverted_coins_round_the_other_way() {
    let [one, other] = [false, true].map(|inverted| {
        let rounding = Rounding {
            seed: 1,
            inverted,
            precision: 24,
        };
        run(THIRD, 1.0, Some(rounding), 1)
    });
    assert!(one.iter().zip(&other).all(|(one, other)| one != other));
}

#[test]
fn the_seed_alone_decides() {
    let body = "mul.f32 %f2, %f1, %f1; mul.f32 %f2, %f2, %f1; fma.rn.f32 %f2, %f2, %f1, %f1;";
    let rounding = |seed| {
        Some(Rounding {
            seed,
            inverted: false,
            precision: 24,
        })
    };
    let first = run(body, 1.1, rounding(1), 1);
    assert_eq!(first, run(body, 1.1, rounding(1), 2));
    assert_ne!(first, run(body, 1.1, rounding(2), 1));
    // Blocks and warps have separate coins.
    assert_ne!(first[..32], first[32..64]);
    assert_ne!(first[..64], first[64..128]);
}
