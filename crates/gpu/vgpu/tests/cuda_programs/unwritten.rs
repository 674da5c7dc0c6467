//! Unwritten values that are discarded, and those that are used.

use crate::harness::{Program, int};
use vgpu::{Arg, HazardKind, LaunchReport};

/// A kernel whose 32 threads have `%r1`, their number, `%p1`, whether it is below 16, and `%p2`, whether it is
/// below the limit, an argument. `%rd1` is the thread's word of the output, `%rd2` that of the input, and `%r2` of
/// a shared array.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 limit)\n{{\n\
         .reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n\
         .shared .align 16 .b8 words[256];\n.local .align 8 .b8 mine[8];\n\
         mov.u32 %r1, %tid.x;\nld.param.u32 %r3, [limit];\n\
         ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n\
         mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd1, %rd1, %rd3;\nadd.s64 %rd2, %rd2, %rd3;\n\
         mov.u32 %r2, words;\nmad.lo.u32 %r2, %r1, 4, %r2;\n\
         setp.lt.u32 %p1, %r1, 16;\nsetp.lt.u32 %p2, %r1, %r3;\n{body}\nret;\n}}\n"
    )
}

/// Runs the kernel with this limit and an input of 16 words.
fn run(body: &str, limit: i32) -> LaunchReport {
    let mut program = Program::new(&kernel(body));
    let input = program.unwritten(32);
    let bytes: Vec<u8> = (0..16i32).flat_map(i32::to_le_bytes).collect();
    program.memory.write(input, 0, &bytes);
    let output = program.unwritten(32);
    let arguments = vec![Arg::Buffer(input), Arg::Buffer(output), int(limit)];
    let wanted = program.launch_named("k", 1, 32, arguments);
    program.started(&wanted)
}

/// The threads of the first uninitialized reads that are reported, and their number.
fn unwritten(body: &str, limit: i32) -> Vec<(u32, u64)> {
    let report = run(body, limit);
    let hazards = report.hazards.iter();
    hazards
        .inspect(|hazard| assert_eq!(hazard.kind, HazardKind::Uninitialized, "{hazard:?}"))
        .map(|hazard| (hazard.thread[0], hazard.repeated))
        .collect()
}

#[test]
fn a_selection_reads_the_value_that_it_chooses() {
    let fill = "@%p1 st.shared.u32 [%r2], %r1;\nbar.sync 0;\n";
    let keep = "@%p1 st.local.u32 [mine], %r1;\n";
    for (before, load) in [
        (fill, "ld.shared.u32 %r4, [%r2];"),
        (keep, "ld.local.u32 %r4, [mine];"),
        ("", "ld.global.u32 %r4, [%rd2];"),
    ] {
        let chosen =
            format!("{before}{load}\nselp.b32 %r5, %r4, 7, %p2;\nst.global.u32 [%rd1], %r5;");
        assert_eq!(unwritten(&chosen, 16), [], "{load}");
        assert_eq!(unwritten(&chosen, 20), [(16, 4)], "{load}");
        let other = chosen.replace("%r4, 7, %p2", "7, %r4, %p2");
        assert_eq!(unwritten(&other, 0), [(16, 16)], "{load}");
    }
}

#[test]
fn a_selection_of_a_selection_reads_what_the_last_one_chooses() {
    let nested = "ld.global.u32 %r4, [%rd2];\nsetp.lt.u32 %p3, %r1, 24;\n\
                  selp.b32 %r5, %r4, 7, %p3;\nselp.b32 %r6, %r5, 8, %p2;\nst.global.u32 [%rd1], %r6;";
    assert_eq!(unwritten(nested, 16), []);
    assert_eq!(unwritten(nested, 32), [(16, 8)]);
}

#[test]
fn a_value_that_is_used_otherwise_is_read_by_its_load() {
    let used = "ld.global.u32 %r4, [%rd2];\nselp.b32 %r5, %r4, 7, %p2;\nadd.s32 %r6, %r4, %r5;\n\
                st.global.u32 [%rd1], %r6;";
    assert_eq!(unwritten(used, 16), [(16, 16)]);
    // One register for two values: those that another one replaces are not read.
    let twice = "ld.global.u32 %r4, [%rd2];\n@!%p1 mov.u32 %r4, 5;\nselp.b32 %r5, %r4, 7, %p2;\n\
                 st.global.u32 [%rd1], %r5;";
    assert_eq!(unwritten(twice, 32), []);
    assert_eq!(unwritten(&twice.replace("@!%p1", "@%p1"), 32), [(16, 16)]);
}

