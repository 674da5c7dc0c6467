//! `tuner adopt`: CUDA files as they lie in projects, through to the verdict.

use crate::program::{ended, json, root, tuner};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    root().join("tests/data/adopt").join(name)
}

/// Adopts a file into `adopted` of a folder; what was said.
fn adopt(folder: &Path, file: &str, more: &[&str], code: i32) -> String {
    let said = ended(tuner(folder).arg("adopt").arg(data(file)).args(more));
    said.says(code, &[]);
    said.stderr
}

fn space(folder: &Path, kernel: &str) -> String {
    std::fs::read_to_string(folder.join(format!("adopted/{kernel}.yaml"))).expect("the space")
}

/// The verdict of an adopted kernel, its detail and its hazards.
fn verdict(folder: &Path, kernel: &str) -> (String, String) {
    let line = format!("check adopted/{kernel}.yaml --problem small");
    let (_, rows) = json(folder, &line);
    let text = |key: &str| rows[0][key].as_str().unwrap_or("").to_owned();
    (text("verdict"), text("detail"))
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn a_whole_program_is_adopted_with_its_launch_and_its_buffers() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "scale.cu", &[], 0);
    has(
        &space(dir.path(), "scale"),
        &[
            "file: { n: 100000 }    # as the file launches it",
            "THREADS: { values: [64, 128, 256, 512, 1024], default: 256",
            "{ name: x, type: f32, role: input, shape: [\"n\"] }\n",
            "{ name: y, type: f32, role: output, shape: [\"n\"] }\n",
            "{ name: n, type: i32, role: scalar }",
            "{ name: factor, type: f32, role: scalar, value: \"3\" }\n",
            "grid: [\"ceil_div(n, THREADS)\", 1, 1], block: [\"THREADS\", 1, 1]",
        ],
    );
    assert_eq!(verdict(dir.path(), "scale").0, "unchecked");
}

#[test]
fn a_launch_by_a_macro_takes_the_defaults_of_the_template() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "launch_macro.cu", &[], 0);
    has(
        &space(dir.path(), "axpy"),
        &[
            "file: { n: 100000 }    # as the file launches it",
            "{ name: bias, type: f32, role: scalar, value: \"0.25\" }\n",
            "entry: \"vec::axpy<float, {BLOCK}>\", grid: [\"ceil_div(n, BLOCK * UNROLL)\", 1, 1], block: [\"BLOCK\", 1, 1]",
        ],
    );
    assert_eq!(verdict(dir.path(), "axpy").0, "unchecked");
}

#[test]
fn template_arguments_of_the_launch_become_parameters_of_the_entry() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "gemm.cu", &[], 0);
    has(
        &space(dir.path(), "gemm"),
        &[
            "file: { M: 512, N: 256, K: 128 }",
            "TUNE_BM: { values: [4, 8, 16, 32, 64], default: 16",
            "entry: \"lib::gemm<{TUNE_BM}, {TUNE_BN}, {TUNE_BK}, float>\"",
            "grid: [\"ceil_div(N, TUNE_BN)\", \"ceil_div(M, TUNE_BM)\", 1]",
            "block: [\"TUNE_BN\", \"TUNE_BM\", 1]",
            "TUNE_BN * TUNE_BM <= DEVICE_MAX_THREADS",
            "{ name: A, type: f32, role: input, shape: [\"M * K\"] }",
        ],
    );
    let cut = std::fs::read_to_string(dir.path().join("adopted/gemm.cu")).unwrap();
    assert!(
        cut.contains("fused") && !cut.contains("struct Log") && !cut.contains("cudaMalloc"),
        "{cut}"
    );
    assert_eq!(verdict(dir.path(), "gemm").0, "unchecked");
}

#[test]
fn constants_of_the_file_and_of_the_kernel_become_parameters() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "stencil.cu", &[], 0);
    let yaml = space(dir.path(), "stencil");
    has(
        &yaml,
        &[
            "  TILE: { values: [4, 8, 16, 32, 64], default: 16",
            "  BLOCK_ROWS: { values: [2, 4, 8, 16, 32], default: 8",
            "  STEP_TILE: { values: [1, 2, 4, 8], default: 2",
            "grid: [\"ceil_div(width, TILE)\", \"ceil_div(height, TILE)\", 1]",
            "block: [\"TILE\", \"BLOCK_ROWS\", 1]",
        ],
    );
    assert!(!yaml.contains("RADIUS"), "{yaml}");
    assert_eq!(verdict(dir.path(), "stencil").0, "unchecked");
}

