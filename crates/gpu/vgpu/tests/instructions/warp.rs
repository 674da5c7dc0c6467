//! Warp-wide instructions: one kernel per form, 64 threads, random operands in every lane.

use crate::harness::{Random, launch_words};
use vgpu::Module;

const THREADS: usize = 64;

/// Runs `body` with `%r0` and `%r1` loaded per thread and the lane in `%r2`; the result is in
/// `%q7`.
fn run(body: &str, words: &[u64]) -> Vec<u64> {
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {{\n\
         .reg .b32 %r<16>; .reg .b64 %q<16>; .reg .pred %p<8>;\n\
         mov.u32 %r8, %tid.x; and.b32 %r2, %r8, 31;\n\
         ld.param.u64 %q8, [out]; ld.param.u64 %q9, [in];\n\
         mul.wide.u32 %q10, %r8, 16; add.s64 %q9, %q9, %q10;\n\
         mul.wide.u32 %q10, %r8, 8; add.s64 %q8, %q8, %q10;\n\
         ld.global.u32 %r0, [%q9]; ld.global.u32 %r1, [%q9+8]; ld.global.u64 %q0, [%q9];\n\
         {body}\n\
         st.global.u64 [%q8], %q7;\nret;\n}}\n"
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
    launch_words(&module, "k", 1, THREADS, words, THREADS, body)
}

/// Returns random operands; the second is in `0..modulus`.
fn operands(seed: u64, modulus: u64) -> Vec<u64> {
    let mut random = Random(seed);
    (0..THREADS)
        .flat_map(|_| [random.next() & 0xffff_ffff, random.next() % modulus])
        .collect()
}

/// Requires lane `l` of each warp to have the model's result; the model receives the warp's
/// operands.
fn check(body: &str, words: &[u64], model: impl Fn(&[[u64; 2]], usize) -> u64) {
    let results = run(body, words);
    let rows: Vec<[u64; 2]> = words.chunks_exact(2).map(|c| [c[0], c[1]]).collect();
    for (thread, result) in results.iter().enumerate() {
        let warp = &rows[thread / 32 * 32..][..32];
        let expected = model(warp, thread % 32);
        assert_eq!(*result, expected, "{body}: thread {thread}");
    }
}

#[test]
fn shuffles_move_values_within_their_segment() {
    // c holds the segment mask in bits 8-12 and the clamp in bits 0-4.
    let segments = [
        (32, 0x1f, 0),
        (16, 0x101f, 0x1000),
        (8, 0x181f, 0x1800),
        (4, 0x1c1f, 0x1c00),
    ];
    for (width, c, c_up) in segments {
        for offset in [0, 1, 2, 3, 5, 8, 16, 31] {
            for (mode, c) in [("up", c_up), ("down", c), ("bfly", c), ("idx", c)] {
                let source = |lane: usize| {
                    let base = lane / width * width;
                    let target = match mode {
                        "up" => lane as i64 - offset,
                        "down" => lane as i64 + offset,
                        "bfly" => lane as i64 ^ offset,
                        _ => (base as i64) + (offset % width as i64),
                    };
                    let inside = match mode {
                        "up" => target >= base as i64,
                        _ => target < (base + width) as i64,
                    };
                    (if inside { target as usize } else { lane }, inside)
                };
                let body = format!(
                    "shfl.sync.{mode}.b32 %r7|%p1, %r0, {offset}, {c}, -1; selp.u32 %r6, 1, 0, %p1;\n\
                     mov.b64 %q7, {{%r7, %r6}};"
                );
                check(&body, &operands(3, 2), |warp, lane| {
                    let (from, inside) = source(lane);
                    warp[from][0] | u64::from(inside) << 32
                });
            }
        }
    }
}

#[test]
fn votes_and_ballots_see_the_member_lanes() {
    let set = "setp.ne.u32 %p1, %r1, 0;";
    let words = operands(11, 2);
    let ballot = |warp: &[[u64; 2]]| (0..32).fold(0, |m, l| m | warp[l][1] << l);
    check(
        &format!("{set} vote.sync.ballot.b32 %r7, %p1, -1; cvt.u64.u32 %q7, %r7;"),
        &words,
        |w, _| ballot(w),
    );
    check(
        &format!("{set} vote.sync.ballot.b32 %r7, !%p1, -1; cvt.u64.u32 %q7, %r7;"),
        &words,
        |w, _| !ballot(w) & 0xffff_ffff,
    );
    for modulus in [1, 2] {
        let words = operands(5, modulus);
        for (mode, model) in [
            ("all", (|m| m == 0xffff_ffff) as fn(u64) -> bool),
            ("any", |m| m != 0),
            ("uni", |m| m == 0 || m == 0xffff_ffff),
        ] {
            check(
                &format!("{set} vote.sync.{mode}.pred %p2, %p1, -1; selp.u64 %q7, 1, 0, %p2;"),
                &words,
                |w, _| model(ballot(w)).into(),
            );
        }
    }
    // Only the lanes of a divergent path take part.
    check(
        "mov.u64 %q7, 0; setp.lt.u32 %p3, %r2, 12; setp.ne.u32 %p1, %r1, 0;
         @!%p3 bra DONE; vote.sync.ballot.b32 %r7, %p1, 0xfff; activemask.b32 %r6;
         mov.b64 %q7, {%r7, %r6}; DONE:",
        &words,
        |w, lane| {
            if lane < 12 {
                ballot(w) & 0xfff | 0xfff << 32
            } else {
                0
            }
        },
    );
}

