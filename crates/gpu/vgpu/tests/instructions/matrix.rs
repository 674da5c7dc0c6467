//! `mma.sync` and `wmma` through the executor, against sums in double precision, with the layouts
//! printed in the PTX ISA.

mod scaled;
mod sparse;
mod wmma;

use crate::harness::{Random, launch_words};
use crate::models::{BF16, F16};
use vgpu::Module;

/// Encoding of elements in registers.
#[derive(Clone, Copy, PartialEq)]
enum E {
    F16,
    Bf16,
    Tf32,
    S8,
    U8,
    F32,
    S32,
    S4,
    U4,
    Fp8,
    /// With five exponent bits.
    Wide8,
}

impl E {
    fn per_register(self) -> usize {
        match self {
            E::F16 | E::Bf16 => 2,
            E::S8 | E::U8 | E::Fp8 | E::Wide8 => 4,
            E::S4 | E::U4 => 8,
            _ => 1,
        }
    }

    fn value(self, word: u64, sub: usize) -> f64 {
        let bits = 32 / self.per_register();
        let code = word >> (bits * sub) & (u64::MAX >> (64 - bits));
        match self {
            E::F16 => F16.value(code),
            E::Bf16 => BF16.value(code),
            E::Tf32 => f32::from_bits(code as u32 & !0x1fff).into(),
            E::F32 => f32::from_bits(code as u32).into(),
            E::S8 => (code as i8).into(),
            E::U8 => (code as u8).into(),
            E::S4 => ((code << 4) as i8 >> 4).into(),
            E::U4 => (code as u8).into(),
            E::Wide8 => F16.value(code << 8),
            E::S32 => (code as u32 as i32).into(),
            E::Fp8 => {
                let (field, fraction) = ((code >> 3 & 15) as i32, (code & 7) as f64);
                let v = if field == 0 {
                    fraction / 8.0 * 2.0_f64.powi(-6)
                } else {
                    (1.0 + fraction / 8.0) * 2.0_f64.powi(field - 7)
                };
                if code & 128 != 0 { -v } else { v }
            }
        }
    }

    /// Returns a register of moderate values.
    fn register(self, random: &mut Random) -> u64 {
        let x = random.next() & 0xffff_ffff;
        match self {
            E::F16 => x & 0x8fff_8fff | 0x3000_3000,
            E::Bf16 => x & 0x80ff_80ff | 0x3f00_3f00,
            E::Tf32 | E::F32 => x & 0x80ff_ffff | 0x3f00_0000,
            E::Fp8 | E::Wide8 => x & 0xbfbf_bfbf,
            _ => x,
        }
    }
}