#[test]
fn a_hazard_is_told_with_the_originals_line() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "reduce.cu", &[], 0);
    let (found, detail) = verdict(dir.path(), "shift");
    assert_eq!(found, "race", "{detail}");
    has(&detail, &["reduce.cu:23"]);
    has(
        &space(dir.path(), "row_max"),
        &[
            "shared: \"BLOCK_SIZE * 4\"",
            "BLOCK_SIZE: { values: [32, 64, 128, 256, 512], default: 128",
        ],
    );
    has(&space(dir.path(), "shift"), &["role: inout"]);
    assert_eq!(verdict(dir.path(), "row_max").0, "unchecked");
}

#[test]
fn a_file_that_compiles_as_it_is_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let said = adopt(dir.path(), "device_only.cuh", &["--kernel", "doubled"], 0);
    has(
        &said,
        &[
            "the template includes",
            "next: tuner check adopted/doubled.yaml",
        ],
    );
    let template = std::fs::read_to_string(dir.path().join("adopted/doubled.cu")).unwrap();
    has(&template, &["device_only.cuh\""]);
    has(
        &space(dir.path(), "doubled"),
        &["# guessed: block, grid", "# guessed: n; write the sizes"],
    );
    assert_eq!(verdict(dir.path(), "doubled").0, "unchecked");
}

#[test]
fn a_file_beside_the_folder_that_is_to_be_made_is_found_from_it() {
    // Below the folder that the command is given in, and beside it.
    for (file, here) in [("cuda/k.cuh", "."), ("cuda/k.cuh", "work")] {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().join(here);
        std::fs::create_dir_all(&here).unwrap();
        std::fs::create_dir(dir.path().join("cuda")).unwrap();
        std::fs::copy(data("device_only.cuh"), dir.path().join(file)).unwrap();
        let way = dir.path().join(file);
        let said = ended(tuner(&here).arg("adopt").arg(&way));
        said.says(0, &["the template includes"]);
        let template = std::fs::read_to_string(here.join("adopted/doubled.cu")).unwrap();
        has(&template, &["#include \"../", "cuda/k.cuh\""]);
        assert_eq!(verdict(&here, "doubled").0, "unchecked");
    }
}

#[test]
fn launches_that_stand_in_macros_and_dispatch_over_template_arguments_are_read() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "binding.cu", &[], 0);
    let kernels: [(&str, &[&str]); 5] = [
        (
            "shift_f32_kernel",
            &["grid: [\"ceil_div(N, 256)\", 1, 1], block: [256, 1, 1] }\n"],
        ),
        (
            "shift_f32x4_kernel",
            &[
                "grid: [\"ceil_div(N, 256)\", 1, 1], block: [64, 1, 1] }\n",
                "{ name: x, type: f32, role: input,",
                "{ name: y, type: f32, role: inout,",
            ],
        ),
        (
            "centre_rows_kernel",
            &[
                "TUNE_W: { values: [64, 128, 512], default: 128,",
                "entry: \"centre_rows_kernel<{TUNE_W}>\"",
                "block: [\"TUNE_W\", 1, 1] }\n",
                "{ name: columns, type: i32, role: scalar, value: \"TUNE_W\" }",
            ],
        ),
        (
            "scale_heads_kernel",
            &[
                "entry: \"scale_heads_kernel<64>\"",
                "{ name: q, type: f32, role: inout, shape: [\"tokens * 64\"], guessed_extent: true }",
            ],
        ),
        (
            "sum_points_kernel",
            &[
                "{ name: points, type: f32, role: input, shape: [\"count * 4\"], guessed_extent: true }    # guessed: the extent: \
                 as far as the kernel goes",
                "{ name: sums, type: f32, role: inout, shape: [\"count\"], guessed_extent: true }    # guessed: the extent: more",
                "{ name: grid, type: uint3, role: scalar,",
            ],
        ),
    ];
    for (kernel, parts) in kernels {
        has(&space(dir.path(), kernel), parts);
        let (found, detail) = verdict(dir.path(), kernel);
        assert_eq!(found, "unchecked", "{kernel}: {detail}");
    }
}

#[test]
fn what_cannot_be_adopted_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    for (kernel, parts) in [
        ("textured", ["is a texture or surface", "pass a pointer"]),
        ("tables", ["pointer to pointers", "pass one pointer"]),
        ("unknown", ["missing_type", "-I FOLDER"]),
        (
            "absent",
            ["has no kernel `absent`", "it has textured, tables, unknown"],
        ),
    ] {
        has(
            &adopt(dir.path(), "refused.cu", &["--kernel", kernel], 2),
            &parts,
        );
    }
    assert!(!dir.path().join("adopted").exists());
    has(
        &adopt(dir.path(), "util.h", &[], 2),
        &["has no kernel at all", "__global__"],
    );
}

