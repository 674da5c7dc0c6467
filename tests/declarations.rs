//! A search space's arguments beside what its kernels take, as a user meets it: exit code 2 with
//! both places, or not a word.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::process::Output;

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    std::fs::write(path, text).expect("the file is written");
}

/// `tuner`, with a compile cache of its own: what was asked before must not answer.
fn tuner(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    let library = std::env::var_os("TUNER_NVRTC");
    command.current_dir(folder);
    command.env("TUNER_CACHE", folder.join("cache"));
    if library.is_none() && project().join(".cuda").exists() {
        std::os::unix::fs::symlink(project().join(".cuda"), folder.join(".cuda")).ok();
    }
    command
}

/// A space of one kernel `k` with these arguments.
fn space(arguments: &[&str]) -> String {
    let arguments: String = arguments
        .iter()
        .map(|one| format!("  - {{ {one} }}\n"))
        .collect();
    format!(
        "version: 1\nkernel: k\nsource: ../templates/kernel.cu\nproblems:\n  small: {{ N: 256 }}\n\
         parameters:\n  BLOCK: {{ values: [64, 128], default: 128 }}\n  \
         WIDE: {{ values: [0, 1], default: 0 }}\n  T: {{ values: [float], default: float }}\n\
         derived:\n  TWICE: \"2 * N\"\n\
         arguments:\n{arguments}launches:\n  \
         - {{ entry: k, grid: [\"N // BLOCK\"], block: [BLOCK] }}\n\
         reference: {{ source: ../templates/kernel.cu, entry: k, grid: [\"N // BLOCK\"], block: [BLOCK] }}\n"
    )
}

/// The front of every kernel here: the parameters are mentioned, nothing is done.
const FRONT: &str = "\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef int int32_t;
#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef WIDE
#define WIDE 0
#endif
#ifndef T
#define T float
#endif
";

/// Checks up to the compile. One file is the template and the reference kernel.
fn checked(kernel: &str, arguments: &[&str]) -> (Output, String) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(
        dir.path(),
        "templates/kernel.cu",
        &format!("{FRONT}{kernel}\n"),
    );
    write(dir.path(), "search_spaces/k.yaml", &space(arguments));
    let arguments = "check search_spaces/k.yaml --arch sm_90 --sample 1";
    ran(dir.path(), &arguments.split(' ').collect::<Vec<_>>())
}