#[test]
fn a_value_counts_where_a_branch_does_not_bypass_its_use() {
    // As a merge of two lists, of which one has no next element.
    let merged = "ld.global.u32 %r4, [%rd2];\nmov.u32 %r6, 1;\n@!%p2 bra L;\n\
                  setp.lt.u32 %p3, %r4, 9;\nselp.u32 %r6, 0, 1, %p3;\n\
                  L:\nsetp.eq.u32 %p4, %r6, 0;\nselp.b32 %r5, %r4, 7, %p4;\n@%p4 bra M;\n\
                  mov.u32 %r7, 3;\nM:\nst.global.u32 [%rd1], %r5;";
    assert_eq!(unwritten(merged, 16), []);
    assert_eq!(unwritten(merged, 20), [(16, 4)]);
    let exchanged = merged.replace("@!%p2 bra L;", "").replace(
        "selp.u32 %r6",
        "shfl.sync.bfly.b32 %r7, %r4, 16, 31, -1;\nst.global.u32 [%rd1], %r7;\nselp.u32 %r6",
    );
    assert_eq!(unwritten(&exchanged, 0), [(16, 16)]);
}

#[test]
fn a_comparison_counts_where_no_other_predicate_decides() {
    // As `%p2 && x < 9` of a source.
    let both = "ld.global.u32 %r4, [%rd2];\nadd.s32 %r5, %r4, 1;\nsetp.lt.u32 %p3, %r5, 10;\n\
                and.pred %p4, %p2, %p3;\nsetp.lt.and.u32 %p5, %r5, 10, %p2;\n\
                @%p4 st.global.u32 [%rd1], 1;\n@%p5 st.global.u32 [%rd1], 1;";
    assert_eq!(unwritten(both, 16), []);
    assert_eq!(unwritten(both, 20), [(16, 4)]);
    let either = both.replace("and", "or").replace("%p2", "%p6");
    let either = format!("not.pred %p6, %p2;\n{either}");
    assert_eq!(unwritten(&either, 16), []);
    assert_eq!(unwritten(&either, 20), [(16, 4)]);
    let branch = both
        .replace("@%p4 st.global.u32 [%rd1], 1", "@%p4 bra L")
        .replace("@%p5", "L: @%p5");
    assert_eq!(unwritten(&branch, 16), []);
    assert_eq!(unwritten(&branch, 20), [(16, 4)]);
}

#[test]
fn a_selected_value_counts_where_it_is_stored_or_addresses() {
    let stored =
        |store: &str| format!("ld.global.u32 %r4, [%rd2];\nselp.b32 %r5, %r4, 0, %p2;\n{store}");
    for store in [
        "st.global.u8 [%rd1], %r5;",
        "and.b32 %r6, %r5, 0;\nadd.s32 %r6, %r6, %r2;\nst.shared.u32 [%r6], 1;",
        "st.global.u32 [%rd1], 0;\nred.global.add.u32 [%rd1], %r5;",
        "st.shared.u32 [%r2], %r5;\nld.shared.u32 %r7, [%r2];\nst.global.u32 [%rd1], %r7;",
    ] {
        let body = stored(store);
        assert_eq!(unwritten(&body, 16), [], "{store}");
        let found = unwritten(&body, 20);
        assert_eq!(
            found.first().map(|(thread, _)| *thread),
            Some(16),
            "{store}"
        );
    }
    assert_eq!(unwritten(&stored("st.shared.u32 [%r2], %r5;"), 20), []);
}

#[test]
fn elements_of_a_vector_are_judged_each() {
    let shared = "and.b32 %r9, %r1, 1;\nsetp.eq.u32 %p3, %r9, 0;\n@%p3 st.shared.u32 [%r2], %r1;\n\
                  bar.sync 0;\nand.b32 %r9, %r2, -8;\nld.shared.v2.u32 {%r4, %r5}, [%r9];\n";
    let local = "st.local.u32 [mine], %r1;\nld.local.v2.u32 {%r4, %r5}, [mine];\n";
    for load in [shared, local] {
        let use_of = |used: &str| {
            format!(
                "{load}selp.b32 %r7, %r4, 0, %p2;\nselp.b32 %r8, %r5, 0, %p2;\n\
                 st.global.u32 [%rd1], {used};"
            )
        };
        assert_eq!(unwritten(&use_of("%r7"), 32), [], "{load}");
        assert_eq!(unwritten(&use_of("%r8"), 32), [(0, 32)], "{load}");
    }
}

#[test]
fn padding_that_the_function_drops_is_not_read() {
    // As a structure of a flag and padding that is copied word by word.
    let shared = "mad.lo.u32 %r5, %r1, 4, %r2;\nst.shared.u8 [%r5], 1;\nld.shared.u64 %rd4, [%r5];\n\
                  cvt.u32.u64 %r6, %rd4;\nand.b32 %r7, %r6, 255;\nst.global.u32 [%rd1], %r7;";
    let global = "st.global.u8 [%rd1], 1;\nld.global.u32 %r6, [%rd1];\nand.b32 %r7, %r6, 255;\n\
                  st.global.u32 [%rd1], %r7;";
    let local = "st.local.u8 [mine], 1;\nld.local.u64 %rd4, [mine];\n\
                 bfe.u64 %rd5, %rd4, 0, 8;\nst.global.u32 [%rd1], %rd5;";
    for flag in [shared, global] {
        assert_eq!(unwritten(flag, 0), []);
        assert_eq!(unwritten(&flag.replace(", 255", ", 511"), 0), [(0, 32)]);
        let unset = flag.replacen("], 1", "+1], 1", 1);
        assert_eq!(unwritten(&unset, 0), [(0, 32)]);
    }
    assert_eq!(unwritten(local, 0), []);
    assert_eq!(unwritten(&local.replace("0, 8;", "0, 9;"), 0), [(0, 32)]);
}