/// Runs a kernel of one warp in which every lane loads `sources` 32-bit registers `%r0…`, executes
/// `body`, and stores `%d0…`.
fn warp(body: &str, sources: usize, results: usize, words: &[u64]) -> Vec<u64> {
    let mut text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {{\n\
         .reg .b32 %r<64>; .reg .b32 %d<16>; .reg .b64 %q<8>; .reg .b32 %t;\n\
         mov.u32 %t, %tid.x; ld.param.u64 %q0, [out]; ld.param.u64 %q1, [in];\n\
         mul.wide.u32 %q2, %t, {}; add.s64 %q3, %q1, %q2; mul.wide.u32 %q2, %t, {}; add.s64 %q4, %q0, %q2;\n",
        8 * sources,
        8 * results
    );
    for i in 0..sources {
        text += &format!("ld.global.u32 %r{i}, [%q3+{}];\n", 8 * i);
    }
    text += body;
    for i in 0..results {
        text += &format!(
            "\ncvt.u64.u32 %q5, %d{i}; st.global.u64 [%q4+{}], %q5;",
            8 * i
        );
    }
    text += "\nret;\n}\n";
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
    launch_words(&module, "k", 1, 32, words, 32 * results, body)
}

fn list(prefix: &str, range: std::ops::Range<usize>) -> String {
    let names: Vec<String> = range.map(|i| format!("{prefix}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

type Matrix = Vec<Vec<f64>>;

fn zeros(rows: usize, columns: usize) -> Matrix {
    vec![vec![0.0; columns]; rows]
}

struct Form {
    text: &'static str,
    k: usize,
    a: E,
    b: E,
    acc: E,
}

#[test]
fn mma_multiplies_its_fragments() {
    let forms = [
        (
            "m16n8k16.row.col.f32.f16.f16.f32",
            16,
            E::F16,
            E::F16,
            E::F32,
        ),
        (
            "m16n8k16.row.col.f16.f16.f16.f16",
            16,
            E::F16,
            E::F16,
            E::F16,
        ),
        ("m16n8k8.row.col.f32.f16.f16.f32", 8, E::F16, E::F16, E::F32),
        (
            "m16n8k16.row.col.f32.bf16.bf16.f32",
            16,
            E::Bf16,
            E::Bf16,
            E::F32,
        ),
        (
            "m16n8k8.row.col.f32.bf16.bf16.f32",
            8,
            E::Bf16,
            E::Bf16,
            E::F32,
        ),
        (
            "m16n8k8.row.col.f32.tf32.tf32.f32",
            8,
            E::Tf32,
            E::Tf32,
            E::F32,
        ),
        (
            "m16n8k4.row.col.f32.tf32.tf32.f32",
            4,
            E::Tf32,
            E::Tf32,
            E::F32,
        ),
        ("m16n8k32.row.col.s32.s8.s8.s32", 32, E::S8, E::S8, E::S32),
        ("m16n8k32.row.col.s32.u8.s8.s32", 32, E::U8, E::S8, E::S32),
        ("m16n8k16.row.col.s32.s8.s8.s32", 16, E::S8, E::S8, E::S32),
        (
            "m16n8k32.row.col.f32.e4m3.e4m3.f32",
            32,
            E::Fp8,
            E::Fp8,
            E::F32,
        ),
        (
            "m16n8k32.row.col.f32.e5m2.e5m2.f32",
            32,
            E::Wide8,
            E::Wide8,
            E::F32,
        ),
        (
            "m16n8k32.row.col.f32.e4m3.e5m2.f32",
            32,
            E::Fp8,
            E::Wide8,
            E::F32,
        ),
        ("m16n8k16.row.col.s32.s8.u8.s32", 16, E::S8, E::U8, E::S32),
        (
            "m16n8k32.row.col.satfinite.s32.s8.s8.s32",
            32,
            E::S8,
            E::S8,
            E::S32,
        ),
        ("m16n8k64.row.col.s32.s4.s4.s32", 64, E::S4, E::S4, E::S32),
        ("m16n8k32.row.col.s32.u4.s4.s32", 32, E::U4, E::S4, E::S32),
    ];
    for (text, k, a, b, acc) in forms {
        check_mma(&Form { text, k, a, b, acc });
    }
}

fn check_mma(form: &Form) {
    let k = form.k;
    let (na, nb) = (
        16 * k / 32 / form.a.per_register(),
        k * 8 / 32 / form.b.per_register(),
    );
    let nc = 4 / form.acc.per_register();
    let mut random = Random(k as u64);
    let words: Vec<u64> = (0..32 * (na + nb + nc))
        .map(|i| match i % (na + nb + nc) {
            r if r < na => form.a.register(&mut random),
            r if r < na + nb => form.b.register(&mut random),
            // Near the limit, so that saturation matters.
            _ if form.text.contains("satfinite") => {
                0x7fff_ff00 ^ (random.next() & 1).wrapping_neg() & 0xffff_ffff
            }
            _ => form.acc.register(&mut random),
        })
        .collect();
    let body = format!(
        "mma.sync.aligned.{} {}, {}, {}, {};",
        form.text,
        list("%d", 0..nc),
        list("%r", 0..na),
        list("%r", na..na + nb),
        list("%r", na + nb..na + nb + nc)
    );
    let results = warp(&body, na + nb + nc, nc, &words);
    let (mut am, mut bm, mut cm, mut dm) = (zeros(16, k), zeros(k, 8), zeros(16, 8), zeros(16, 8));
    for lane in 0..32 {
        let (group, thread) = (lane >> 2, lane & 3);
        let word = |r: usize| words[lane * (na + nb + nc) + r];
        let per = form.a.per_register();
        for i in 0..na * per {
            // The formulas of the PTX ISA: the row alternates between registers, the column
            // advances by two.
            let (register, sub) = (i / per, i % per);
            let row = if register % 2 == 0 { group } else { group + 8 };
            let column = thread * per + sub + if register >= 2 { 4 * per } else { 0 };
            am[row][column] = form.a.value(word(register), sub);
        }
        for i in 0..nb * per {
            let (register, sub) = (i / per, i % per);
            bm[thread * per + sub + 4 * per * register][group] =
                form.b.value(word(na + register), sub);
        }
        for i in 0..4 {
            let (row, column) = (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1));
            let (register, sub) = if nc == 2 { (i / 2, i % 2) } else { (i, 0) };
            cm[row][column] = form.acc.value(word(na + nb + register), sub);
            dm[row][column] = form.acc.value(results[lane * nc + register], sub);
        }
    }
    compare(form.text, form.acc, &am, &bm, &cm, &dm);
}

fn compare(what: &str, acc: E, a: &Matrix, b: &Matrix, c: &Matrix, d: &Matrix) {
    let k = b.len();
    for (i, row) in d.iter().enumerate() {
        for (j, &got) in row.iter().enumerate() {
            let exact = c[i][j] + (0..k).map(|p| a[i][p] * b[p][j]).sum::<f64>();
            let scale = c[i][j].abs() + (0..k).map(|p| (a[i][p] * b[p][j]).abs()).sum::<f64>();
            match acc {
                E::S32 if what.contains("satfinite") => {
                    let most = f64::from(i32::MAX);
                    assert_eq!(got, exact.clamp(-most - 1.0, most), "{what} ({i}, {j})");
                }
                E::S32 => assert_eq!(
                    (got - exact).rem_euclid(4_294_967_296.0),
                    0.0,
                    "{what} ({i}, {j})"
                ),
                _ => {
                    let unit = if acc == E::F16 {
                        2.0_f64.powi(-10)
                    } else {
                        2.0_f64.powi(-23)
                    };
                    let bound = unit * scale * if acc == E::F16 { 1.0 } else { k as f64 };
                    assert!(
                        (got - exact).abs() <= bound,
                        "{what} ({i}, {j}): {got}, exactly {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn double_mma_multiplies_its_fragments() {
    let mut random = Random(99);
    let mut value = || ((random.next() as i64) as f64 / 1e18).to_bits();
    let words: Vec<u64> = (0..32 * 4).map(|_| value()).collect();
    let text = ".version 8.8\n.target sm_90a\n.address_size 64\n\
        .visible .entry k(.param .u64 out, .param .u64 in) {\n\
        .reg .f64 %f<8>; .reg .b64 %q<8>; .reg .b32 %t;\n\
        mov.u32 %t, %tid.x; ld.param.u64 %q0, [out]; ld.param.u64 %q1, [in];\n\
        mul.wide.u32 %q2, %t, 32; add.s64 %q1, %q1, %q2; mul.wide.u32 %q2, %t, 16; add.s64 %q0, %q0, %q2;\n\
        ld.global.v2.f64 {%f0, %f1}, [%q1]; ld.global.v2.f64 {%f2, %f3}, [%q1+16];\n\
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%f4, %f5}, {%f0}, {%f1}, {%f2, %f3};\n\
        st.global.v2.f64 [%q0], {%f4, %f5}; ret; }";
    let module = Module::load(text).unwrap_or_else(|e| panic!("{e}"));
    let results = launch_words(&module, "k", 1, 32, &words, 64, "f64");
    let at = |lane: usize, i: usize| f64::from_bits(words[4 * lane + i]);
    for lane in 0..32 {
        let (row, thread) = (lane / 4, lane % 4);
        for i in 0..2 {
            let column = 2 * thread + i;
            let mut sum = at(lane, 2 + i);
            for p in 0..4 {
                sum = at(4 * row + p, 0).mul_add(at(4 * column + p, 1), sum);
            }
            assert_eq!(f64::from_bits(results[2 * lane + i]), sum);
        }
    }
}
