//! Templates, spaces and problems of other tools as nobody had them in mind: what `check` and `import`
//! make of each.

use crate::program::{folder, json, replace, run};
use crate::unseen::{has, verdicts};
use std::path::Path;

/// An elementwise kernel with a reference.
const SPACE: &str = "\
version: 1
kernel: scale
source: k.cu
problems: { p: { N: 1000 } }
parameters:
  BLOCK: { values: [64, 128], default: 128 }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: k, grid: [\"ceil_div(N, BLOCK)\", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: ref.cu, entry: r, grid: [\"ceil_div(N, 64)\", 1, 1], block: [64, 1, 1] }
";

const REFERENCE: &str = "\
extern \"C\" __global__ void r(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < N) y[i] = 2.0f * x[i];
}
";

fn project(kernel: &str) -> tempfile::TempDir {
    folder(&[
        ("space.yaml", SPACE),
        ("ref.cu", REFERENCE),
        ("k.cu", kernel),
    ])
}

/// The only row of a check of the default configuration.
fn row(folder: &Path) -> serde_json::Value {
    json(folder, "check space.yaml --config default").1[0].clone()
}

#[test]
fn an_error_of_the_assembler_names_the_source_and_stands_before_warnings() {
    let kernel = "\
extern \"C\" __global__ void k(const float* x, float* y) {
  int i = blockIdx.x * BLOCK + threadIdx.x, spare = 0;
  float r = 0;
  asm volatile(\"addd.f32 %0, %1, %1;\" : \"=f\"(r) : \"f\"(x[i]));
  if (i < N) y[i] = r;
}
";
    let dir = project(kernel);
    let told = row(dir.path());
    assert_eq!(told["verdict"], "compile_failed");
    let detail = told["detail"].as_str().unwrap_or("");
    assert!(
        detail.starts_with("k.cu:4: error: Not a name of any known instruction"),
        "{detail}"
    );
    replace(
        &dir.path().join("k.cu"),
        "addd.f32 %0, %1, %1;",
        "tcgen05.fence::before_thread_sync;",
    );
    replace(&dir.path().join("k.cu"), " : \"=f\"(r) : \"f\"(x[i])", "");
    let told = row(dir.path());
    let detail = told["detail"].as_str().unwrap_or("");
    assert!(
        detail.starts_with("k.cu:4: error: Instruction 'tcgen05.fence"),
        "{detail}"
    );
    has(
        detail,
        &["`tcgen05` exists on sm_100a", "variable \"spare\""],
    );
}

#[test]
fn names_of_a_library_may_be_sizes_and_parameters_too() {
    let kernel = "\
#include <cub/block/block_reduce.cuh>
extern \"C\" __global__ void k(const float* x, float* y) {
  using Reduce = cub::BlockReduce<float, BLOCK>;
  __shared__ typename Reduce::TempStorage memory;
  int i = blockIdx.x * BLOCK + threadIdx.x;
  float sum = Reduce(memory).Sum(i < N ? x[i] : 0.0f);
  if (i < N) y[i] = 2.0f * x[i] + 0.0f * sum;
}
";
    assert_eq!(row(project(kernel).path())["verdict"], "ok");
}

#[test]
fn a_header_may_be_named_by_a_parameter_and_files_may_begin_with_a_mark() {
    let kernel = "\u{feff}#include HEADER\nextern \"C\" __global__ void k(const float* x, float* y) {\n\
         int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < N) y[i] = FACTOR * x[i];\n}\n";
    let dir = project(kernel);
    for (name, factor) in [("a.h", "2.0f"), ("b.h", "1.0f + 1.0f")] {
        let text = format!("constexpr float FACTOR = {factor};\n");
        std::fs::write(dir.path().join(name), text).expect("written");
    }
    replace(
        &dir.path().join("space.yaml"),
        "parameters:\n",
        "parameters:\n  HEADER: { values: ['\"a.h\"', '\"b.h\"'] }\n",
    );
    assert_eq!(verdicts(dir.path(), "check space.yaml"), ["ok"]);
}

