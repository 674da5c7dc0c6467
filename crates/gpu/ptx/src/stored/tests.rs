use super::never_written;
use crate::parse;

/// Returns the names of the variables that a kernel with this body leaves unchanged.
fn left(body: &str) -> Vec<String> {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.global .align 4 .b8 a[16];\n\
         .global .align 4 .u32 b;\n.global .align 4 .u32 one = 1;\n\
         .visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n\
         ld.param.u64 %rd7, [p];\n{body}\nret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    let mut names: Vec<String> = never_written(&ast).into_iter().collect();
    names.sort();
    names
}

#[test]
fn variables_that_are_only_read_are_never_written() {
    let read = "mov.u64 %rd1, a;\nadd.s64 %rd2, %rd1, 4;\nld.global.u32 %r1, [%rd2];\n\
                ld.global.u32 %r2, [b];\nst.global.u32 [%rd7], %r2;";
    assert_eq!(left(read), ["a", "b"]);
}

#[test]
fn a_store_through_a_computed_address_writes() {
    let store = "mov.u64 %rd1, a;\nadd.s64 %rd2, %rd1, 4;\ncvta.global.u64 %rd3, %rd2;\n\
                 st.u32 [%rd3], 1;\natom.global.add.u32 %r1, [b], 1;";
    assert!(left(store).is_empty());
}

#[test]
fn an_address_that_is_stored_may_be_written_by_others() {
    let escape = "mov.u64 %rd1, a;\nst.global.u64 [%rd7], %rd1;\nld.global.u32 %r1, [b];";
    assert_eq!(left(escape), ["b"]);
}