#[test]
fn a_loop_reads_again_what_was_discarded_before() {
    let again = "mov.u32 %r8, 0;\nL:\nld.global.u32 %r4, [%rd2];\nsetp.eq.u32 %p3, %r8, 0;\n\
                 selp.b32 %r5, 7, %r4, %p3;\nst.global.u32 [%rd1], %r5;\nst.global.u32 [%rd2], 3;\n\
                 add.s32 %r8, %r8, 1;\nsetp.lt.u32 %p4, %r8, 2;\n@%p4 bra L;";
    assert_eq!(unwritten(again, 0), []);
}

#[test]
fn an_undefined_value_in_shared_memory_counts_where_it_decides_something() {
    // As tiles of which the last is loaded in part and exchanged whole.
    let exchanged = "@%p1 ld.global.u32 %r4, [%rd2];\nst.shared.u32 [%r2], %r4;\nbar.sync 0;\n\
                     ld.shared.u32 %r5, [%r2];\nadd.s32 %r6, %r5, 1;\n\
                     @%p2 st.global.u32 [%rd1], %r6;";
    assert_eq!(unwritten(exchanged, 16), []);
    let found = unwritten(exchanged, 20);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, 16);
    let report = run(exchanged, 20);
    let detail = &report.hazards[0].detail;
    assert!(detail.starts_with("a load of shared memory"), "{detail}");
    let pairs = exchanged
        .replace(
            "ld.shared.u32 %r5, [%r2]",
            "and.b32 %r9, %r2, -8;\nld.shared.v2.u32 {%r5, %r7}, [%r9]",
        )
        .replace("add.s32 %r6, %r5, 1", "add.s32 %r6, %r5, %r7");
    assert_eq!(unwritten(&pairs, 16), []);
    assert_eq!(unwritten(&pairs, 17).len(), 1);
    let address = "ld.global.u32 %r9, [%rd2];";
    let indexed = exchanged.replace("@%p2 st.global", &format!("{address}\n@%p2 st.global"));
    assert_eq!(
        unwritten(&indexed, 16).len(),
        1,
        "another load of unwritten words"
    );
}

#[test]
fn a_word_that_nothing_was_stored_to_is_read_by_its_load() {
    let mixed = "@%p1 ld.global.u32 %r4, [%rd2];\n@%p1 st.shared.u32 [%r2], %r4;\nbar.sync 0;\n\
                 ld.shared.u32 %r5, [%r2];\nadd.s32 %r6, %r5, 1;\n@%p2 st.global.u32 [%rd1], %r6;";
    assert_eq!(unwritten(mixed, 16), [(16, 16)]);
}

#[test]
fn addresses_of_the_host_are_told_from_offsets_in_buffers() {
    let detail = |address: &str| {
        let body = format!(
            "mov.u64 %rd4, {address};\nld.global.u32 %r4, [%rd4];\nst.global.u32 [%rd1], %r4;"
        );
        let report = run(&body, 0);
        report
            .hazards
            .first()
            .map(|hazard| (hazard.detail.clone(), hazard.allocation.is_some()))
    };
    let (text, named) = detail("0x7ffc12345678").expect("a hazard");
    assert!(
        text.contains("at address 0x7ffc12345678, outside all buffers"),
        "{text}"
    );
    assert!(text.contains("host memory") && !named, "{text}");
    let (text, _) = detail("16").expect("a hazard");
    assert!(
        text.contains("at address 0x10, outside all buffers: a null pointer"),
        "{text}"
    );
}

#[test]
fn shared_memory_that_the_system_reserves_is_not_judged() {
    // As tiles of several warps of cooperative groups: the reset of a barrier, and one value of a warp.
    let reserved = "mov.u32 %r5, %reserved_smem_offset_1;\nred.shared.and.b32 [%r5], -2;\n\
                    st.shared.u32 [%r5+32], 7;\nld.shared.u32 %r6, [%r5+32];\nst.global.u32 [%rd1], %r6;";
    assert_eq!(unwritten(reserved, 0), []);
    let own = reserved.replace("%reserved_smem_offset_1", "words");
    let kinds: Vec<_> = run(&own, 0).hazards.iter().map(|h| h.kind).collect();
    assert!(kinds.contains(&HazardKind::Uninitialized), "{kinds:?}");
    assert!(kinds.contains(&HazardKind::Race), "{kinds:?}");
}
