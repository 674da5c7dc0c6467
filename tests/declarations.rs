//! A search space's arguments beside what its kernels take, as a user meets it: exit code 2 with
//! both places, or not a word.

mod overrides;

use crate::program::{Ended, ended, folder, root, write};
use std::path::Path;
use tempfile::TempDir;
use tuner_kernel::compile::{Compiler, CompilerSettings, Isolation};

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

/// A project of one kernel, whose template is its reference as well.
fn project(kernel: &str, arguments: &[&str]) -> TempDir {
    folder(&[
        ("templates/kernel.cu", &format!("{FRONT}{kernel}\n")),
        ("search_spaces/k.yaml", &space(arguments)),
    ])
}

/// Checks up to the compile.
fn checked(kernel: &str, arguments: &[&str]) -> Ended {
    ran(project(kernel, arguments).path(), CHECK)
}

const CHECK: &str = "check search_spaces/k.yaml --arch sm_90 --sample 1";

/// Runs `tuner` with a compile cache of its own: what was asked before must not answer.
fn ran(folder: &Path, line: &str) -> Ended {
    let mut tuner = crate::program::tuner(folder);
    tuner.env("TUNER_CACHE", folder.join("cache"));
    ended(tuner.args(line.split(' ')))
}

/// Checks the kernel that takes what is declared, behind this text.
fn checked_behind(before: &str) -> Ended {
    checked(
        &format!("{before}\n{}", kernel("const float* x, float* y")),
        &[IN, OUT],
    )
}

/// The input `x` of that type.
fn input(declared: &str) -> String {
    format!("name: x, type: {declared}, role: input, shape: [N]")
}

/// A line of the template, counted from the text behind [`FRONT`].
fn line(number: usize) -> String {
    format!(
        "templates/kernel.cu:{}:",
        FRONT.lines().count() + 1 + number
    )
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
        let said = checked(&text, &[&input(declared), OUT]);
        let yaml = "search_spaces/k.yaml:1";
        let parts = [yaml, &line(2), "error: ", "help: ", "^^", hint];
        said.says_of(&(declared, takes), 2, &parts);
    }
}

#[test]
fn a_buffer_of_any_type_is_taken_as_elements_of_another() {
    let pair = "struct Pair { int n; double x; };";
    for (declared, takes) in [
        ("f32", "const int* x"),
        ("f16", "const double2* x"),
        ("{ a: f32, b: f32 }", "const float* x"),
        ("{ a: f32, b: f32 }", "const Pair* x"),
    ] {
        let text = format!("{pair}\n{}", kernel(&format!("{takes}, float* y")));
        let any = format!("{}, any_type: true", input(declared));
        let said = checked(&text, &[&any, OUT]);
        assert_eq!(said.code, 0, "{declared} {takes}: {}", said.stderr);
        let strict = format!("{}, any_type: false", input(declared));
        let said = checked(&text, &[&strict, OUT]);
        assert_eq!(said.code, 2, "{declared} {takes}: {}", said.stderr);
    }
    let any = format!("{}, any_type: true", input("f32"));
    let said = checked(&kernel("int x, float* y"), &[&any, OUT]);
    said.says_of(&"by value", 2, &["`x` is a buffer of `f32`"]);
    let scalar = "name: x, type: i32, role: scalar, value: 1, any_type: true";
    let said = checked(&kernel("int x, float* y"), &[scalar, OUT]);
    said.says_of(&"scalar", 2, &["the scalar `x` has `any_type`", "^^^^"]);
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
        let said = checked(&kernel(takes), arguments);
        let yaml = format!("search_spaces/k.yaml:{}:14: error: ", 14 + arguments.len());
        said.says_of(&takes, 2, &[&yaml, &format!("({}", line(0)), hint]);
    }
}

/// The compiler, which keeps what it compiles in that folder, or where the user's is kept.
fn compiler(cache: Option<&Path>) -> Compiler {
    let mut settings = CompilerSettings::with_jobs(1);
    settings.isolation = Isolation::Workers {
        program: env!("CARGO_BIN_EXE_tuner").into(),
    };
    if let Some(folder) = cache {
        settings.cache = Some(folder.to_owned());
    }
    Compiler::new(settings).expect("NVRTC is there")
}

