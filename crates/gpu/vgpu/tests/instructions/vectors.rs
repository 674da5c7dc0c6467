//! Atomics of 128 bits and on vectors.

use super::memory::{random, run};

#[test]
fn each_element_of_a_vector_is_added_and_returned() {
    let body = "mov.u64 %q10, sums; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;\n\
                atom.global.add.v2.f32 {%f3, %f4}, [%q10+8], {%f1, %f2}; bar.sync 0;\n\
                red.global.add.noftz.v4.f16x2 [%q10+16], {%r8, %r8, %r8, %r8};\n\
                mul.wide.u32 %q11, %r8, 8; add.u64 %q8, %q8, %q11;\n\
                mov.b32 %r9, %f3; mov.b32 %r10, %f4; mov.b64 %q12, {%r9, %r10}; st.global.u64 [%q8], %q12;\n\
                bar.sync 0; ld.global.v2.b32 {%r9, %r10}, [%q10+8]; mov.b64 %q12, {%r9, %r10};\n\
                st.global.u64 [%q8+32], %q12;";
    let declared = ".global .align 16 .b32 sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};";
    let words = run(declared, body, 4, &[], 8);
    let pair = |word: u64| [word as u32, (word >> 32) as u32].map(f32::from_bits);
    let mut old: Vec<[f32; 2]> = words[..4].iter().map(|word| pair(*word)).collect();
    old.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert_eq!(old, [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]);
    assert!(words[4..].iter().all(|word| pair(*word) == [4.0, 8.0]));
}

#[test]
fn atomics_of_128_bits_are_whole() {
    let operands = random(128);
    for space in ["global", "shared"] {
        let declared = format!(".{space} .align 16 .b64 pair[2];");
        let body = format!(
            "mul.wide.u32 %q10, %r8, 8; add.s64 %q9, %q9, %q10; ld.global.u64 %q0, [%q9]; not.b64 %q1, %q0;\n\
             mov.u64 %q12, pair; setp.eq.u32 %p1, %r8, 0;\n\
             mov.u64 %q2, 5; mov.u64 %q3, -6; @%p1 st.{space}.v2.b64 [%q12], {{%q2, %q3}};\n\
             bar.sync 0; .reg .b128 %w<4>; mov.b128 %w0, {{%q0, %q1}};\n\
             atom.{space}.exch.b128 %w1, [%q12], %w0; mov.b128 {{%q4, %q5}}, %w1;\n\
             not.b64 %q5, %q5; setp.ne.u64 %p2, %q4, %q5; @%p2 mov.u64 %q4, 0;\n\
             bar.sync 0; mov.u64 %q2, 7; mov.b128 %w2, {{%q2, %q2}};\n\
             ld.{space}.v2.b64 {{%q6, %q7}}, [%q12]; mov.b128 %w3, {{%q6, %q7}}; bar.sync 0;\n\
             atom.{space}.cas.b128 %w1, [%q12], %w3, %w2; mov.b128 {{%q6, %q7}}, %w1;\n\
             add.s64 %q10, %q8, %q10; st.global.u64 [%q10], %q4; st.global.u64 [%q10+1024], %q6;\n"
        );
        let results = run(&declared, &body, 128, &operands, 256);
        let (exchanged, compared) = results.split_at(128);
        // Each value is taken out once, whole, but for the last one, which one comparison finds.
        let last = compared.iter().copied().filter(|found| *found != 7);
        let last: Vec<u64> = last.collect();
        assert_eq!(last.len(), 1, "{space}");
        let mut found = [exchanged, &last].concat();
        let mut all = [operands.as_slice(), &[5]].concat();
        found.sort_unstable();
        all.sort_unstable();
        assert_eq!(found, all, "{space}");
    }
}

#[test]
fn registers_of_128_bits_are_packed_from_four_words() {
    let body = "add.u32 %r10, %r8, 100; add.u32 %r11, %r8, 200; add.u32 %r12, %r8, 300; mov.b128 %x0, {%r8, %r10, %r11, %r12};\n\
                mov.b128 {%r13, %r14, %r15, %r16}, %x0; mov.b64 %q10, {%r16, %r15}; mov.b64 %q11, {%r14, %r13};\n\
                mul.wide.u32 %q12, %r8, 16; add.u64 %q8, %q8, %q12; st.global.v2.u64 [%q8], {%q10, %q11};";
    let got = run(".reg .b128 %x<2>;", body, 32, &[], 64);
    for (n, words) in (0..).zip(got.as_chunks::<2>().0) {
        assert_eq!(*words, [(n + 200) << 32 | (n + 300), n << 32 | (n + 100)]);
    }
}

#[test]
fn a_load_may_be_marked_as_uniform() {
    let body = "ld.global.u64 %q10, [%q9].unified; mul.wide.u32 %q12, %r8, 8; add.u64 %q8, %q8, %q12; st.global.u64 [%q8], %q10;";
    assert_eq!(run("", body, 32, &[77], 32), [77; 32]);
}
