use super::{Pointer, pointers};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.global .b32 table[4];\n";

fn found(body: &str) -> Vec<(u32, Pointer<'static>)> {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 k_0, .param .align 8 .b8 k_1[16], .param .u32 k_2)\n\
         {{\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .pred %p<2>;\n{body}ret;\n}}\n"
    );
    let ast = crate::parse(Box::leak(text.into_boxed_str())).unwrap();
    let body = Box::leak(Box::new(ast.functions[0].body.clone().unwrap()));
    let mut all: Vec<_> = pointers(body).into_iter().collect();
    all.sort_by_key(|(line, _)| *line);
    all
}

#[test]
fn an_index_is_no_pointer_and_the_pointer_is_found_behind_sums_and_conversions() {
    let body = "ld.param.u64 %rd1, [k_0];\ncvta.to.global.u64 %rd2, %rd1;\nld.param.u32 %r1, [k_2];\n\
         mul.wide.s32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nst.global.u32 [%rd4+8], %r1;\n";
    assert_eq!(found(body), [(15, Pointer::Parameter("k_0", 0))]);
}

#[test]
fn a_pointer_in_a_struct_and_a_variable_are_told_apart() {
    let body = "ld.param.u64 %rd1, [k_1+8];\nst.u32 [%rd1], 1;\nmov.u64 %rd2, table;\n\
         add.s64 %rd2, %rd2, 4;\nst.u32 [%rd2], 1;\n";
    let (one, two) = (Pointer::Parameter("k_1", 8), Pointer::Variable("table"));
    assert_eq!(found(body), [(11, one), (14, two)]);
}

#[test]
fn one_of_two_pointers_and_one_that_is_loaded_are_not_known() {
    let body = "ld.param.u64 %rd1, [k_0];\nld.param.u64 %rd2, [k_1];\nsetp.eq.u64 %p1, %rd1, 0;\n\
         selp.b64 %rd3, %rd1, %rd2, %p1;\nst.u32 [%rd3], 1;\nld.u64 %rd4, [%rd1];\nst.u32 [%rd4], 1;\n";
    assert_eq!(found(body), [(15, Pointer::Parameter("k_0", 0))]);
}