#[test]
fn structs_variables_and_small_types_are_described() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "types.cu", &[], 0);
    has(
        &space(dir.path(), "advance"),
        &[
            "{ name: all, type: { at: float3, mass: f32, kind: u16 }, role: inout, shape: [\"count\"] }",
            "type: { count: i32, weights: pointer, scale: \"f32[2]\" }, role: scalar, value: { count: s_count, \
             weights: s_weights, scale: [1, 1] }, guessed: true }    # guessed: the value",
            "{ name: s_weights, type: f32, role: inout",
            "{ name: step, type: float2, role: scalar, value: [1, 1] }    # guessed: the value",
            "{ name: flags, type: i16, role: input, shape: [\"count\"], fill:",
            "{ name: moved, type: bool, role: output",
            "{ name: times, type: u64, role: inout",
            "{ name: enabled, type: bool, role: scalar, value: \"1\" }",
            "{ name: lookup_data, type: f32, role: inout",
            "  filter::taps: { type: f32, shape: [\"5\"] }",
            "  common: { type: { count: i32, weights: pointer, scale: \"f32[2]\" }, value: { count: common_count,",
            "  lookup: { pointer: lookup_data }",
        ],
    );
    let (found, detail) = verdict(dir.path(), "advance");
    assert_eq!(found, "unchecked", "{detail}");
    let yaml = space(dir.path(), "relax");
    has(
        &yaml,
        &["cooperative: true", "{ name: n, type: i32, role: scalar }"],
    );
    // The sample reads what other blocks write, in another order: only the grid's barrier orders it.
    let (found, detail) = verdict(dir.path(), "relax");
    assert_eq!(found, "unchecked", "{detail}");
}

#[test]
fn the_instance_is_named_where_the_file_does_not_say() {
    let dir = tempfile::tempdir().unwrap();
    let said = adopt(dir.path(), "chosen.cu", &[], 2);
    has(
        &said,
        &[
            "whole rows",
            "WIDTH of the template was guessed",
            "--entry 'rows<1, float>'",
        ],
    );
    let entry = ["--entry", "rows<128, float>"];
    adopt(dir.path(), "chosen.cu", &entry, 0);
    has(
        &space(dir.path(), "rows"),
        &["entry: \"rows<128, float>\", grid: [\"count\", 1, 1], block: [64, 1, 1] }"],
    );
    let other = ["--entry", "rows<128, float>", "--kernel", "lines"];
    has(
        &adopt(dir.path(), "chosen.cu", &other, 2),
        &["an instance of rows", "--kernel rows"],
    );
}

#[test]
fn what_only_the_instance_names_is_cut_out_too() {
    let dir = tempfile::tempdir().unwrap();
    let entry = ["--entry", "combine<Larger<float>, float>"];
    adopt(dir.path(), "functor.cu", &entry, 0);
    let text = std::fs::read_to_string(dir.path().join("adopted/combine.cu")).unwrap();
    has(
        &text,
        &["struct Larger", "#include <type_traits>", "smallest = 0"],
    );
}

#[test]
fn host_functions_in_a_type_of_the_kernel_are_no_macros() {
    let dir = tempfile::tempdir().unwrap();
    let said = adopt(dir.path(), "host_member.cu", &[], 2);
    has(
        &said,
        &["calls strlen, which neither the device nor a file that was found has: move host code"],
    );
    assert!(!said.contains("--define"), "{said}");
}

#[test]
fn what_is_no_file_with_kernels_is_told_with_those_that_are() {
    let dir = tempfile::tempdir().unwrap();
    has(
        &adopt(dir.path(), "util.h", &["-o", "x"], 2),
        &["has no kernel at all", "these files have some", "gemm.cu"],
    );
    has(
        &adopt(dir.path(), "", &[], 2),
        &["it is a folder", "name a file:", "chosen.cu"],
    );
}

#[test]
fn sizes_that_the_launch_rounds_up_are_checked_ragged_too() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("tail.cu"),
        "__global__ void twice(float *x, int n) {\n  x[blockIdx.x * blockDim.x + threadIdx.x] *= 2;\n}\n\
         void run(float *x, int n) { twice<<<(n + 255) / 256, 256>>>(x, n); }\nint main() {\n  int n = 1 << 20;\n  \
         float *x;\n  cudaMalloc(&x, n * sizeof(float));\n  run(x, n);\n}\n",
    )
    .unwrap();
    let file = dir.path().join("tail.cu");
    let given = file.to_str().expect("a path in UTF-8");
    adopt(dir.path(), given, &[], 0);
    assert_eq!(verdict(dir.path(), "twice").0, "unchecked");
    let line = "check adopted/twice.yaml --config default --problem ragged";
    let (_, rows) = json(dir.path(), line);
    assert_eq!(rows[0]["verdict"], "out_of_bounds", "{rows:?}");
}