fn ran(folder: &Path, arguments: &[&str]) -> (Output, String) {
    let output = tuner(folder).args(arguments).output().expect("tuner runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

/// The line in a template at which the text behind [`FRONT`] begins.
fn first_line() -> usize {
    FRONT.lines().count() + 1
}

const IN: &str = "name: x, type: f32, role: input, shape: [N]";
const OUT: &str = "name: y, type: f32, role: output, shape: [N]";

fn kernel(parameters: &str) -> String {
    format!("extern \"C\" __global__ void k({parameters}) {{}}")
}

#[test]
fn every_wrong_declaration_is_refused_with_both_places() {
    // What `x` is declared, what the kernel takes for it, and what the message must hold.
    let buffers: [(&str, &str, &str); 30] = [
        (
            "f64",
            "const float* x",
            "write `type: f32` here, or `const double* x`",
        ),
        (
            "f32",
            "const double* x",
            "write `type: f64` here, or `const float* x`",
        ),
        ("f32", "const half* x", "`type: f16`"),
        ("f32", "const __half2* x", "`type: f16`"),
        ("f16", "const float* x", "`type: f32`"),
        ("f16", "const __nv_bfloat16* x", "`type: bf16`"),
        ("bf16", "const half* x", "`type: f16`"),
        ("bf16", "const float* x", "`type: f32`"),
        ("f16", "const float4* x", "`type: f32`"),
        ("f64", "const float2* x", "`type: f32`"),
        ("f32", "const int* x", "`type: i32`"),
        ("i32", "const float* x", "`type: f32`"),
        ("i32", "const unsigned* x", "`type: u32`"),
        ("u32", "const int* x", "`type: i32`"),
        ("u32", "const int4* x", "`type: i32`"),
        ("i64", "const int* x", "`type: i32`"),
        ("i32", "const size_t* x", "`type: i64`"),
        ("i8", "const unsigned char* x", "`type: u8`"),
        ("u8", "const signed char* x", "`type: i8`"),
        ("i8", "const int* x", "`type: i32`"),
        ("i8", "const bool* x", "`type: bool`"),
        ("f8e4m3", "const __nv_fp8_e5m2* x", "`type: f8e5m2`"),
        ("f8e5m2", "const __nv_fp8_e4m3* x", "`type: f8e4m3`"),
        ("f8e4m3", "const half* x", "`type: f16`"),
        (
            "f32",
            "const unsigned short* x",
            "`const float* x` in the kernel",
        ),
        ("f16", "const T* x", "that is `float const*`"),
        ("f32", "const float* const* x", "no declared type"),
        ("f32", "float x", "`role: scalar`"),
        ("f64", "Triple* x", "no declared type"),
        ("u32", "const Signed* x", "that is `int const*`"),
    ];
    for (declared, takes, hint) in buffers {
        let text = format!(
            "struct Triple {{ float x, y, z; }};\ntypedef int Signed;\n{}",
            kernel(&format!("{takes}, float* y"))
        );
        let input = format!("name: x, type: {declared}, role: input, shape: [N]");
        let (output, said) = checked(&text, &[&input, OUT]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{declared} for {takes}: {said}"
        );
        let yaml = "search_spaces/k.yaml:1";
        let cuda = format!("templates/kernel.cu:{}:", first_line() + 2);
        for part in [yaml, &cuda, "error: ", "help: ", "^^", hint] {
            assert!(
                said.contains(part),
                "{part} for {declared}, {takes}: {said}"
            );
        }
    }
}

#[test]
fn a_wrong_number_of_arguments_is_refused_with_what_is_missing() {
    let scalar = "name: a, type: i32, role: scalar, value: 1";
    let cases: [(&str, &[&str], &str); 4] = [
        (
            "const float* x, float* y, int n",
            &[IN, OUT],
            "what is missing: parameter 3 of the kernel `k` is `int n`",
        ),
        (
            "const float* x",
            &[IN, OUT],
            "name what it takes, as `args: [x]`",
        ),
        (
            "float* y, const float* x",
            &[IN, OUT, scalar],
            "takes 2 parameters",
        ),
        ("", &[IN, OUT], "takes 0 parameters (none)"),
    ];
    for (takes, arguments, hint) in cases {
        let (output, said) = checked(&kernel(takes), arguments);
        assert_eq!(output.status.code(), Some(2), "{takes}: {said}");
        let yaml = format!("search_spaces/k.yaml:{}:14: error: ", 14 + arguments.len());
        let cuda = format!("(templates/kernel.cu:{}:", first_line());
        for part in [&*yaml, &*cuda, hint] {
            assert!(said.contains(part), "{part} for {takes}: {said}");
        }
    }
}

#[test]
fn the_compiler_is_asked_once_for_all_candidates_and_problems() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = project().join("search_spaces/gemm_f32.yaml");
    let compiler = tuner_kernel::compile::Compiler::new(tuner_kernel::compile::CompilerSettings {
        isolation: tuner_kernel::compile::Isolation::InProcess,
        cache: Some(dir.path().to_owned()),
        ..tuner_kernel::compile::CompilerSettings::with_jobs(1)
    })
    .expect("NVRTC is there");
    let limits = tuner_device::limits::by_name("h100").expect("a known device");
    let kernel = tuner_kernel::catalog::Kernel::load(&file).expect("a good space");
    let names = ["even", "ragged"];
    let space = |name: &str| kernel.spec.space(name, &limits).expect("a space");
    let spaces = names.map(space);
    let problems: Vec<_> = names.into_iter().zip(&spaces).collect();
    let entries = || {
        let shards = std::fs::read_dir(dir.path().join("compile")).expect("a cache");
        let files = shards
            .flat_map(|shard| std::fs::read_dir(shard.expect("a shard").path()).expect("a shard"));
        files.count()
    };
    for _ in 0..2 {
        let subject = kernel.declared();
        tuner_kernel::declarations::check(subject, &problems, &limits, "sm_90", &compiler)
            .expect("declared right");
        // One for each set of launches: with and without the sum of parts.
        assert_eq!(entries(), 2);
    }
}

#[test]
fn every_wrong_scalar_is_refused_with_both_places() {
    let scalars: [(&str, &str, &str); 12] = [
        ("i32", "float a", "`type: f32`"),
        ("f32", "int a", "`type: i32`"),
        ("f64", "float a", "`type: f32`"),
        ("f32", "double a", "`type: f64`"),
        ("i32", "long long a", "`type: i64`"),
        ("i32", "size_t a", "`type: i64`"),
        ("i32", "unsigned a", "`type: u32`"),
        ("u32", "int32_t a", "`type: i32`"),
        ("i32", "bool a", "`type: bool`"),
        ("f16", "nv_bfloat16 a", "`type: bf16`"),
        ("f32", "const float* a", "a scalar of `f32`"),
        ("f32", "float4 a", "`float a` in the kernel"),
    ];
    for (declared, takes, hint) in scalars {
        let text = kernel(&format!("const float* x, float* y, {takes}"));
        let scalar = format!("name: a, type: {declared}, role: scalar, value: 1");
        let (output, said) = checked(&text, &[IN, OUT, &scalar]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{declared} for {takes}: {said}"
        );
        let cuda = format!("templates/kernel.cu:{}:", first_line());
        for part in ["search_spaces/k.yaml:15:", &cuda, hint] {
            assert!(
                said.contains(part),
                "{part} for {declared}, {takes}: {said}"
            );
        }
    }
}

#[test]
fn every_right_declaration_passes_without_a_word() {
    let right: [(&str, &str, &str); 30] = [
        ("f32", "", "const float* x"),
        ("f32", "", "float* __restrict__ x"),
        ("f32", "", "const float4* x"),
        ("f32", "typedef float real;", "const real* x"),
        ("f32", "using real = const float;", "real* x"),
        ("f32", "", "const T* x"),
        ("f32", "#define REAL T", "REAL const* x"),
        (
            "f32",
            "template <int n> struct Pick { using type = double; };\ntemplate <> struct Pick<0> { using type = float; };",
            "const typename Pick<0>::type* x",
        ),
        ("f32", "", "const float x[4]"),
        ("f32", "", "const volatile float* x"),
        ("f64", "", "const double2* x"),
        ("f16", "", "const half* x"),
        ("f16", "", "const __half* x"),
        ("f16", "", "const half2* x"),
        ("f16", "", "const unsigned short* x"),
        ("bf16", "", "const nv_bfloat16* x"),
        ("bf16", "", "const __nv_bfloat162* x"),
        ("bf16", "", "const uint16_t* x"),
        ("i8", "", "const signed char* x"),
        ("i8", "", "const char* x"),
        ("u8", "", "const char* x"),
        ("u8", "", "const uint8_t* x"),
        ("u8", "", "const uchar4* x"),
        ("i32", "", "const int32_t* x"),
        ("i32", "enum Kind { one, two };", "const Kind* x"),
        ("u32", "", "const unsigned* x"),
        ("i64", "", "const long long* x"),
        ("i64", "", "const size_t* x"),
        ("f8e4m3", "", "const __nv_fp8_e4m3* x"),
        ("f8e5m2", "", "const __nv_fp8_storage_t* x"),
    ];
    for (declared, before, takes) in right {
        let text = format!("{before}\n{}", kernel(&format!("{takes}, float* y")));
        let input = format!("name: x, type: {declared}, role: input, shape: [N]");
        let (output, said) = checked(&text, &[&input, OUT]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{declared} for {takes}: {said}"
        );
        assert!(
            !said.contains("is declared"),
            "{declared} for {takes}: {said}"
        );
    }
}

#[test]
fn what_cannot_be_compared_passes_with_one_warning() {
    let loose: [(&str, &str, &str); 8] = [
        ("f32", "const void* x", "`void*` says nothing"),
        ("f32", "const unsigned char* x", "raw bytes"),
        ("f32", "char* x", "raw bytes"),
        ("f32", "const Triple* x", "only the size is compared"),
        ("f16", "const uint4* x", "raw bits"),
        ("bf16", "const short* x", "raw bits"),
        ("f8e4m3", "const signed char* x", "raw bits"),
        ("u8", "const bool* x", "`bool`"),
    ];
    for (declared, takes, why) in loose {
        let text = format!(
            "struct Triple {{ float x, y, z; }};\n{}",
            kernel(&format!("{takes}, float* y"))
        );
        let input = format!("name: x, type: {declared}, role: input, shape: [N]");
        let (output, said) = checked(&text, &[&input, OUT]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{declared} for {takes}: {said}"
        );
        let place = "warning: search_spaces/k.yaml:13:22: `x` is declared";
        let kernels = said.matches("of the kernel `k`").count();
        assert_eq!(kernels, 1, "{said}");
        assert!(said.contains(place) && said.contains(why), "{said}");
    }
}

#[test]
fn an_output_that_no_kernel_can_write_is_refused() {
    let (output, said) = checked(&kernel("const float* x, const float* y"), &[IN, OUT]);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nothing can write it"), "{said}");
    assert!(said.contains("search_spaces/k.yaml:14:33"), "{said}");
    let place = format!("templates/kernel.cu:{}:", first_line());
    assert!(said.contains(&place), "{said}");
}

#[test]
fn a_type_that_hangs_on_a_parameter_is_looked_at_with_each_of_its_values() {
    let text = "#if WIDE\nusing element = double;\n#else\nusing element = float;\n#endif\n";
    let text = format!("{text}{}", kernel("const element* x, float* y"));
    let (output, said) = checked(&text, &[IN, OUT]);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("that is `double const*`"), "{said}");
}

