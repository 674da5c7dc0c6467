use super::*;
use crate::parse;

fn loads(body: &str) -> Vec<(usize, Unwritten)> {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n{body}\nret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    let found = unwritten(ast.functions[0].body.as_ref().expect("a body"));
    let mut list: Vec<_> = found.into_iter().collect();
    list.sort_unstable_by_key(|(at, _)| *at);
    list
}

#[test]
fn a_word_that_is_only_stored_near_by_is_copied() {
    let copy = "ld.shared.u32 %r1, [%rd1];\nmov.u32 %r2, %r1;\nst.local.u32 [%rd2], %r2;";
    assert_eq!(loads(copy), [(0, Unwritten::Padding)]);
}

#[test]
fn a_word_that_is_added_to_is_read() {
    let sum = "ld.shared.u32 %r1, [%rd1];\nadd.s32 %r2, %r1, 1;\nst.shared.u32 [%rd1], %r2;";
    assert_eq!(loads(sum), []);
}

#[test]
fn one_word_that_leaves_alone_is_read_and_two_are_a_struct() {
    let one = "ld.shared.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;";
    assert_eq!(loads(one), []);
    let two = "ld.shared.u32 %r1, [%rd1];\nld.shared.u32 %r2, [%rd1+4];\n\
            st.global.u32 [%rd2], %r1;\nst.global.u32 [%rd2+4], %r2;";
    assert_eq!(
        loads(two),
        [(0, Unwritten::Padding), (1, Unwritten::Padding)]
    );
}

#[test]
fn masked_bits_that_go_back_are_a_bit_field_and_others_are_read() {
    let field = "ld.shared.u32 %r1, [%rd1];\nand.b32 %r2, %r1, -4096;\nor.b32 %r3, %r2, %r4;\n\
            st.shared.u32 [%rd1], %r3;";
    assert_eq!(loads(field), [(0, Unwritten::BitField)]);
    let elsewhere = field.replace("st.shared.u32 [%rd1]", "st.shared.u32 [%rd1+4]");
    assert_eq!(loads(&elsewhere), []);
    let set = "ld.shared.u32 %r1, [%rd1];\nor.b32 %r3, %r1, %r4;\nst.shared.u32 [%rd1], %r3;";
    assert_eq!(loads(set), []);
}

#[test]
fn a_value_that_a_predicate_may_discard_is_not_read_by_its_load() {
    let selected = ".reg .pred %p1;\nld.local.u32 %r1, [%rd1];\nselp.b32 %r2, -1, %r1, %p1;\n\
                    st.global.u32 [%rd2], %r2;";
    for space in ["local", "shared", "global"] {
        let selected = selected.replace("local", space);
        assert_eq!(loads(&selected), [(0, Unwritten::Deferred)]);
    }
    let also_read = selected.replace("st.global.u32 [%rd2], %r2", "st.global.u32 [%rd2], %r1");
    assert_eq!(loads(&also_read), [(0, Unwritten::Deferred)]);
    // The arguments of a call are not judged.
    let passed = selected.replace("st.global.u32 [%rd2], %r2", "st.param.u32 [p], %r1");
    assert_eq!(loads(&passed), []);
    let set_twice = selected.replace("selp.b32 %r2", "@%p1 mov.u32 %r1, 4;\nselp.b32 %r2");
    assert_eq!(loads(&set_twice), [(0, Unwritten::Deferred)]);
    let computed = selected.replace(
        "selp.b32 %r2, -1, %r1",
        "add.s32 %r3, %r1, 1;\nselp.b32 %r2, -1, %r3",
    );
    assert_eq!(loads(&computed), [(0, Unwritten::Deferred)]);
}

#[test]
fn a_comparison_that_another_predicate_may_decide_is_not_read_by_its_load() {
    let both = ".reg .pred %p<4>;\nld.shared.v2.u32 {%r1, %r2}, [%rd1];\nsetp.lt.u32 %p1, %r1, %r2;\n\
                and.pred %p2, %p1, %p3;\n@%p2 st.global.u32 [%rd2], %r4;";
    assert_eq!(loads(both), [(0, Unwritten::Deferred)]);
    let alone = both.replace("and.pred %p2, %p1, %p3", "mov.pred %p2, %p1");
    assert_eq!(loads(&alone), []);
    let stored = both.replace("st.global.u32 [%rd2], %r4", "st.global.u32 [%rd2], %r2");
    assert_eq!(loads(&stored), [(0, Unwritten::Deferred)]);
    // Nothing discards a value that a loop only adds up.
    let summed = "L:\nld.shared.u32 %r1, [%rd1];\nadd.s32 %r2, %r2, %r1;\nbra L;";
    assert_eq!(loads(summed), []);
}