#[test]
fn a_hazard_names_a_path_that_is_not_ascii_as_it_is() {
    let kernel = "\
extern \"C\" __global__ void k(const float* x, float* y) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < N) y[i + 5000] = 2.0f * x[i];
}
";
    let dir = tempfile::tempdir().expect("a folder");
    let inner = dir.path().join("größe");
    std::fs::create_dir(&inner).expect("made");
    for (name, text) in [
        ("space.yaml", SPACE),
        ("ref.cu", REFERENCE),
        ("k.cu", kernel),
    ] {
        std::fs::write(inner.join(name), text).expect("written");
    }
    let (_, rows) = json(dir.path(), "check größe/space.yaml --config default");
    assert_eq!(rows[0]["hazards"][0]["file"], "größe/k.cu");
}

#[test]
fn unsigned_scalars_of_64_bits_are_passed_exactly() {
    let kernel = "\
extern \"C\" __global__ void k(const float* x, float* y, unsigned long long e) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < N) y[i] = e == EXPECTED ? 2.0f * x[i] : 0.0f;
}
";
    for (value, expected) in [
        ("0x9E3779B97F4A7C15", "0x9E3779B97F4A7C15ull"),
        ("18446744073709551615", "~0ull"),
        ("\"2 ** 64 - 1\"", "~0ull"),
        ("\"2 ** 63\"", "(1ull << 63)"),
    ] {
        let dir = project(&kernel.replace("EXPECTED", expected));
        let text = REFERENCE.replace("float* y)", "float* y, unsigned long long)");
        std::fs::write(dir.path().join("ref.cu"), text).expect("written");
        let argument =
            format!("launches:\n  - {{ name: e, type: u64, role: scalar, value: {value} }}\n");
        let text = SPACE.replace("launches:\n", "");
        let (head, launch) = text.split_once("  - { entry").expect("a launch");
        let argument = argument.replace("launches:\n", "");
        let text = format!("{head}{argument}launches:\n  - {{ entry{launch}");
        std::fs::write(dir.path().join("space.yaml"), text).expect("written");
        assert_eq!(row(dir.path())["verdict"], "ok", "{value}");
    }
}

/// A T1 problem whose argument `acc`, compiler options and conditions are these.
fn problem(acc: &str, options: &str, conditions: &str) -> String {
    format!(
        r#"{{ "ConfigurationSpace": {{ "TuningParameters": [ {{ "Name": "BLOCK", "Type": "int", "Values": "[64, 128]" }} ]{conditions} }},
  "KernelSpecification": {{ "Language": "CUDA", "KernelName": "add_to", {options} "KernelFile": "kernel.cu", "GlobalSizeType": "CUDA",
    "GlobalSize": {{ "X": "4096 // BLOCK", "Y": "1", "Z": "1" }}, "LocalSize": {{ "X": "BLOCK", "Y": "1", "Z": "1" }},
    "Arguments": [
      {{ "Name": "a", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "FillType": "Random", "Size": "4096 + max(BLOCK) - min( BLOCK )", "FillValue": 1.0 }},
      {{ "Name": "acc", "Type": "float", "MemoryType": "Vector", {acc} "Size": 4096 }},
      {{ "Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillType": "Constant", "FillValue": 4096 }} ] }} }}"#
    )
}

#[test]
fn a_t1_problem_becomes_a_space_that_checks() {
    let kernel = "extern \"C\" __global__ void add_to(const float* a, float* acc, int n) {\n  \
         int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) acc[i] += a[i];\n}\n";
    let acc = r#""AccessType": "WriteOnly", "FillType": "Constant", "FillValue": 0.0,"#;
    let conditions =
        r#", "Conditions": [ { "Parameters": ["BLOCK"], "Expression": "BLOCK >= 128" } ]"#;
    let text = problem(acc, r#""CompilerOptions": ["", "-lineinfo"],"#, conditions);
    let dir = folder(&[("kernel.cu", kernel), ("problem.json", &text)]);
    run(dir.path(), "import problem.json -o space.yaml").says(0, &[]);
    let space = std::fs::read_to_string(dir.path().join("space.yaml")).expect("the space");
    has(
        &space,
        &[
            "default: 128",
            "4096 + 128 - 64",
            "role: inout, shape: [\"4096\"], fill: { constant: 0.0 }",
            "options: [\"-lineinfo\"]",
        ],
    );
    assert_eq!(row(dir.path())["verdict"], "unchecked");
    let (_, rows) = json(dir.path(), "check space.yaml --config BLOCK=64");
    assert_eq!(rows[0]["verdict"], "rejected");
    has(&rows[0].to_string(), &["BLOCK >= 128"]);
}
