//! Launchers of kernels whose arguments and sizes are named like the launcher's own variables, and whose compiler
//! options are the search space's.

use super::launcher::nvcc;
use crate::program::{ended, folder, tuner};
use std::path::Path;
use std::process::Command;

/// A kernel of two buffers and two sizes.
fn space(kernel: &str, buffers: [&str; 2], sizes: [&str; 2], more: &str) -> String {
    let ([x, y], [n, m]) = (buffers, sizes);
    format!(
        r#"version: 1
kernel: {kernel}
source: kernel.cu
{more}
problems: {{ p: {{ {n}: 640, {m}: 2 }} }}
sizes: argument
parameters: {{ BLOCK: {{ values: [64, 128] }} }}
arguments:
  - {{ name: {x}, type: f32, role: input, shape: [{n}, {m}] }}
  - {{ name: {y}, type: f32, role: output, shape: [{n}, {m}] }}
  - {{ name: part, type: f32, role: scratch, shape: [{n}] }}
  - {{ name: {n}, type: i16, role: scalar }}
  - {{ name: {m}, type: i32, role: scalar }}
launches: [{{ entry: k, grid: ["ceil_div({n} * {m}, BLOCK)"], block: [BLOCK] }}]
reference: {{ source: kernel.cu, entry: k, grid: ["ceil_div({n} * {m}, 64)"], block: [64] }}
"#
    )
}

const KERNEL: &str = "#ifndef BLOCK\n#define BLOCK 64\n#endif\n\
    extern \"C\" __global__ void k(const float* x, float* y, float*, short n, int m) {\n\
    \x20   int i = blockIdx.x * BLOCK + threadIdx.x;\n    if (i < n * m) y[i] = x[i] + 1.f;\n}\n";

/// Tunes the kernel a little and exports its launcher.
fn launcher(at: &Path, space: &str) -> String {
    std::fs::write(at.join("space.yaml"), space).unwrap();
    std::fs::write(at.join("kernel.cu"), KERNEL).unwrap();
    let run = "run space.yaml --evals 1 --device vgpu:a100 --db t.db";
    ended(tuner(at).args(run.split(' '))).says(0, &[]);
    let export = "export space.yaml --launcher cpp --allow-predicted --allow-uncompared --db t.db -o launch.h";
    ended(tuner(at).args(export.split(' '))).says(0, &[]);
    std::fs::read_to_string(at.join("launch.h")).unwrap()
}

/// Compiles the launcher for both interfaces of CUDA.
fn compile(at: &Path, upper: &str) {
    let program = format!("#define {upper}_IMPLEMENTATION\n#include \"launch.h\"\n");
    std::fs::write(at.join("main.cpp"), program).unwrap();
    for interface in ["-DRUNTIME_API", &format!("-D{upper}_DRIVER_API")] {
        let mut compiler = Command::new("c++");
        compiler
            .args(
                "-std=c++17 -fsyntax-only -Wall -Wextra -Wpedantic -Werror main.cpp -isystem"
                    .split(' '),
            )
            .arg(nvcc().with_file_name("").join("../include"))
            .arg(interface)
            .current_dir(at);
        ended(&mut compiler).says(0, &[]);
    }
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn no_name_of_an_argument_or_a_size_meets_one_of_the_launcher() {
    let names = [
        (["note", "source"], ["status", "stream"]),
        (["images", "fine"], ["KERNELS", "MESSAGE"]),
        (["launch", "loaded"], ["text", "bytes"]),
        (["pointer", "n_value"], ["N", "how"]),
        (["made_k", "values_0"], ["entry", "known"]),
        (["extents_k", "defines_0"], ["int16_t", "size_t"]),
        (["std", "code"], ["current", "chosen"]),
    ];
    for (number, (buffers, sizes)) in names.into_iter().enumerate() {
        let at = folder(&[]);
        let kernel = format!("names{number}");
        launcher(at.path(), &space(&kernel, buffers, sizes, ""));
        compile(at.path(), &kernel.to_ascii_uppercase());
    }
}

#[test]
fn a_launcher_compiles_as_the_search_space_says() {
    let at = folder(&[]);
    let plain = launcher(at.path(), &space("plain", ["x", "y"], ["N", "M"], ""));
    assert!(plain.contains("options_0[] = {\"--std=c++17\", nullptr}"));
    assert!(plain.contains("source = {\"\", 0, \"kernel.cu\""));
    // A size is passed as 16 bits: more of them would be another launch.
    assert!(plain.contains("n <= 32767"), "{plain}");

    let at = folder(&[]);
    let more = "compile: { options: [-std=c++20, \"-DWIDE={BLOCK}\"], arch_features: a }";
    let own = launcher(at.path(), &space("own", ["x", "y"], ["N", "M"], more));
    assert!(
        own.contains("options_0[] = {\"-std=c++20\", \"-DWIDE="),
        "{own}"
    );
    assert!(!own.contains("--std=c++17\""));
    assert!(own.contains("source = {\"a\", 90, \"kernel.cu\""));
}
