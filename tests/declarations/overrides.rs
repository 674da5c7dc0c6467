//! Definitions in a template that override what the space defines.

use super::{IN, OUT, checked_behind, kernel, line, project, ran};
use crate::program::write;

#[test]
fn definitions_that_override_the_space_are_refused_before_anything_is_compiled() {
    // The text, the place of the definition behind the front, and what it overrides.
    let wrong: [(&str, (usize, usize), &str); 12] = [
        ("#define N 1024", (0, 9), "the problem size `N`"),
        ("#  define  N 1024", (0, 12), "the problem size `N`"),
        ("#define TWICE 7", (0, 9), "the derived value `TWICE`"),
        (
            "#undef BLOCK\n#define BLOCK 32",
            (1, 9),
            "after an `#undef`",
        ),
        (
            "#undef N\n#ifndef N\n#define N 7\n#endif",
            (2, 9),
            "after an `#undef`",
        ),
        ("#ifdef N\n#define N 7\n#endif", (1, 9), "the problem size"),
        (
            "#if defined(N) && 1\n#define N 7\n#endif",
            (1, 9),
            "the problem size",
        ),
        (
            "#if 0\n#else\n#define N 7\n#endif",
            (2, 9),
            "the problem size",
        ),
        (
            "#ifndef UNKNOWN_HERE\n#define UNKNOWN_HERE\n#define N 7\n#endif",
            (2, 9),
            "`N`",
        ),
        ("#define N(a) a", (0, 9), "the problem size `N`"),
        (
            "#define DEVICE_SM_COUNT 108",
            (0, 9),
            "a property of the device",
        ),
        ("#define \\\n  N 7", (1, 3), "the problem size `N`"),
    ];
    for (before, (number, column), what) in wrong {
        let said = checked_behind(before);
        let place = format!("{}{column}: error: ", line(number));
        said.says_of(&before, 2, &[what, "help: ", &place]);
        let compiled = said.stderr.contains("combinations are valid");
        assert!(!compiled, "{before}: {}", said.stderr);
    }
}

#[test]
fn definitions_that_hang_on_values_are_told_by_the_compiler() {
    for before in [
        "#if BLOCK == 128\n#define N 7\n#endif",
        "#if BLOCK == 64\n#define N 7\n#endif",
        "#if __CUDACC_VER_MAJOR__ > 9\n#undef N\n#define N 7\n#endif",
    ] {
        let parts = [
            "overrides the problem size `N`",
            "templates/kernel.cu:",
            ":9: error: ",
        ];
        checked_behind(before).says_of(&before, 2, &parts);
    }
}

#[test]
fn definitions_that_override_nothing_pass() {
    for before in [
        "#ifndef N\n#define N 1024\n#endif",
        "#if !defined(N)\n#define N 1024\n#endif",
        "#if 0\n#define N 7\n#endif",
        "#if BLOCK == 17\n#define N 7\n#endif",
        "#ifdef __HIP__\n#define N 7\n#endif",
        "// #define N 7",
        "/*\n#define N 7\n*/",
        "#define N_2 7\n#define NN 7",
        "constexpr int n = N;\n#undef N",
        "#ifdef N\n#else\n#define N 7\n#endif",
        "__constant__ const char* const text = \"\\\n#define N 7\";",
    ] {
        checked_behind(before).says_of(&before, 0, &[]);
    }
}

#[test]
fn a_definition_in_a_header_is_shown_there() {
    let text = format!(
        "#include \"own.cuh\"\n{}",
        kernel("const float* x, float* y")
    );
    let dir = project(&text, &[IN, OUT]);
    let header = |text| {
        write(dir.path(), "templates/own.cuh", text);
        ran(dir.path(), "check search_spaces/k.yaml --arch sm_90")
    };
    header("#pragma once\n#define N 7\n").says(2, &["templates/own.cuh:2:9: error: "]);
    header("#ifndef N\n#define N 7\n#endif\n").says(0, &[]);
}

#[test]
fn a_variable_that_has_the_name_of_a_macro_is_explained() {
    for before in [
        "constexpr int N = 256;",
        "template <int BLOCK> struct A {};",
    ] {
        checked_behind(before).says_of(&before, 2, &["is a macro", &line(0)]);
    }
}