#[test]
fn extents_in_braces_are_those_of_a_dim3() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("braces.cu"),
        "template <int BX, int BY> __global__ void fill(float *a, int nx, int ny) {\n  \
         int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;\n  \
         if (x < nx && y < ny) a[y * nx + x] = x + y;\n}\nint main() {\n  int nx = 100, ny = 50;\n  float *a;\n  \
         cudaMalloc(&a, nx * ny * sizeof(float));\n  constexpr int bx = 32, by = 8;\n  \
         fill<bx, by><<<{(nx + bx - 1) / bx, (ny + by - 1) / by}, {bx, by, 1}, 0, 0>>>(a, nx, ny);\n}\n",
    )
    .unwrap();
    let file = dir.path().join("braces.cu");
    let given = file.to_str().expect("a path in UTF-8");
    adopt(dir.path(), given, &[], 0);
    let space = space(dir.path(), "fill");
    let both = [
        "fill<{TUNE_BX}, {TUNE_BY}>",
        "block: [\"TUNE_BX\", \"TUNE_BY\", 1]",
    ];
    has(&space, &both);
    assert_eq!(verdict(dir.path(), "fill").0, "unchecked", "{space}");
}

#[test]
fn files_that_are_there_are_replaced_on_request_only() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "scale.cu", &["-o", "adopted"], 0);
    std::fs::write(dir.path().join("adopted/scale.yaml"), "mine").unwrap();
    let again = adopt(dir.path(), "scale.cu", &[], 2);
    assert!(again.contains("--force replaces it"), "{again}");
    assert_eq!(space(dir.path(), "scale"), "mine");
    adopt(dir.path(), "scale.cu", &["--force"], 0);
    assert!(space(dir.path(), "scale").contains("version: 1"));
}

/// Typical mistakes in the kernels of `right.cu`: kernel, what is replaced by what, and how it shows.
const MISTAKES: [(&str, &str, &str, &str); 9] = [
    (
        "block_sum",
        "  __syncthreads(); // after the load\n",
        "",
        "race",
    ),
    (
        "transposed",
        "if (x < cols && y < rows) tile",
        "tile",
        "out_of_bounds",
    ),
    ("saxpy", "if (i < n) y[i] = a", "y[i] = a", "out_of_bounds"),
    (
        "row_softmax",
        "c < cols; ++c) best",
        "c <= cols; ++c) best",
        "out_of_bounds",
    ),
    (
        "blurred",
        "  if (threadIdx.x == 255) near[257] = i + 1 < n ? in[i + 1] : 0.0f;\n",
        "",
        "uninitialized",
    ),
    (
        "histogram",
        "  own[threadIdx.x] = 0;\n",
        "",
        "uninitialized",
    ),
    (
        "batched",
        "c + blockIdx.z * m * m",
        "c + blockIdx.z * m",
        "race",
    ),
    (
        "row_norm",
        "(0xffffffff, sum, o)",
        "(0x0000ffff, sum, o)",
        "",
    ),
    (
        "difference",
        "if (i < n - 1)",
        "if (i < n)",
        "out_of_bounds",
    ),
];

#[test]
fn a_mistake_in_an_adopted_kernel_is_found_and_the_right_one_is_not_blamed() {
    let dir = tempfile::tempdir().unwrap();
    let right = std::fs::read_to_string(data("right.cu")).unwrap();
    let judged = |text: &str, folder: &str, kernel: &str| {
        let file = dir.path().join(format!("{folder}.cu"));
        std::fs::write(&file, text).unwrap();
        let given = file.to_str().expect("a path in UTF-8");
        adopt(dir.path(), given, &["--kernel", kernel, "-o", folder], 0);
        let space = format!("{folder}/{kernel}.yaml");
        let (_, rows) = json(dir.path(), &format!("check {space} --config default"));
        let verdicts = rows.iter().map(|row| row["verdict"].as_str().unwrap_or(""));
        verdicts.map(str::to_owned).collect::<Vec<_>>()
    };
    for (kernel, from, to, verdict) in MISTAKES {
        let all = judged(&right, &format!("right_{kernel}"), kernel);
        assert!(
            all.iter().all(|each| each == "unchecked"),
            "{kernel}: {all:?}"
        );
        let at = right.find(&format!("void {kernel}(")).unwrap();
        let wrong = format!("{}{}", &right[..at], right[at..].replacen(from, to, 1));
        assert_ne!(wrong, right, "{kernel}");
        let all = judged(&wrong, &format!("wrong_{kernel}"), kernel);
        let found = |each: &String| match verdict {
            "" => each != "unchecked",
            verdict => each == verdict,
        };
        assert!(all.iter().any(found), "{kernel}: {all:?}");
    }
}