#[test]
fn kernels_in_namespaces_behind_macros_and_in_headers_are_found() {
    let texts = [
        "namespace a::b { extern \"C\" __global__ void k(const double* x, float* y) {} }",
        "#define KERNEL(name) extern \"C\" __global__ void name\nKERNEL(k)(const double* x, float* y) {}",
        "#define K(name) extern \"C\" __global__ void name##k\nK()(const double* x, float* y) {}",
        "template <class E> __device__ void work(E*, float*) {}\n\
         extern \"C\" __global__ void k(const double* x, float* y) { work(x, y); }",
        "#define PARAMETERS const double* x, float* y\nextern \"C\" __global__ void k(PARAMETERS) {}",
    ];
    for text in texts {
        let (output, said) = checked(text, &[IN, OUT]);
        assert_eq!(output.status.code(), Some(2), "{text}: {said}");
        let line = format!("templates/kernel.cu:{}", first_line());
        let next = format!("templates/kernel.cu:{}", first_line() + 1);
        assert!(
            said.contains(&line) || said.contains(&next),
            "{text}: {said}"
        );
    }
}

#[test]
fn the_reference_kernel_is_compared_as_well() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = space(&[IN, OUT]).replace(
        "reference: { source: ../templates/kernel.cu, entry: k,",
        "reference: { source: ../templates/reference.cu, entry: naive,",
    );
    write(dir.path(), "search_spaces/k.yaml", &text);
    let good = format!("{FRONT}{}", kernel("const float* x, float* y"));
    write(dir.path(), "templates/kernel.cu", &good);
    let naive = "extern \"C\" __global__ void naive(const float* x, double* y) {}\n";
    write(dir.path(), "templates/reference.cu", naive);
    for command in [
        &["check", "search_spaces/k.yaml", "--arch", "sm_90"][..],
        &["check", "search_spaces/k.yaml"],
    ] {
        let (output, said) = ran(dir.path(), command);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let parts = [
            "search_spaces/k.yaml:14:",
            "templates/reference.cu:1:",
            "reference kernel `naive`",
        ];
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn every_command_that_builds_candidates_refuses_a_wrong_declaration() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), "search_spaces/k.yaml", &space(&[IN, OUT]));
    let text = format!("{FRONT}{}", kernel("const double* x, float* y"));
    write(dir.path(), "templates/kernel.cu", &text);
    let file = "search_spaces/k.yaml";
    for command in [
        &["check", file][..],
        &[
            "run",
            file,
            "--device",
            "vgpu:h100",
            "--evals",
            "2",
            "--db",
            "t.db",
        ],
        &["predict", file],
        &["gate", file, "--device", "vgpu:h100", "--db", "t.db"],
        &["ablate", file],
    ] {
        let (output, said) = ran(dir.path(), command);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(
            said.contains("search_spaces/k.yaml:13:22: error: "),
            "{command:?}: {said}"
        );
        assert!(said.contains("templates/kernel.cu:"), "{command:?}: {said}");
    }
}

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
    for (before, (line, column), what) in wrong {
        let text = format!("{before}\n{}", kernel("const float* x, float* y"));
        let (output, said) = checked(&text, &[IN, OUT]);
        assert_eq!(output.status.code(), Some(2), "{before}: {said}");
        assert!(
            said.contains(what) && said.contains("help: "),
            "{before}: {said}"
        );
        assert!(!said.contains("combinations are valid"), "{before}: {said}");
        let place = format!(
            "templates/kernel.cu:{}:{column}: error: ",
            first_line() + line
        );
        assert!(said.contains(&place), "{before}: {said}");
    }
}

