//! Loads, stores, atomics and asynchronous copies.

use crate::harness::{Kind, Q, R, Random, W, check, launch_words};
use crate::models::{cut, signed};
use vgpu::Module;

const I: (W, Kind) = (R, Kind::Int);
const L: (W, Kind) = (Q, Kind::Int);

/// Runs a kernel of one block over `%q8` (out) and `%q9` (in), with the thread in `%r8`.
pub(crate) fn run(
    declarations: &str,
    body: &str,
    threads: usize,
    words: &[u64],
    outputs: usize,
) -> Vec<u64> {
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n\
         .const .align 8 .b32 table[8] = {{10, 11, 12, 13, 14, 15, 16, 17}};\n\
         .global .align 8 .b64 global_word = 77;\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {{\n{declarations}\n\
         .reg .b16 %h<8>; .reg .b32 %r<24>; .reg .f32 %f<8>; .reg .b64 %q<24>; .reg .pred %p<8>;\n\
         mov.u32 %r8, %tid.x; ld.param.u64 %q8, [out]; ld.param.u64 %q9, [in];\n\
         {body}\nret;\n}}\n"
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
    launch_words(&module, "k", 1, threads, words, outputs, body)
}

pub(crate) fn random(count: usize) -> Vec<u64> {
    let mut random = Random(count as u64);
    (0..count).map(|_| random.next()).collect()
}

#[test]
fn narrow_loads_extend_and_narrow_stores_cut() {
    // Through the upper bytes of the operand's slot in shared memory.
    let through = |ty: &str, store: &str, offset: u32| {
        format!(
            "{{ .shared .align 8 .b8 box[1024]; .reg .b32 %a; mov.u32 %a, box; shl.b32 %r11, %r8, 3;\n\
             and.b32 %r11, %r11, 1023; add.u32 %a, %a, %r11; st.shared.u64 [%a], {{a}};\n\
             st.shared.{store} [%a+{offset}], {{b}}; ld.shared.{ty} {{d}}, [%a+{offset}]; }}"
        )
    };
    for (ty, store, bits, sign) in [
        ("u8", "u8", 8, false),
        ("s8", "b8", 8, true),
        ("u16", "u16", 16, false),
        ("s16", "b16", 16, true),
    ] {
        for offset in [0, 2, 6] {
            check(&through(ty, store, offset), R, &[L, I], |x| {
                if sign {
                    cut(signed(x[1], bits), 32)
                } else {
                    x[1] & ((1 << bits) - 1)
                }
            });
        }
    }
    check(&through("s32", "u32", 4), Q, &[L, I], |x| {
        cut(signed(x[1], 32), 64)
    });
}

#[test]
fn vectors_load_and_store_their_elements_in_order() {
    let words = random(64 * 4);
    let address = "mul.wide.u32 %q10, %r8, 32; add.s64 %q11, %q9, %q10; add.s64 %q12, %q8, %q10;";
    for (load, store) in [
        (
            "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%q11]; ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%q11+16];",
            "st.global.v4.u32 [%q12], {%r0, %r1, %r2, %r3}; st.global.v4.f32 [%q12+16], {%r4, %r5, %r6, %r7};",
        ),
        (
            "ld.global.v2.u64 {%q0, %q1}, [%q11]; ld.global.nc.v2.f64 {%q2, %q3}, [%q11+16];",
            "st.global.v2.b64 [%q12], {%q0, %q1}; st.global.v2.u64 [%q12+16], {%q2, %q3};",
        ),
        (
            "ld.global.v4.u16 {%h0, %h1, %h2, %h3}, [%q11]; ld.global.u64 %q0, [%q11+8]; ld.global.v2.u64 {%q1, %q2}, [%q11+16];",
            "st.global.v4.u16 [%q12], {%h0, %h1, %h2, %h3}; st.global.u64 [%q12+8], %q0; st.global.v2.u64 [%q12+16], {%q1, %q2};",
        ),
        (
            "ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%q11]; ld.global.v2.u8 {%h4, %h5}, [%q11+4]; ld.global.u16 %h6, [%q11+6]; ld.global.u64 %q0, [%q11+8]; ld.global.v2.u64 {%q1, %q2}, [%q11+16];",
            "st.global.v4.u8 [%q12], {%h0, %h1, %h2, %h3}; st.global.v2.u8 [%q12+4], {%h4, %h5}; st.global.u16 [%q12+6], %h6; st.global.u64 [%q12+8], %q0; st.global.v2.u64 [%q12+16], {%q1, %q2};",
        ),
        (
            "ld.v4.f32 {%f0, %f1, %f2, %f3}, [%q11]; ld.v2.u64 {%q2, %q3}, [%q11+16];",
            "st.v4.f32 [%q12], {%f0, %f1, %f2, %f3}; st.v2.u64 [%q12+16], {%q2, %q3};",
        ),
    ] {
        assert_eq!(
            run("", &format!("{address} {load} {store}"), 64, &words, 256),
            words,
            "{load}"
        );
    }
}

