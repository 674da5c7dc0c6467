//! Files from the text to the template and the search space, with the real compiler.

use super::{AdoptError, Adopted, Settings, adopt, kernels};
use std::path::{Path, PathBuf};
use tuner_kernel::compile::{Compiler, CompilerSettings, Isolation};

/// A folder with a CUDA file of this text and further files.
fn project(text: &str, others: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in std::iter::once(&("kernel.cu", text)).chain(others) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn adopted_in(folder: &Path, include: &[PathBuf]) -> Result<Adopted, AdoptError> {
    let compiler = Compiler::new(CompilerSettings {
        isolation: Isolation::InProcess,
        cache: None,
        ..CompilerSettings::with_jobs(1)
    });
    let settings = Settings {
        file: &folder.join("kernel.cu"),
        include,
        folder: &folder.join("adopted"),
        arch: "sm_90",
        entry: None,
        define: &[],
        captured: &[],
        launch: None,
        sizes: &[],
        standard: None,
    };
    let name = kernels(&settings)?.remove(0);
    adopt(&settings, &name, &compiler.expect("NVRTC is present"))
}

fn adopted(text: &str) -> Adopted {
    let folder = project(text, &[]);
    match adopted_in(folder.path(), &[]) {
        Ok(adopted) => adopted,
        Err(error) => panic!("{error}"),
    }
}

fn refused(text: &str) -> String {
    let folder = project(text, &[]);
    adopted_in(folder.path(), &[]).unwrap_err().to_string()
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

const BODY: &str = "{ int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] *= 2; }";
const MAIN: &str =
    "int main() { float *y; cudaMalloc(&y, 4096 * 4); scale<<<16, 256>>>(y, 4096); return 0; }\n";

/// A program whose kernel has an assertion.
fn program(before: &str, assertion: &str) -> String {
    let body = BODY.replacen('{', &format!("{{ static_assert({assertion});"), 1);
    format!("{before}\n__global__ void scale(float *y, int n) {body}\n{MAIN}")
}

#[test]
fn attributes_after_the_braces_of_a_type_count() {
    for (ty, size) in [
        ("struct T { char c; float f; } __attribute__((packed));", 5),
        (
            "typedef struct { char c; float f; } __attribute__((packed)) T;",
            5,
        ),
        (
            "#define PACKED __attribute__((packed))\nstruct T { char c; float f; } PACKED;",
            5,
        ),
        ("struct T { float a; } __align__(16);", 16),
        ("typedef struct { float a; } __align__(16) T;", 16),
        ("struct T { float a; } __attribute__((aligned(16)));", 16),
    ] {
        adopted(&program(ty, &format!("sizeof(T) == {size}")));
    }
}

#[test]
fn packed_structs_are_bytes() {
    let pack = "#pragma pack(push, 1)\nstruct T { char c; float f; };\n#pragma pack(pop)\n";
    let text = format!(
        "{pack}__global__ void scale(T *y, int n) {{ y[threadIdx.x].c = n; }}\n{}",
        MAIN.replace("float *y", "T *y")
            .replace("4096 * 4", "4096 * sizeof(T)")
    );
    has(
        &adopted(&text).space,
        &["type: { c: i8, _rest: \"u8[4]\" }", "shape: [\"4096\"]"],
    );
}

#[test]
fn pragmas_stay_at_their_place() {
    for pack in [
        ("#pragma pack(push, 1)", "#pragma pack(pop)"),
        ("_Pragma(\"pack(push, 1)\")", "_Pragma(\"pack(pop)\")"),
        (
            "#define BEGIN _Pragma(\"pack(push, 1)\")\nBEGIN",
            "#pragma pack(pop)",
        ),
        (
            "#ifndef OTHER\n#pragma pack(push, 1)\n#endif",
            "#pragma pack(pop)",
        ),
    ] {
        let types = format!(
            "{}\nstruct T {{ char c; float f; }};\n{}\nstruct U {{ char c; float f; }};",
            pack.0, pack.1
        );
        adopted(&program(&types, "sizeof(T) == 5 && sizeof(U) == 8"));
    }
}

#[test]
fn pushed_macros_come_back() {
    let pushed = "#pragma push_macro(\"N\")\n#undef N\n#define N 8\nstruct T { int x[N]; };\n#pragma pop_macro(\"N\")";
    adopted(&program(
        &format!("#define N 4\n{pushed}"),
        "sizeof(T) == 32 && N == 4",
    ));
    let unknown = format!("#ifndef OTHER\n#define N 4\n#endif\n{pushed}");
    let notes = adopted(&program(&unknown, "sizeof(T) == 32"))
        .notes
        .join("\n");
    has(
        &notes,
        &["kernel.cu:8: NVRTC ignores `#pragma pop_macro(\"N\")`"],
    );
}

#[test]
fn conditions_before_a_kernel_stay_with_it() {
    let kernel = format!("__global__ void scale(float *y, int n) {BODY}\n{MAIN}");
    for head in [
        "#define BOUNDS 1\n#ifdef BOUNDS\n__launch_bounds__(256)\n#endif\n",
        "#ifndef NO_BOUNDS\n__launch_bounds__(256, 8)\n#endif\n",
        "#if VEC > 1\n__global__ __launch_bounds__(128)\n#else\n__launch_bounds__(256)\n#endif\n",
    ] {
        let made = adopted(&format!("void host(int n) {{ }}\n{head}{kernel}"));
        let group = &head[head.find("#if").unwrap()..];
        has(&made.template, &[&format!("{group}__global__ void scale")]);
    }
    let heads = "#if 1\n__global__ void __launch_bounds__(256) scale(float *y, int n)\n#else\n\
                 __global__ void scale(float *y, int n)\n#endif\n";
    has(
        &adopted(&format!("{heads}{BODY}\n{MAIN}")).template,
        &[heads],
    );
}

#[test]
fn a_template_head_under_a_condition_is_one() {
    let head = "#ifndef PLAIN\ntemplate <int M>\n#endif\n";
    let text = format!(
        "{head}__global__ void scale(float *y, int n) {BODY}\n{}",
        MAIN.replace("scale<<<", "scale<3><<<")
    );
    let made = adopted(&text);
    has(&made.template, &[head]);
    has(&made.space, &["entry: \"scale<3>\""]);
}

#[test]
fn guesses_that_addresses_depend_on_are_marked() {
    let text = "__global__ void scatter(float *y, const float *x, const int *at, int n, float gain) \
                { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[at[i]] = gain * x[i]; }\n\
                void run(float *y, float *x, int *at, int n, float gain) { scatter<<<(n + 255) / 256, 256>>>(y, x, at, n, gain); }\n";
    let space = adopted(text).space;
    has(
        &space,
        &[
            "name: at, type: i32, role: input, shape: [\"n\"], fill: arange, guessed: true, guessed_extent: true }",
            "name: x, type: f32, role: input, shape: [\"n\"], guessed_extent: true }",
            "name: n, type: i32, role: scalar }",
        ],
    );
    assert_eq!(space.matches(" guessed: true").count(), 1, "{space}");
}

#[test]
fn contents_that_no_address_depends_on_are_not_marked() {
    let text = "__global__ void sums(const int *x, const int *first, int *y, int *count, int n) { int r = threadIdx.x; int sum = 0;\n\
        for (int k = first[r]; k < first[r + 1]; k++) sum += x[k];\n  y[r] += sum; if (sum) count[0] += 1; }\n\
        void run(int *x, int *first, int *y, int *count, int n) { sums<<<1, 256>>>(x, first, y, count, n); }\n";
    let space = adopted(text).space;
    for (name, marked) in [
        ("x", false),
        ("first", true),
        ("y", false),
        ("count", false),
    ] {
        let line = space
            .lines()
            .find(|line| line.contains(&format!("name: {name},")))
            .unwrap();
        assert_eq!(line.contains(" guessed: true"), marked, "{line}");
    }
}

#[test]
fn a_pitch_is_that_of_the_allocation() {
    let text = "__global__ void scale(float *y, size_t pitch, int w, int h) \
        { int x = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y; if (x < w && r < h) ((float*)((char*)y + r * pitch))[x] *= 2; }\n\
        int main() { float *y; size_t pitch; int w = 100, h = 50; cudaMallocPitch(&y, &pitch, w * sizeof(float), h); dim3 b(16, 16); \
        dim3 g((w + b.x - 1) / b.x, (h + b.y - 1) / b.y); scale<<<g, b>>>(y, pitch, w, h); }\n";
    let space = adopted(text).space;
    has(
        &space,
        &[
            "value: \"ceil_div(w * 4, 512) * 512\"",
            "ceil_div(w * 4, 512) * 128 * h",
        ],
    );
    assert!(!space.contains("guessed: true"), "{space}");
}

#[test]
fn includes_in_a_body_are_found() {
    let text = format!(
        "__global__ void scale(float *y, int n) {{ int i = threadIdx.x;\n#include \"body.inc\"\n}}\n{MAIN}"
    );
    let body = ("body.inc", "if (i < n) y[i] *= 3;\n");
    let folder = project(&text, &[body]);
    let made = adopted_in(folder.path(), &[]).unwrap();
    has(&made.space, &["include: [\"..\"]"]);
    // A relative folder counts from the working folder, not from that of the compiler.
    let inner = tempfile::tempdir_in(".").unwrap();
    std::fs::write(inner.path().join("other.inc"), body.1).unwrap();
    let folder = project(&text.replace("body.inc", "other.inc"), &[]);
    let name = PathBuf::from(inner.path().file_name().unwrap());
    let made = adopted_in(folder.path(), &[name]).unwrap();
    has(&made.space, &["include: [\""]);
}

#[test]
fn members_of_a_class_template_launch_with_its_instance() {
    let text = "template<typename TF> class Field { public: void exec(); TF *data; int n; };\n\
        template<typename TF> __global__ void scale(TF *y, TF b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += b; }\n\
        template<typename TF> void Field<TF>::exec() { scale<TF><<<(n + 255) / 256, 256>>>(data, TF(2), n); }\n\
        #ifdef SINGLE\ntemplate class Field<float>;\n#else\ntemplate class Field<double>;\n#endif\n";
    has(
        &adopted(text).space,
        &["entry: \"scale<double>\"", "block: [256, 1, 1]"],
    );
}

#[test]
fn kernels_that_cannot_be_read_are_named() {
    let made = "#define DEFINE(NAME, OP) __global__ void NAME(float *y, int n) { y[n] = y[n] OP 2; }\nDEFINE(scale, *)\n";
    has(
        &refused(made),
        &["the macro `DEFINE` at", "kernel.cu:1 defines kernels"],
    );
    let text = "__global__ void\n#if A\nf(float* y, int n) {\n#else\n";
    has(
        &refused(text),
        &["the `__global__` at", "kernel.cu:1 begins no function"],
    );
}

#[test]
fn macros_that_end_before_a_blank_line_swallow_nothing() {
    for before in ["#define SET(x) \\\n\n", "#define N \\\n\n"] {
        adopted(&program(before, "true"));
    }
}

#[test]
fn fields_that_a_search_space_takes_as_padding_have_no_value() {
    let text = "struct Params { float *y; const float *x; int n; int _dummy; float gain; };\n\
        __global__ void scale(const Params p) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < p.n) p.y[i] = p.gain * p.x[i]; }\n\
        void run(Params p) { scale<<<(p.n + 255) / 256, 256>>>(p); }\n";
    let space = adopted(text).space;
    has(
        &space,
        &["n: i32, _dummy: i32, gain: f32 }", "n: p_n, gain: 1 }"],
    );
}

#[test]
fn an_explicit_specialisation_is_its_own_entry() {
    let text = format!(
        "template <typename T> __global__ void scale(T *y, int n);\n\
        template <> __global__ void scale<float>(float *y, int n) {BODY}\n{}",
        MAIN.replace("scale<<<", "scale<float><<<")
    );
    has(&adopted(&text).space, &["entry: \"scale<float>\""]);
}

#[test]
fn aliases_of_pointers_are_buffers() {
    for alias in [
        "template <class T> using ptr = T *;",
        "typedef float *values;",
    ] {
        let ty = if alias.contains("ptr") {
            "ptr<float>"
        } else {
            "values"
        };
        let text = format!("{alias}\n__global__ void scale({ty} y, int n) {BODY}\n{MAIN}");
        has(
            &adopted(&text).space,
            &["name: y, type: f32, role: inout, shape: [\"4096\"]"],
        );
    }
}

#[test]
fn names_of_inline_namespaces_stay_optional() {
    let text = "namespace a { inline namespace v1 { struct S { static constexpr int k = 4; }; } }";
    adopted(&program(text, "a::S::k == 4"));
}

#[test]
fn macros_that_open_namespaces_swallow_nothing() {
    let text = format!(
        "#define BEGIN_LIB namespace lib {{\n#define END_LIB }}\nBEGIN_LIB\nstruct Pair {{ float a, b; }};\n\
        __global__ void scale(float *y, int n) {{ Pair p{{y[0], 0}}; y[n] = p.a; }}\n{MAIN}END_LIB\n"
    );
    has(&adopted(&text).space, &["entry: \"lib::scale\""]);
}

#[test]
fn headers_of_the_host_that_kernels_can_do_without_are_there() {
    let text = program(
        "#include <new>\n#include <algorithm>\nstruct V { float d[4]; typedef std::reverse_iterator<float*> rev; };",
        "sizeof(V) == 16",
    );
    has(&adopted(&text).template, &["#include <iterator>"]);
}

#[test]
fn macros_that_the_build_defines_are_asked_for_by_name() {
    let text = "#if WIDTH == 2\n#define VEC float2\n#elif WIDTH == 4\n#define VEC float4\n#endif\n\
        __global__ void scale(VEC *y, const VEC *x, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i]; }\n";
    let said = refused(text);
    has(&said, &["--define WIDTH=VALUE"]);
    assert!(
        !said.contains("--define y") && !said.contains("--define n"),
        "{said}"
    );
}

#[test]
fn macros_that_only_choose_branches_are_noted() {
    let text = "#ifndef FACTOR\n#define FACTOR 2\n#endif\n__global__ void scale(float *y, int n) {\n\
        #if defined(FAST) && !defined(__HIP__)\n y[n] = __expf(n);\n#else\n y[n] = FACTOR;\n#endif\n}\n";
    let notes = adopted(&format!("{text}{MAIN}")).notes.join("\n");
    has(&notes, &["nothing defines FAST, which choose"]);
}

#[test]
fn a_launch_of_another_file_is_named() {
    let kernel = "__global__ void scale(float *y, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] *= 2; }\n";
    let host = format!("#include \"kernel.cu\"\n{MAIN}");
    let folder = project(kernel, &[("host.cu", &host)]);
    let made = adopted_in(folder.path(), &[]).unwrap();
    has(&made.space, &["# as ", "host.cu launches it"]);
    has(
        &made.notes.join("\n"),
        &["the launch is that of", "host.cu"],
    );
}

#[test]
fn types_of_a_template_come_from_the_launch_and_the_use() {
    let index = "template <typename T, typename Index> __global__ void gather(T *y, const T *x, const Index *at, int n) \
        { int i = threadIdx.x; if (i < n) y[i] = x[at[i]]; }\n";
    let made = adopted(index);
    has(&made.space, &["entry: \"gather<float, int>\""]);
    has(
        &made.notes.join("\n"),
        &[
            "`T` of the template is taken as float",
            "`Index` of the template is taken as int",
        ],
    );
    let op = "struct Op { float k; __device__ float operator()(float x) const { return x * k; } };\n\
        template <class F> __global__ void scale(float *y, int n, F f) { int i = threadIdx.x; if (i < n) y[i] = f(y[i]); }\n";
    for given in ["Op{3.0f}", "Op(3.0f)"] {
        let text = format!(
            "{op}{}",
            MAIN.replace("4096);", &format!("4096, {given});"))
        );
        has(&adopted(&text).space, &["entry: \"scale<Op>\""]);
    }
}

#[test]
fn a_guessed_type_is_named_if_it_does_not_compile() {
    let text = "template <typename T> __global__ void scale(T y, int n) { y->value[n] = 1; }\n";
    has(&refused(text), &["T of the template was guessed"]);
}

#[test]
fn constrained_parameters_are_types() {
    let text = "template <class T> concept Number = sizeof(T) >= 4;\n\
        template <Number T> __global__ void scale(T *y, int n) { int i = threadIdx.x; if (i < n) y[i] *= 2; }\n";
    let folder = project(text, &[]);
    let unit = super::Unit::read(&folder.path().join("kernel.cu"), &[]).unwrap();
    let (source, node) = unit
        .items
        .iter()
        .rev()
        .find_map(|item| super::unit::node_of(&unit, item))
        .unwrap();
    let all = super::kernel::template_parameters(source, node);
    assert!(
        all.iter().all(|each| each.is_type) && all.len() == 1,
        "{all:?}"
    );
}

#[test]
fn the_overload_of_the_launch_is_adopted_alone() {
    for ty in ["float", "double"] {
        let all = ["double", "float", "int"]
            .map(|ty| format!("__global__ void scale({ty} *y, int n) {BODY}\n"));
        let text = format!(
            "{}{}",
            all.concat(),
            MAIN.replace("float *y", &format!("{ty} *y"))
        );
        let made = adopted(&text);
        has(&made.template, &[&format!("void scale({ty} *y")]);
        assert_eq!(
            made.template.matches("void scale(").count(),
            1,
            "{}",
            made.template
        );
    }
}

#[test]
fn a_kernel_that_launches_kernels_is_refused_by_this_reason() {
    let text = format!(
        "__global__ void scale(float *y, int n);\n\
         __global__ void both(float *y, int n) {{ scale<<<1, 64>>>(y, n); }}\n\
         __global__ void scale(float *y, int n) {BODY}\n{MAIN}"
    );
    let error = refused(&text);
    assert!(error.contains("it launches kernels"), "{error}");
}
