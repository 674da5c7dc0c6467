//! Branches, loops, calls and barriers: the result of a thread must not depend on its warp.

use crate::harness::{Kind, Q, R, check, launch_words};
use crate::models::signed;
use vgpu::Module;

const I: (crate::harness::W, Kind) = (R, Kind::Int);
const N: (crate::harness::W, Kind) = (R, Kind::Shift);

#[test]
fn both_sides_of_a_branch_run_for_their_lanes() {
    check(
        "{ .reg .pred %t; setp.lt.s32 %t, {a}, {b}; @%t bra LESS;
           sub.s32 {d}, {a}, {b}; bra.uni DONE;
           LESS: add.s32 {d}, {a}, {b}; DONE: add.s32 {d}, {d}, 1; }",
        R,
        &[I, I],
        |x| {
            let r = if signed(x[0], 32) < signed(x[1], 32) {
                x[0] + x[1]
            } else {
                x[0].wrapping_sub(x[1])
            };
            r.wrapping_add(1) & 0xffff_ffff
        },
    );
}

#[test]
fn nested_branches_and_early_exits_from_loops() {
    // Collatz steps of 1 to 80, stopped at 200, with a side exit.
    check(
        "{ .reg .pred %t; .reg .b32 %n, %s, %o; add.u32 %n, {a}, 1; mov.u32 %s, 0;
           LOOP: setp.eq.u32 %t, %n, 1; @%t bra OUT;
           and.b32 %o, %n, 1; setp.eq.u32 %t, %o, 0; @%t bra EVEN;
           mad.lo.u32 %n, %n, 3, 1; bra.uni NEXT;
           EVEN: shr.u32 %n, %n, 1;
           NEXT: add.u32 %s, %s, 1; setp.lt.u32 %t, %s, 200; @%t bra LOOP;
           OUT: mov.u32 {d}, %s; }",
        R,
        &[N],
        |x| {
            let (mut n, mut steps) = (x[0] + 1, 0);
            while n != 1 && steps < 200 {
                n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
                steps += 1;
            }
            steps
        },
    );
    // Inner trip count depends on the lane and on the outer counter.
    check(
        "{ .reg .pred %t; .reg .b32 %i, %j; mov.u32 {d}, 0; mov.u32 %i, 0;
           OUTER: setp.gt.u32 %t, %i, {a}; @%t bra OUT; mov.u32 %j, 0;
           INNER: setp.ge.u32 %t, %j, %i; @%t bra AFTER;
           add.u32 {d}, {d}, %j; add.u32 %j, %j, 1; setp.gt.u32 %t, {d}, 5000; @%t bra OUT; bra.uni INNER;
           AFTER: add.u32 %i, %i, 1; bra.uni OUTER;
           OUT: }",
        R,
        &[N],
        |x| {
            let mut sum = 0;
            for i in 0..=x[0] {
                for j in 0..i {
                    sum += j;
                    if sum > 5000 {
                        return sum;
                    }
                }
            }
            sum
        },
    );
}

#[test]
fn branch_tables_and_returns_of_some_lanes() {
    check(
        "{ .reg .b32 %k; .reg .pred %t; ts: .branchtargets T0, T1, T2, T3; and.b32 %k, {a}, 3;
           mov.u32 {d}, 0; brx.idx %k, ts;
           T0: add.u32 {d}, {d}, 1;
           T1: add.u32 {d}, {d}, 10; bra.uni DONE;
           T2: add.u32 {d}, {d}, 100;
           T3: add.u32 {d}, {d}, 1000;
           DONE: add.u32 {d}, {d}, 5; }",
        R,
        &[I],
        |x| [16, 15, 1105, 1005][x[0] as usize & 3],
    );
}

