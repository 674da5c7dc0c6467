use super::*;
use crate::parse;

fn slice_body(body: &str) -> Skeleton {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n{body}\n\
             ret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    skeleton(ast.functions[0].body.as_ref().expect("a body"))
}

const LOOP: &str = "mov.u32 %r1, 0;\nmov.f32 %f1, 0f00000000;\nld.param.u64 %rd1, [p];\n\
        TOP:\nld.global.f32 %f2, [%rd1];\nfma.rn.f32 %f1, %f2, %f2, %f1;\nadd.s64 %rd1, %rd1, 4;\n\
        add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 64;\n@%p1 bra TOP;\nst.global.f32 [%rd1], %f1;";

#[test]
fn arithmetic_on_data_is_left_out_and_counters_and_addresses_are_kept() {
    let keep = slice_body(LOOP).keep;
    let both = CONTROL | ADDRESSES;
    let expected = [
        both,
        0,
        ADDRESSES,
        ADDRESSES | UNUSED,
        0,
        ADDRESSES,
        both,
        both,
        both,
        0,
        both,
    ];
    assert_eq!(keep, expected);
}

#[test]
fn a_loaded_index_is_used_and_what_it_leads_to_is_not() {
    let gather = "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\n\
            mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.f32 %f1, [%rd3];\n\
            st.global.f32 [%rd1], %f1;";
    let keep = slice_body(gather).keep;
    assert_eq!(keep[1], ADDRESSES | DATA);
    assert_eq!(keep[4], ADDRESSES | UNUSED);
}

#[test]
fn a_loop_of_fixed_length_does_not_depend_on_the_block_and_one_up_to_its_index_does() {
    assert!(!slice_body(LOOP).by_block);
    let bounded = LOOP.replace("%r1, 64", "%r1, %r2");
    let bounded = format!("mov.u32 %r2, %ctaid.x;\nadd.s32 %r2, %r2, 1;\n{bounded}");
    assert!(slice_body(&bounded).by_block);
}

#[test]
fn a_value_that_passes_through_shared_memory_keeps_what_stores_there() {
    let passed = "mov.u32 %r1, 7;\nst.shared.u32 [%r3], %r1;\nbar.sync 0;\n\
            ld.shared.u32 %r2, [%r3];\nsetp.eq.s32 %p1, %r2, 0;\n@%p1 bra DONE;\nadd.s32 %r4, %r4, 1;\nDONE:";
    let keep = slice_body(passed).keep;
    assert!(
        keep[..6].iter().all(|flags| flags & CONTROL != 0),
        "{keep:?}"
    );
    assert_eq!(keep[6] & CONTROL, 0);
}

#[test]
fn work_that_is_handed_out_by_an_atomic_depends_on_other_blocks() {
    let handed = "ld.param.u64 %rd1, [p];\natom.global.add.u32 %r1, [%rd1], 1;\n\
            setp.gt.u32 %p1, %r1, 9;\n@%p1 bra DONE;\nadd.s32 %r4, %r4, 1;\nDONE:";
    assert!(slice_body(handed).by_others);
    assert!(!slice_body(LOOP).by_others);
}
