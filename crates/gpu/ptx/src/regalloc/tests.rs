use super::*;
use crate::parse;

/// Returns the representatives of `%r0`, `%r1`, …
fn merged(body: &str) -> Vec<u32> {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .b32 %r<8>;\n.reg .pred %p<4>;\n.reg .b64 %rd<4>;\n{body}\nret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    let body = ast.functions[0].body.as_ref().expect("a body");
    let kind = |reg: Reg| body.registers[reg.0 as usize].map(crate::ast::Type::bytes);
    let all = merge_registers(body, |reg| kind(reg).filter(|bytes| *bytes > 0));
    all.iter().take(8).map(|reg| reg.0).collect()
}

#[test]
fn a_value_takes_the_place_of_one_that_is_no_longer_needed() {
    let chain = "mov.u32 %r1, 1;\nadd.s32 %r2, %r1, 1;\nadd.s32 %r3, %r2, 1;\nadd.s32 %r4, %r3, 1;\n\
            st.global.u32 [%rd1], %r4;";
    assert_eq!(merged(chain)[1..5], [1, 2, 1, 2]);
}

#[test]
fn a_result_never_takes_the_place_of_its_own_source() {
    let one = "mov.u32 %r1, 1;\nadd.s32 %r2, %r1, %r1;\nst.global.u32 [%rd1], %r2;";
    assert_eq!(merged(one)[1..3], [1, 2]);
}

#[test]
fn what_a_loop_carries_is_needed_to_its_end() {
    let carried = "mov.u32 %r1, 0;\nmov.u32 %r2, 7;\nTOP:\nadd.s32 %r1, %r1, %r2;\n\
            mov.u32 %r3, 5;\nst.global.u32 [%rd1], %r3;\nsetp.lt.s32 %p1, %r1, 64;\n@%p1 bra TOP;\n\
            mov.u32 %r4, 1;\nst.global.u32 [%rd1], %r4;";
    let places = merged(carried);
    assert_eq!(places[1..4], [1, 2, 3]);
    assert_ne!(places[4], 4);
}

#[test]
fn what_may_be_read_before_it_is_written_keeps_its_place() {
    let guarded = "mov.u32 %r1, 1;\nst.global.u32 [%rd1], %r1;\n@%p1 mov.u32 %r2, 3;\n\
            st.global.u32 [%rd1], %r2;\nmov.u32 %r3, 4;\nst.global.u32 [%rd1], %r3;";
    let places = merged(guarded);
    assert_eq!((places[2], places[3]), (2, 1));
}

#[test]
fn a_branch_around_a_definition_keeps_the_value_before_it() {
    let around = "mov.u32 %r1, 1;\nsetp.eq.s32 %p1, %r1, 2;\n@%p1 bra SKIP;\nmov.u32 %r2, 9;\n\
            st.global.u32 [%rd1], %r2;\nmov.u32 %r1, 3;\nSKIP:\nst.global.u32 [%rd1], %r1;";
    assert_eq!(merged(around)[1..3], [1, 2]);
}