#[test]
fn the_compiler_is_asked_once_for_all_candidates_and_problems() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = root().join("search_spaces/gemm_f32.yaml");
    let compiler = compiler(Some(dir.path()));
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
        let subject = &kernel;
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
        let said = checked(&text, &[IN, OUT, &scalar]);
        let parts = ["search_spaces/k.yaml:15:", &line(0), hint];
        said.says_of(&(declared, takes), 2, &parts);
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
        let said = checked(&text, &[&input(declared), OUT]);
        said.says_of(&(declared, takes), 0, &[]);
        let silent = !said.stderr.contains("is declared");
        assert!(silent, "{declared} for {takes}: {}", said.stderr);
    }
}

#[test]
fn what_cannot_be_compared_passes_with_one_warning() {
    let loose: [(&str, &str, &str); 8] = [
        ("f32", "const void* x", "`void*` has no element type"),
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
        let said = checked(&text, &[&input(declared), OUT]);
        let place = "warning: search_spaces/k.yaml:13:22: `x` is declared";
        said.says_of(&(declared, takes), 0, &[place, why]);
        let kernels = said.stderr.matches("of the kernel `k`").count();
        assert_eq!(kernels, 1, "{}", said.stderr);
    }
}

#[test]
fn an_output_that_no_kernel_can_write_is_refused() {
    let said = checked(&kernel("const float* x, const float* y"), &[IN, OUT]);
    let yaml = "search_spaces/k.yaml:14:33";
    said.says(2, &["nothing can write it", yaml, &line(0)]);
}

#[test]
fn a_type_that_hangs_on_a_parameter_is_looked_at_with_each_of_its_values() {
    let text = "#if WIDE\nusing element = double;\n#else\nusing element = float;\n#endif\n";
    let text = format!("{text}{}", kernel("const element* x, float* y"));
    checked(&text, &[IN, OUT]).says(2, &["that is `double const*`"]);
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
        let said = checked(text, &[IN, OUT]);
        said.says_of(&text, 2, &[]);
        let named = |line: String| said.stderr.contains(line.trim_end_matches(':'));
        let found = named(line(0)) || named(line(1));
        assert!(found, "{text}: {}", said.stderr);
    }
}

#[test]
fn the_reference_kernel_is_compared_as_well() {
    let dir = project(&kernel("const float* x, float* y"), &[IN, OUT]);
    crate::program::replace(
        &dir.path().join("search_spaces/k.yaml"),
        "reference: { source: ../templates/kernel.cu, entry: k,",
        "reference: { source: ../templates/reference.cu, entry: naive,",
    );
    let naive = "extern \"C\" __global__ void naive(const float* x, double* y) {}\n";
    write(dir.path(), "templates/reference.cu", naive);
    for check in [
        "check search_spaces/k.yaml --arch sm_90",
        "check search_spaces/k.yaml",
    ] {
        let parts = [
            "search_spaces/k.yaml:14:",
            "templates/reference.cu:1:",
            "reference kernel `naive`",
        ];
        ran(dir.path(), check).says(2, &parts);
    }
}

#[test]
fn every_command_that_builds_candidates_refuses_a_wrong_declaration() {
    let dir = project(&kernel("const double* x, float* y"), &[IN, OUT]);
    for (command, more) in [
        ("check", ""),
        ("run", " --device vgpu:h100 --evals 2 --db t.db"),
        ("predict", ""),
        ("gate", " --device vgpu:h100 --db t.db"),
        ("ablate", ""),
    ] {
        let said = ran(dir.path(), &format!("{command} search_spaces/k.yaml{more}"));
        let yaml = "search_spaces/k.yaml:13:22: error: ";
        said.says_of(&command, 2, &[yaml, "templates/kernel.cu:"]);
    }
}

#[test]
fn all_shipped_spaces_declare_what_their_kernels_take() {
    let spaces = std::fs::read_dir(root().join("search_spaces")).expect("the folder is there");
    let compiler = compiler(None);
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
        let subject = &kernel;
        let problems = [(&**problem, &space)];
        let warnings =
            tuner_kernel::declarations::check(subject, &problems, &limits, "sm_90", &compiler);
        let warnings = warnings.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(warnings.is_empty(), "{}: {warnings:?}", path.display());
        count += 1;
    }
    assert!(count > 15, "{count} spaces");
}