const CALLS: &str = "
.version 8.8
.target sm_90a
.address_size 64
.func (.param .b32 r) fib(.param .b32 n) {
  .reg .b32 %r<8>; .reg .pred %p<2>;
  ld.param.u32 %r0, [n]; mov.u32 %r1, 0; mov.u32 %r2, 1;
  L: setp.eq.u32 %p0, %r0, 0; @%p0 bra D;
  add.u32 %r3, %r1, %r2; mov.u32 %r1, %r2; mov.u32 %r2, %r3; sub.u32 %r0, %r0, 1; bra L;
  D: st.param.b32 [r], %r1; ret;
}
.func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 p[16]) {
  .reg .b64 %q<4>;
  ld.param.u64 %q0, [p]; ld.param.u64 %q1, [p+8]; st.param.b64 [r], %q1; st.param.b64 [r+8], %q0; ret;
}
.func (.param .b32 r) twice(.param .b32 n) {
  .reg .b32 %r<4>;
  ld.param.u32 %r0, [n];
  { .param .b32 a; st.param.b32 [a], %r0; .param .b32 b; call.uni (b), fib, (a); ld.param.b32 %r1, [b]; }
  add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret;
}
.visible .entry k(.param .u64 out, .param .u64 in) {
  .reg .b32 %r<8>; .reg .b64 %q<16>; .reg .pred %p<4>;
  mov.u32 %r0, %tid.x; ld.param.u64 %q0, [out]; ld.param.u64 %q1, [in];
  mul.wide.u32 %q2, %r0, 8; add.s64 %q0, %q0, %q2; add.s64 %q1, %q1, %q2; ld.global.u32 %r1, [%q1];
  setp.gt.u32 %p0, %r1, 20; @%p0 bra BIG;
  { .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }
  bra STORE;
  BIG:
  { .param .b32 a; st.param.b32 [a], 9; .param .b32 b; call (b), fib, (a); ld.param.b32 %r2, [b]; }
  STORE:
  cvt.u64.u32 %q3, %r2; mov.u64 %q4, 7;
  { .param .align 8 .b8 a[16]; st.param.b64 [a], %q3; st.param.b64 [a+8], %q4;
    .param .align 8 .b8 b[16]; call.uni (b), swap, (a); ld.param.b64 %q5, [b]; ld.param.b64 %q6, [b+8]; }
  shl.b64 %q5, %q5, 40; add.s64 %q6, %q6, %q5;
  setp.eq.u32 %p1, %r1, 3; @%p1 bra SKIP;
  st.global.u64 [%q0], %q6; ret;
  SKIP: st.global.u64 [%q0], 33; exit;
}
";

#[test]
fn functions_are_called_from_divergent_lanes() {
    let module = Module::load(CALLS).unwrap_or_else(|e| panic!("{e}"));
    let words: Vec<u64> = (0..64).map(|i| i * 7 % 31).collect();
    let results = launch_words(&module, "k", 1, 64, &words, 64, "calls");
    let fib = |n: u64| (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0;
    for (n, result) in words.iter().zip(results) {
        let expected = match n {
            3 => 33,
            21.. => fib(9) | 7 << 40,
            _ => (2 * fib(*n)) | (7 << 40),
        };
        assert_eq!(result, expected, "{n}");
    }
}

#[test]
fn barriers_reduce_over_the_block() {
    let text = ".version 8.8\n.target sm_90a\n.address_size 64\n\
        .visible .entry k(.param .u64 out, .param .u64 in) {\n\
        .reg .b32 %r<8>; .reg .b64 %q<8>; .reg .pred %p<4>;\n\
        mov.u32 %r0, %tid.x; ld.param.u64 %q0, [out]; ld.param.u64 %q1, [in];\n\
        mul.wide.u32 %q2, %r0, 8; add.s64 %q0, %q0, %q2; add.s64 %q1, %q1, %q2; ld.global.u32 %r1, [%q1];\n\
        setp.ne.u32 %p0, %r1, 0;\n\
        bar.red.popc.u32 %r2, 0, %p0; barrier.red.sync.and.pred %p1, 0, %p0; bar.red.or.pred %p2, 0, !%p0;\n\
        @%p1 add.u32 %r2, %r2, 1000; @%p2 add.u32 %r2, %r2, 2000;\n\
        cvt.u64.u32 %q3, %r2; st.global.u64 [%q0], %q3; ret; }";
    let module = Module::load(text).unwrap_or_else(|e| panic!("{e}"));
    for (words, expected) in [
        ((0..96).map(|i| i % 3).collect::<Vec<u64>>(), 64 + 2000),
        (vec![1; 96], 96 + 1000),
        (vec![0; 96], 2000),
    ] {
        assert_eq!(
            launch_words(&module, "k", 1, 96, &words, 96, "bar.red"),
            vec![expected; 96]
        );
    }
}

#[test]
fn moves_pack_and_unpack_vectors() {
    let l = (Q, Kind::Int);
    check(
        "{ .reg .b32 %x, %y; mov.b64 {%x, %y}, {a}; mov.b64 {d}, {%y, %x}; }",
        Q,
        &[l],
        |x| x[0].rotate_left(32),
    );
    check(
        "{ .reg .b16 %s, %t; mov.b32 {%s, %t}, {a}; mov.b32 {d}, {%t, %s}; }",
        R,
        &[I],
        |x| (x[0] << 16 | x[0] >> 16) & 0xffff_ffff,
    );
    check(
        "{ .reg .b16 %s<4>; mov.b64 {%s0, %s1, %s2, %s3}, {a}; mov.b64 {d}, {%s3, %s2, %s1, %s0}; }",
        Q,
        &[l],
        |x| (0..4).fold(0, |r, i| r | (x[0] >> (16 * i) & 0xffff) << (48 - 16 * i)),
    );
    check(
        "{ .reg .b32 %y; mov.b64 {_, %y}, {a}; mov.u32 {d}, %y; }",
        R,
        &[l],
        |x| x[0] >> 32,
    );
}