#[test]
fn generic_addresses_reach_every_space() {
    let declarations = ".shared .align 8 .b64 s[32]; .local .align 8 .b64 l[4];";
    let words = random(32);
    let body = "
        mul.wide.u32 %q10, %r8, 8; add.s64 %q11, %q9, %q10; ld.u64 %q0, [%q11];
        mov.u64 %q12, s; cvta.shared.u64 %q12, %q12; add.s64 %q12, %q12, %q10; st.u64 [%q12], %q0;
        ld.u64 %q1, [%q12];
        mov.u64 %q13, l; cvta.local.u64 %q13, %q13; st.u64 [%q13+8], %q1; ld.u64 %q2, [%q13+8];
        ld.local.u64 %q3, [l+8];
        mov.u64 %q14, table; cvta.const.u64 %q14, %q14; ld.u32 %r1, [%q14+12]; ld.const.u32 %r2, [table+4];
        mov.u64 %q15, global_word; cvta.global.u64 %q15, %q15; ld.u64 %q4, [%q15]; ld.global.u64 %q5, [global_word];
        cvta.to.shared.u64 %q16, %q12; ld.shared.u64 %q6, [%q16];
        isspacep.shared %p1, %q12; isspacep.local %p2, %q13; isspacep.global %p3, %q11; isspacep.global %p4, %q12;
        selp.u32 %r3, 1, 0, %p1; @%p2 add.u32 %r3, %r3, 2; @%p3 add.u32 %r3, %r3, 4; @%p4 add.u32 %r3, %r3, 8;
        add.u32 %r3, %r3, %r1; add.u32 %r3, %r3, %r2; cvt.u64.u32 %q17, %r3;
        add.s64 %q17, %q17, %q4; add.s64 %q17, %q17, %q5;
        add.s64 %q17, %q17, %q2; add.s64 %q17, %q17, %q3; add.s64 %q17, %q17, %q6;
        add.s64 %q11, %q8, %q10; st.u64 [%q11], %q17;";
    let expected: Vec<u64> = words
        .iter()
        .map(|w| w.wrapping_mul(3).wrapping_add(7 + 13 + 11 + 77 + 77))
        .collect();
    assert_eq!(run(declarations, body, 32, &words, 32), expected);
}