#[test]
fn definitions_that_hang_on_values_are_told_by_the_compiler() {
    for before in [
        "#if BLOCK == 128\n#define N 7\n#endif",
        "#if BLOCK == 64\n#define N 7\n#endif",
        "#if __CUDACC_VER_MAJOR__ > 9\n#undef N\n#define N 7\n#endif",
    ] {
        let text = format!("{before}\n{}", kernel("const float* x, float* y"));
        let (output, said) = checked(&text, &[IN, OUT]);
        assert_eq!(output.status.code(), Some(2), "{before}: {said}");
        assert!(
            said.contains("overrides the problem size `N`"),
            "{before}: {said}"
        );
        let column = ":9: error: ";
        assert!(
            said.contains("templates/kernel.cu:") && said.contains(column),
            "{before}: {said}"
        );
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
        "static const char* const text = \"\\\n#define N 7\";",
    ] {
        let before = before.replace("static const char", "__constant__ const char");
        let text = format!("{before}\n{}", kernel("const float* x, float* y"));
        let (output, said) = checked(&text, &[IN, OUT]);
        assert_eq!(output.status.code(), Some(0), "{before}: {said}");
    }
}

#[test]
fn a_definition_in_a_header_is_shown_there() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), "search_spaces/k.yaml", &space(&[IN, OUT]));
    let text = format!(
        "{FRONT}#include \"own.cuh\"\n{}",
        kernel("const float* x, float* y")
    );
    write(dir.path(), "templates/kernel.cu", &text);
    write(
        dir.path(),
        "templates/own.cuh",
        "#pragma once\n#define N 7\n",
    );
    let (output, said) = ran(
        dir.path(),
        &["check", "search_spaces/k.yaml", "--arch", "sm_90"],
    );
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("templates/own.cuh:2:9: error: "), "{said}");
    write(
        dir.path(),
        "templates/own.cuh",
        "#ifndef N\n#define N 7\n#endif\n",
    );
    let (output, said) = ran(
        dir.path(),
        &["check", "search_spaces/k.yaml", "--arch", "sm_90"],
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn a_variable_that_has_the_name_of_a_macro_is_explained() {
    for before in [
        "constexpr int N = 256;",
        "template <int BLOCK> struct A {};",
    ] {
        let text = format!("{before}\n{}", kernel("const float* x, float* y"));
        let (output, said) = checked(&text, &[IN, OUT]);
        assert_eq!(output.status.code(), Some(2), "{before}: {said}");
        let place = format!("templates/kernel.cu:{}:", first_line());
        assert!(
            said.contains("is a macro") && said.contains(&place),
            "{before}: {said}"
        );
    }
}

#[test]
fn all_shipped_spaces_declare_what_their_kernels_take() {
    let folder = project();
    let spaces = std::fs::read_dir(folder.join("search_spaces")).expect("the folder is there");
    let compiler = tuner_kernel::compile::Compiler::new(tuner_kernel::compile::CompilerSettings {
        isolation: tuner_kernel::compile::Isolation::InProcess,
        ..tuner_kernel::compile::CompilerSettings::with_jobs(1)
    })
    .expect("NVRTC is there");
    let limits = tuner_device::limits::by_name("h100").expect("a known device");
    let mut count = 0;
    for file in spaces {
        let path = file.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let kernel = tuner_kernel::catalog::Kernel::load(&path).expect("a good space");
        let spec = &kernel.spec;
        let problem = &spec
            .check_problems
            .first()
            .unwrap_or(&spec.problems[0])
            .name;
        let space = spec.space(problem, &limits).expect("a space");
        let subject = kernel.declared();
        let problems = [(&**problem, &space)];
        let warnings =
            tuner_kernel::declarations::check(subject, &problems, &limits, "sm_90", &compiler);
        let warnings = warnings.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(warnings.is_empty(), "{}: {warnings:?}", path.display());
        count += 1;
    }
    assert!(count > 15, "{count} spaces");
}