/// The virtual GPU lets waiting lanes go on alone where others of their warp spin for long. A long loop
/// that reconverges in each iteration is no such case.
#[test]
fn lanes_reconverge_in_each_iteration_of_a_long_loop() {
    let words = operands(16, 2);
    check(
        "mov.u32 %r7, -1; mov.u32 %r6, 0;
         LOOP: setp.eq.u32 %p1, %r2, 0; @!%p1 bra JOIN;
         mov.u32 %r5, 0;
         INNER: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3000; @%p2 bra INNER;
         JOIN: activemask.b32 %r4; and.b32 %r7, %r7, %r4;
         add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 40; @%p3 bra LOOP;
         cvt.u64.u32 %q7, %r7;",
        &words,
        |_, _| u64::from(u32::MAX),
    );
}

#[test]
fn matches_find_equal_values() {
    let words = operands(17, 4);
    let equal = |w: &[[u64; 2]], lane: usize| {
        (0..32).fold(0, |m, l| m | u64::from(w[l][1] == w[lane][1]) << l)
    };
    check(
        "match.any.sync.b32 %r7, %r1, -1; cvt.u64.u32 %q7, %r7;",
        &words,
        equal,
    );
    check(
        "cvt.u64.u32 %q1, %r1; shl.b64 %q1, %q1, 40; match.any.sync.b64 %r7, %q1, -1; cvt.u64.u32 %q7, %r7;",
        &words,
        equal,
    );
    for modulus in [1, 3] {
        let words = operands(17, modulus);
        check(
            "match.all.sync.b32 %r7|%p1, %r1, -1; selp.u32 %r6, 1, 0, %p1; mov.b64 %q7, {%r7, %r6};",
            &words,
            |w, _| {
                if w.iter().all(|v| v[1] == w[0][1]) {
                    0x1_ffff_ffff
                } else {
                    0
                }
            },
        );
    }
}

#[test]
fn reductions_combine_the_members() {
    let words = operands(23, 2);
    type Model = fn(u64, u64) -> u64;
    let signed = |x: u64| x as u32 as i32;
    let table: [(&str, Model); 6] = [
        ("add.u32", |a, b| (a + b) & 0xffff_ffff),
        ("min.u32", |a, b| a.min(b)),
        ("max.u32", |a, b| a.max(b)),
        ("and.b32", |a, b| a & b),
        ("or.b32", |a, b| a | b),
        ("xor.b32", |a, b| a ^ b),
    ];
    for (name, model) in table {
        check(
            &format!("redux.sync.{name} %r7, %r0, -1; cvt.u64.u32 %q7, %r7;"),
            &words,
            |w, _| w.iter().map(|v| v[0]).reduce(model).unwrap(),
        );
    }
    check(
        "redux.sync.min.s32 %r7, %r0, -1; cvt.u64.u32 %q7, %r7;",
        &words,
        |w, _| w.iter().map(|v| signed(v[0])).min().unwrap() as u32 as u64,
    );
    check(
        "redux.sync.max.s32 %r7, %r0, -1; cvt.u64.u32 %q7, %r7;",
        &words,
        |w, _| w.iter().map(|v| signed(v[0])).max().unwrap() as u32 as u64,
    );
    // A partial mask on a divergent path.
    check(
        "mov.u64 %q7, 0; setp.ge.u32 %p3, %r2, 20; @!%p3 bra DONE;
         redux.sync.add.s32 %r7, %r0, 0xfff00000; cvt.u64.u32 %q7, %r7; DONE:",
        &words,
        |w, lane| {
            if lane >= 20 {
                w[20..].iter().map(|v| v[0]).sum::<u64>() & 0xffff_ffff
            } else {
                0
            }
        },
    );
}

#[test]
fn one_lane_is_elected_and_special_registers_name_the_lanes() {
    let words = operands(1, 2);
    check(
        "elect.sync %r7|%p1, -1; selp.u32 %r6, 1, 0, %p1; mov.b64 %q7, {%r7, %r6};",
        &words,
        |_, lane| u64::from(lane == 0) << 32,
    );
    for (name, model) in [
        ("%laneid", (|l| l) as fn(u64) -> u64),
        ("%lanemask_eq", |l| 1 << l),
        ("%lanemask_lt", |l| (1 << l) - 1),
        ("%lanemask_le", |l| (2 << l) - 1),
        ("%lanemask_gt", |l| !((2 << l) - 1) & 0xffff_ffff),
        ("%lanemask_ge", |l| !((1 << l) - 1) & 0xffff_ffff),
        ("%ntid.x", |_| 64),
        ("%ctaid.x", |_| 0),
        ("%nctaid.x", |_| 1),
    ] {
        check(
            &format!("mov.u32 %r7, {name}; cvt.u64.u32 %q7, %r7;"),
            &words,
            |_, lane| model(lane as u64),
        );
    }
}

#[test]
fn movmatrix_transposes_across_the_warp() {
    let words = operands(29, 2);
    check(
        "movmatrix.sync.aligned.m8n8.trans.b16 %r7, %r0; cvt.u64.u32 %q7, %r7;",
        &words,
        |w, lane| {
            // Element (i, j) is in lane 4i + j/2, half j % 2.
            let at = |i: usize, j: usize| w[4 * i + j / 2][0] >> (16 * (j % 2)) & 0xffff;
            let (i, j) = (lane / 4, 2 * (lane % 4));
            at(j, i) | at(j + 1, i) << 16
        },
    );
}