#[test]
fn local_memory_belongs_to_its_thread() {
    let body = "
        mul.wide.u32 %q10, %r8, 8; add.s64 %q11, %q9, %q10; ld.global.u64 %q0, [%q11];
        and.b32 %r1, %r8, 3; mul.wide.u32 %q12, %r1, 8; mov.u64 %q13, l; add.s64 %q13, %q13, %q12;
        st.local.v2.u64 [l], {%q10, %q10}; st.local.v2.u64 [l+16], {%q10, %q10};
        st.local.u64 [%q13], %q0; ld.local.u64 %q1, [%q13]; ld.local.v2.u32 {%r4, %r5}, [l+24];
        mov.b64 %q2, {%r4, %r5}; xor.b64 %q1, %q1, %q2;
        add.s64 %q11, %q8, %q10; st.global.u64 [%q11], %q1;";
    let words = random(64);
    let expected: Vec<u64> = words
        .iter()
        .enumerate()
        .map(|(t, w)| if t % 4 == 3 { 0 } else { w ^ (8 * t as u64) })
        .collect();
    assert_eq!(
        run(".local .align 16 .b64 l[4];", body, 64, &words, 64),
        expected
    );
}

/// Applies an atomic of 128 threads to one word that starts with `start`. Returns the old values in
/// the order of the threads, and the final word.
fn atomics(instruction: &str, start: u64, operands: &[u64], space: &str) -> (Vec<u64>, u64) {
    let mut words = vec![start];
    words.extend(operands);
    let place = match space {
        "shared" => "mov.u64 %q12, s; @%p1 st.shared.u64 [%q12], %q1;",
        "generic" => "mov.u64 %q12, s; @%p1 st.shared.u64 [%q12], %q1; cvta.shared.u64 %q12, %q12;",
        _ => "mov.u64 %q12, global_word; @%p1 st.global.u64 [%q12], %q1;",
    };
    let load = if space == "global" {
        "ld.global.u64"
    } else {
        "ld.shared.u64"
    };
    let body = format!(
        "mul.wide.u32 %q10, %r8, 8; add.s64 %q11, %q9, %q10; ld.global.u64 %q0, [%q11+8];\n\
         ld.global.u64 %q1, [%q9]; cvt.u32.u64 %r0, %q0; cvt.u16.u64 %h0, %q0; setp.eq.u32 %p1, %r8, 0; {place}\n\
         bar.sync 0; mov.u64 %q5, 0; mov.u32 %r5, 0; {instruction}\n\
         bar.sync 0; add.s64 %q13, %q8, %q10; st.global.u64 [%q13+8], %q5;\n\
         mov.u64 %q14, {}; @%p1 {load} %q6, [%q14]; @%p1 st.global.u64 [%q8], %q6;",
        if space == "global" {
            "global_word"
        } else {
            "s"
        }
    );
    let results = run(
        ".shared .align 8 .b64 s[1];",
        &body,
        operands.len(),
        &words,
        operands.len() + 1,
    );
    (results[1..].to_vec(), results[0])
}

/// Checks that the old values are those of some order of the threads: with a commutative operation
/// they chain from the start to the end.
fn check_chain(
    name: &str,
    start: u64,
    operands: &[u64],
    step: impl Fn(u64, u64) -> u64,
    bits: u32,
) {
    for space in ["global", "shared", "generic"] {
        let dot = if space == "generic" {
            String::new()
        } else {
            format!(".{space}")
        };
        let instruction = if bits == 32 {
            format!("atom{dot}.{name} %r5, [%q12], %r0; cvt.u64.u32 %q5, %r5;")
        } else {
            format!("atom{dot}.{name} %q5, [%q12], %q0;")
        };
        let mask = u64::MAX >> (64 - bits);
        let (old, last) = atomics(&instruction, start, operands, space);
        // The executor's order is unspecified: follow the chain of old values.
        let mut left: Vec<(u64, u64)> = old
            .iter()
            .copied()
            .zip(operands.iter().map(|o| o & mask))
            .collect();
        let mut at = start & mask;
        while !left.is_empty() {
            // Prefer an operand that leaves the word unchanged, as equal old values may be many.
            let stay = left.iter().position(|&(o, v)| o == at && step(at, v) == at);
            let next = stay.or_else(|| left.iter().position(|&(o, _)| o == at));
            let Some(i) = next else {
                panic!("{instruction}: nobody saw {at:#x}; left {left:x?}")
            };
            let (_, value) = left.swap_remove(i);
            at = step(at, value);
        }
        assert_eq!(last & mask, at, "{instruction}");
        assert_eq!(
            last & !mask,
            start & !mask,
            "{instruction} touched its neighbour"
        );
    }
}

