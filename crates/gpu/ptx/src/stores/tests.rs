use super::*;
use crate::parse;

fn slice_of(body: &str, roots: Roots) -> Result<Vec<Step>, Refusal> {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n\
             .shared .align 4 .b8 s[64];\n{body}\nret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    slice(&ast, &ast.functions[0], roots)
}

#[test]
fn a_loop_before_a_store_is_stepped_over() {
    let body = "mov.u32 %r1, 0;\nld.param.u64 %rd1, [p];\n\
        TOP:\nadd.f32 %f1, %f1, %f2;\nadd.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 64;\n@%p1 bra TOP;\n\
        st.global.f32 [%rd1], %f1;";
    use Step::{Goto, Keep, Skip};
    let steps = [Skip, Keep, Skip, Skip, Skip, Goto(6), Keep, Keep];
    assert_eq!(slice_of(body, Roots::Stores), Ok(steps.to_vec()));
}

#[test]
fn a_loop_that_moves_the_address_is_kept() {
    let body = "mov.u32 %r1, 0;\nld.param.u64 %rd1, [p];\n\
        TOP:\nst.global.f32 [%rd1], %f1;\nadd.s64 %rd1, %rd1, 4;\nadd.f32 %f1, %f1, %f2;\n\
        add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 64;\n@%p1 bra TOP;";
    use Step::{Keep, Skip};
    let steps = [Keep, Keep, Keep, Keep, Skip, Keep, Keep, Keep, Keep];
    assert_eq!(slice_of(body, Roots::Stores), Ok(steps.to_vec()));
}

#[test]
fn an_early_return_decides_what_follows() {
    let body = "mov.u32 %r1, %ctaid.x;\nld.param.u64 %rd1, [p];\nsetp.gt.s32 %p1, %r1, 3;\n@%p1 ret;\n\
        st.global.f32 [%rd1], %f1;";
    assert_eq!(slice_of(body, Roots::Stores), Ok(vec![Step::Keep; 6]));
}

#[test]
fn an_assertion_decides_nothing() {
    let body = "ld.global.u32 %r1, [%rd2];\nld.param.u64 %rd1, [p];\nsetp.gt.s32 %p1, %r1, 3;\n\
        @%p1 bra OK;\ntrap;\nOK:\nst.global.f32 [%rd1], %f1;";
    use Step::{Goto, Keep, Skip};
    let steps = [Skip, Keep, Skip, Goto(5), Keep, Keep, Keep];
    assert_eq!(slice_of(body, Roots::Stores), Ok(steps.to_vec()));
}

#[test]
fn an_index_from_shared_memory_keeps_what_was_stored_there_and_the_barrier() {
    let body = "mov.u32 %r1, %tid.x;\nst.shared.u32 [s], %r1;\nbar.sync 0;\nld.shared.u32 %r2, [s];\n\
        mul.wide.u32 %rd1, %r2, 4;\nst.global.f32 [%rd1], %f1;";
    assert_eq!(slice_of(body, Roots::Stores), Ok(vec![Step::Keep; 7]));
}

#[test]
fn a_work_queue_has_no_slice() {
    let body = "ld.param.u64 %rd1, [p];\natom.global.add.u32 %r1, [%rd1], 1;\n\
        mul.wide.u32 %rd2, %r1, 4;\nst.global.f32 [%rd2], %f1;";
    let refused = slice_of(body, Roots::Stores).expect_err("a queue");
    assert!(
        refused.instruction.starts_with("atom.global.add.u32 ("),
        "{refused:?}"
    );
}

#[test]
fn loads_are_roots_where_they_are_asked_for() {
    let body = "ld.param.u64 %rd1, [p];\nld.global.f32 %f1, [%rd1];\nadd.f32 %f1, %f1, %f1;\n\
        st.global.f32 [%rd1], %f1;";
    use Step::{Keep, Skip, Touch};
    let stores = [Keep, Skip, Skip, Keep, Keep];
    let both = [Keep, Touch, Skip, Keep, Keep];
    assert_eq!(slice_of(body, Roots::Stores), Ok(stores.to_vec()));
    assert_eq!(slice_of(body, Roots::Accesses), Ok(both.to_vec()));
}
