use super::with_zero_initializers;
use crate::compile::{Template, render};

/// Returns the declarations of PTX with their source, as passed to a device.
fn completed(text: &str, ptx: &str) -> String {
    let template = Template::new("k.cu", text, Vec::new(), Vec::new());
    let source = render(&template, &[], &[], &[], "sm_90");
    with_zero_initializers(ptx, &source).into_owned()
}

#[test]
fn a_constant_that_the_source_sets_to_zero_says_so() {
    let text = "__constant__ int zero = 0, more = 0;\n__constant__ float z[4] = {0};";
    let ptx = ".const .align 4 .u32 zero;\n.const .align 4 .b8 z[16];\n";
    let whole = ".const .align 4 .u32 zero = 0;\n.const .align 4 .b8 z[16] = {0};\n";
    assert_eq!(completed(text, ptx), whole);
}

#[test]
fn a_constant_without_a_value_stays_without_one() {
    let text = "namespace a { static __constant__ float /* c = 0 */ c[4]; }";
    let ptx = ".const .align 4 .b8 _ZN1a1cE[16];\n";
    assert_eq!(completed(text, ptx), ptx);
}

#[test]
fn a_constant_of_which_the_source_shows_no_declaration_counts_as_set() {
    let ptx = ".const .align 4 .u32 hidden;\n.const .align 4 .u32 one = 1;\n.global .u32 g;\n";
    let whole = ptx
        .replace("hidden;", "hidden = 0;")
        .replace("g;", "g = 0;");
    assert_eq!(completed("#include \"constants.h\"\n", ptx), whole);
}