#[test]
fn atomics_return_the_old_value_and_combine() {
    let m32 = 0xffff_ffff;
    let ops: Vec<u64> = random(128);
    let small: Vec<u64> = (0..128).map(|i| i * 37 % 128).collect();
    check_chain("add.u32", 5, &[3; 128], |a, b| (a + b) & m32, 32);
    check_chain("add.s32", 7 << 32 | m32, &[1; 64], |a, b| (a + b) & m32, 32);
    check_chain(
        "add.u64",
        u64::MAX - 5,
        &[3; 128],
        |a, b| a.wrapping_add(b),
        64,
    );
    check_chain("min.u32", m32, &small, |a, b| a.min(b), 32);
    check_chain("max.u32", 0, &small, |a, b| a.max(b), 32);
    check_chain(
        "min.s32",
        0,
        &ops,
        |a, b| (a as i32).min(b as i32) as u32 as u64,
        32,
    );
    check_chain(
        "max.s32",
        0,
        &ops,
        |a, b| (a as i32).max(b as i32) as u32 as u64,
        32,
    );
    check_chain("min.u64", u64::MAX, &ops, |a, b| a.min(b), 64);
    check_chain(
        "max.s64",
        0,
        &ops,
        |a, b| (a as i64).max(b as i64) as u64,
        64,
    );
    check_chain(
        "inc.u32",
        0,
        &[5; 100],
        |a, b| if a >= b { 0 } else { a + 1 },
        32,
    );
    check_chain(
        "dec.u32",
        3,
        &[5; 100],
        |a, b| if a == 0 || a > b { b } else { a - 1 },
        32,
    );
    check_chain(
        "or.b32",
        0,
        &ops.iter().map(|o| 1 << (o % 31)).collect::<Vec<_>>(),
        |a, b| a | b,
        32,
    );
    check_chain(
        "and.b64",
        u64::MAX,
        &ops.iter().map(|o| !(1 << (o % 63))).collect::<Vec<_>>(),
        |a, b| a & b,
        64,
    );
    check_chain("exch.b64", 1, &ops, |_, b| b, 64);
    // Exact sums of small integers, independent of the order.
    let singles: Vec<u64> = (0..128_u16)
        .map(|i| f32::from(i + 1).to_bits().into())
        .collect();
    let add = |a: u64, b: u64| {
        (f32::from_bits(a as u32) + f32::from_bits(b as u32))
            .to_bits()
            .into()
    };
    let doubles: Vec<u64> = (0..128_u16).map(|i| f64::from(i + 1).to_bits()).collect();
    for (name, ops, bits) in [("add.f32", singles, 32), ("add.f64", doubles, 64)] {
        if bits == 32 {
            check_chain(name, 0, &ops, add, 32);
        } else {
            check_chain(
                name,
                0,
                &ops,
                |a, b| (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
                64,
            );
        }
    }
}

#[test]
fn atomics_on_xor_cas_and_halves() {
    let ops = random(128);
    for space in ["global", "shared"] {
        let (_, last) = atomics(
            &format!("atom.{space}.xor.b64 %q5, [%q12], %q0;"),
            9,
            &ops,
            space,
        );
        assert_eq!(last, ops.iter().fold(9, |a, b| a ^ b));
        let (_, last) = atomics(&format!("red.{space}.add.u64 [%q12], %q0;"), 9, &ops, space);
        assert_eq!(last, ops.iter().fold(9, |a: u64, b| a.wrapping_add(*b)));
        // Exactly one compare-and-swap from zero wins; all others see its value.
        let ops: Vec<u64> = (1..=128).collect();
        let instruction =
            format!("atom.{space}.cas.b32 %r5, [%q12], 0, %r0; cvt.u64.u32 %q5, %r5;");
        let (old, last) = atomics(&instruction, 0, &ops, space);
        assert_eq!(old.iter().filter(|&&o| o == 0).count(), 1);
        assert!(old.iter().all(|&o| o == 0 || o == last) && (1..=128).contains(&last));
        // 128 halves of 1.0 in both halves: 128.0 is 0x5800.
        let pair = [0x3c00_3c00_u64; 128];
        let instruction = format!("atom.{space}.add.noftz.f16x2 %r5, [%q12], %r0;");
        assert_eq!(atomics(&instruction, 0, &pair, space).1, 0x5800_5800);
        let instruction = format!("atom.{space}.add.noftz.f16 %h1, [%q12], %h0;");
        assert_eq!(
            atomics(&instruction, 0x1234_0000, &pair, space).1,
            0x1234_5800
        );
        let pair = [0x3f80_3f80_u64; 128];
        let instruction = format!("atom.{space}.add.noftz.bf16x2 %r5, [%q12], %r0;");
        assert_eq!(atomics(&instruction, 0, &pair, space).1, 0x4300_4300);
    }
}

#[test]
fn asynchronous_copies_arrive_and_fill_with_zeros() {
    let words = random(64 * 2);
    let declarations = ".shared .align 16 .b64 s[128];";
    let address = "mul.wide.u32 %q10, %r8, 16; add.s64 %q11, %q9, %q10; add.s64 %q12, %q8, %q10;\n\
                   mov.u64 %q13, s; add.s64 %q13, %q13, %q10; mov.u64 %q5, 0x5555555555555555;\n\
                   st.shared.v2.u64 [%q13], {%q5, %q5};";
    let finish = "cp.async.commit_group; cp.async.wait_group 0; ld.shared.v2.u64 {%q0, %q1}, [%q13];\n\
                  st.global.v2.u64 [%q12], {%q0, %q1};";
    let go = |copy: &str| {
        run(
            declarations,
            &format!("{address} {copy} {finish}"),
            64,
            &words,
            128,
        )
    };
    assert_eq!(go("cp.async.cg.shared.global [%q13], [%q11], 16;"), words);
    assert_eq!(
        go("cp.async.ca.shared.global.L2::128B [%q13], [%q11], 16;"),
        words
    );
    let fill = 0x5555_5555_5555_5555_u64;
    let expect = |f: &dyn Fn(usize, u64) -> u64| {
        words
            .iter()
            .enumerate()
            .map(|(i, w)| f(i, *w))
            .collect::<Vec<_>>()
    };
    let half = go("cp.async.ca.shared.global [%q13], [%q11], 8;");
    assert_eq!(half, expect(&|i, w| if i % 2 == 0 { w } else { fill }));
    let quarter = go("cp.async.ca.shared.global [%q13+4], [%q11+4], 4;");
    assert_eq!(
        quarter,
        expect(&|i, w| if i % 2 == 0 {
            w >> 32 << 32 | fill & 0xffff_ffff
        } else {
            fill
        })
    );
    let short = go("mov.u32 %r1, 6; cp.async.cg.shared.global [%q13], [%q11], 16, %r1;");
    assert_eq!(
        short,
        expect(&|i, w| if i % 2 == 0 { w & 0xffff_ffff_ffff } else { 0 })
    );
    let none = go("setp.lt.u32 %p1, %r8, 32; selp.u32 %r1, 0, 16, %p1;\n\
                   cp.async.cg.shared.global [%q13], [%q11], 16, %r1;");
    assert_eq!(none, expect(&|i, w| if i < 64 { 0 } else { w }));
}

#[test]
fn matrices_are_loaded_and_stored_by_rows() {
    // Four matrices of 8 rows of 16 bytes, a row a lane.
    let words = random(64);
    let element =
        |m: usize, i: usize, j: usize| words[16 * m + 2 * i + j / 4] >> (16 * (j % 4)) & 0xffff;
    let declarations = ".shared .align 16 .b64 s[64]; .shared .align 16 .b64 t[64];";
    let setup = "mul.wide.u32 %q10, %r8, 16; add.s64 %q11, %q9, %q10; ld.global.v2.u64 {%q0, %q1}, [%q11];\n\
                 mov.u64 %q12, s; add.s64 %q13, %q12, %q10; st.shared.v2.u64 [%q13], {%q0, %q1}; bar.sync 0;";
    let store = "add.s64 %q11, %q8, %q10; mov.b64 %q0, {%r0, %r1}; mov.b64 %q1, {%r2, %r3};\n\
                 st.global.v2.u64 [%q11], {%q0, %q1};";
    for (trans, dot) in [(false, ""), (true, ".trans")] {
        let body = format!(
            "{setup} ldmatrix.sync.aligned.m8n8.x4{dot}.shared.b16 {{%r0, %r1, %r2, %r3}}, [%q13]; {store}"
        );
        let results = run(declarations, &body, 32, &words, 64);
        for lane in 0..32 {
            for m in 0..4 {
                let register = results[2 * lane + m / 2] >> (32 * (m % 2)) & 0xffff_ffff;
                let (i, j) = (lane / 4, 2 * (lane % 4));
                let expected = if trans {
                    element(m, j, i) | element(m, j + 1, i) << 16
                } else {
                    element(m, i, j) | element(m, i, j + 1) << 16
                };
                assert_eq!(register, expected, "{dot} lane {lane} matrix {m}");
            }
        }
        // Storing what was loaded the same way restores the rows.
        let body = format!(
            "{setup} ldmatrix.sync.aligned.m8n8.x4{dot}.shared.b16 {{%r0, %r1, %r2, %r3}}, [%q13];\n\
             mov.u64 %q14, t; add.s64 %q14, %q14, %q10;\n\
             stmatrix.sync.aligned.m8n8.x4{dot}.shared.b16 [%q14], {{%r0, %r1, %r2, %r3}}; bar.sync 0;\n\
             ld.shared.v2.u64 {{%q0, %q1}}, [%q14]; add.s64 %q11, %q8, %q10; st.global.v2.u64 [%q11], {{%q0, %q1}};"
        );
        assert_eq!(run(declarations, &body, 32, &words, 64), words);
    }
    // x1 and x2 take their rows from the first 8 and 16 lanes.
    let body = format!(
        "{setup} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r0}}, [%q13];\n\
         ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%r1, %r2}}, [%q13]; mov.u32 %r3, 0; {store}"
    );
    let results = run(declarations, &body, 32, &words, 64);
    for lane in 0..32 {
        let (i, j) = (lane / 4, 2 * (lane % 4));
        let at = |m: usize| element(m, i, j) | element(m, i, j + 1) << 16;
        assert_eq!(results[2 * lane], at(0) << 32 | at(0));
        assert_eq!(results[2 * lane + 1], at(1));
    }
}

#[test]
fn rows_of_a_matrix_whose_lanes_are_not_there_are_not_read() {
    // Rows of exited lanes are absent: each lane gets two halves of a row.
    let body = "mov.u32 %r9, box; mul.lo.u32 %r10, %r8, 16; add.u32 %r9, %r9, %r10;
        mov.u32 %r11, 0x3c003c00; st.shared.v4.b32 [%r9], {%r11, %r11, %r11, %r11};
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r12, %r13, %r14, %r15}, [%r9];
        stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r9], {%r12, %r12, %r12, %r12};
        mul.wide.u32 %q10, %r8, 8; add.u64 %q8, %q8, %q10;
        cvt.u64.u32 %q11, %r12; st.global.u64 [%q8], %q11;";
    let got = run(".shared .align 16 .b8 box[512];", body, 4, &[], 4);
    assert_eq!(got, [0x3c00_3c00; 4]);
}
