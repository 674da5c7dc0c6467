//! Captures of programs, and kernels adopted from them. The programs are C: they register PTX text.

use crate::program::{Ended, ended, json, root, tuner};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// The compiled program of `tests/data/exec/driver.c`.
fn driver() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driver");
        let built = Command::new("cc")
            .arg(data("driver.c"))
            .arg("-o")
            .arg(&path)
            .arg("-ldl")
            .status();
        assert!(built.unwrap().success(), "cc compiles the program");
        (folder, path)
    });
    path
}

fn data(name: &str) -> PathBuf {
    root().join("tests/data/exec").join(name)
}

/// A folder with the kernels' source and PTX.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["scale.cu", "scale_128.ptx", "scale_256.ptx"] {
        std::fs::copy(data(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs the program with a capture.
fn exec(folder: &Path, options: &[&str], words: &[&str]) -> Ended {
    let mut command = tuner(folder);
    command.arg("exec").args(options).arg("--").arg(driver());
    ended(command.args(words))
}

fn capture(folder: &Path, to: &str, words: &[&str]) -> Ended {
    exec(folder, &["--capture", to], words)
}

fn adopt(folder: &Path, words: &[&str]) -> Ended {
    ended(tuner(folder).args(["adopt", "scale.cu"]).args(words))
}

fn document(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("capture.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn space(folder: &Path, kernel: &str) -> String {
    std::fs::read_to_string(folder.join(format!("adopted/{kernel}.yaml"))).unwrap()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn a_captured_launch_is_adopted_with_its_data_and_results() {
    let dir = folder();
    let ran = capture(
        dir.path(),
        "one",
        &["scale_128.ptx", "1000", "128", "scale", "bump"],
    );
    ran.says(0, &["captured 2 launches of bump, scale in one"]);
    assert_eq!(ran.stdout, "1500.5 1000\n");
    let document = document(&dir.path().join("one"));
    let launch = &document["launches"][0];
    assert_eq!(launch["kernel"], "scale");
    assert_eq!(launch["grid"], serde_json::json!([8, 1, 1]));
    assert_eq!(launch["source"]["line"], 6);
    assert_eq!(launch["buffers"][0]["read"]["bytes"], 4000);
    assert_eq!(launch["buffers"][2]["variable"], "offset");
    assert_eq!(document["ended"]["exit_code"], 0);
    adopt(dir.path(), &["--captured", "one"]).says(0, &[]);
    has(
        &space(dir.path(), "scale"),
        &[
            "program: { n: 1000 }",
            "{ name: x, type: f32, role: input, shape: [\"1000\"], fill: { file: \"scale.data/{problem}/x.bin\" } }",
            "{ name: y, type: f32, role: output, shape: [\"1000\"] }",
            "{ name: factor, type: f32, role: scalar, value: 3 }",
            "offset: { type: f32, value: 2 }",
            "grid: [8, 1, 1], block: [\"BLOCK\", 1, 1]",
            "values: { y: \"scale.data/{problem}/y.expected.bin\" }",
        ],
    );
    has(
        &space(dir.path(), "bump"),
        &["role: inout", "counts.expected.bin"],
    );
    for kernel in ["scale", "bump"] {
        let (code, rows) = json(dir.path(), &format!("check adopted/{kernel}.yaml"));
        assert_eq!(code, 0, "{rows:?}");
        assert!(rows.iter().all(|row| row["verdict"] == "ok"), "{rows:?}");
    }
}

#[test]
fn results_that_are_not_the_programs_are_refused() {
    let dir = folder();
    capture(
        dir.path(),
        "one",
        &["scale_128.ptx", "1000", "128", "scale"],
    )
    .says(0, &[]);
    adopt(dir.path(), &["--captured", "one"]).says(0, &[]);
    let template = dir.path().join("adopted/scale.cu");
    crate::program::replace(&template, "factor * tile", "factor + tile");
    let (code, rows) = json(dir.path(), "check adopted/scale.yaml");
    assert_eq!(
        (code, &rows[0]["verdict"]),
        (4, &"incorrect".into()),
        "{rows:?}"
    );
}

#[test]
fn launches_of_several_sizes_and_builds_give_the_expressions() {
    let dir = folder();
    let runs = [
        ("one", "scale_128.ptx", "1000", "128"),
        ("two", "scale_128.ptx", "3000", "128"),
        ("three", "scale_256.ptx", "1000", "256"),
    ];
    let mut words = Vec::new();
    for (name, ptx, n, block) in runs {
        let value = format!("BLOCK={block}");
        let options = ["--capture", name, "--capture-value", &value];
        exec(dir.path(), &options, &[ptx, n, block, "scale"]).says(0, &[]);
        words.extend(["--captured", name]);
    }
    adopt(dir.path(), &words).says(0, &[]);
    has(
        &space(dir.path(), "scale"),
        &[
            "BLOCK: { values: [32, 64, 128, 256, 512], default: 128",
            "grid: [\"ceil_div(n, BLOCK)\", 1, 1], block: [\"BLOCK\", 1, 1]",
            "program: { n: 3000 }",
            "program_2: { n: 1000 }",
            "shape: [\"n\"]",
        ],
    );
    let line = "run adopted/scale.yaml --device vgpu:a100 --evals 40 --db tuner.db";
    let ran = crate::program::run(dir.path(), line);
    ran.says(0, &[]);
    has(&(ran.stdout + &ran.stderr), &["verdicts ok 5"]);
}

#[test]
fn a_parameter_that_one_capture_does_not_show_stays_at_its_value() {
    let dir = folder();
    capture(
        dir.path(),
        "one",
        &["scale_128.ptx", "1000", "128", "scale"],
    )
    .says(0, &[]);
    let adopted = adopt(dir.path(), &["--captured", "one"]);
    adopted.says(0, &["BLOCK is not varied", "--capture-value BLOCK=VALUE"]);
    has(
        &space(dir.path(), "scale"),
        &["BLOCK: { values: [128], default: 128"],
    );
}

#[test]
fn extents_that_no_expression_gives_are_asked_for() {
    let dir = folder();
    for (name, n, block) in [
        ("one", "1000", "128"),
        ("two", "3000", "64"),
        ("three", "5000", "96"),
    ] {
        let words = ["scale_128.ptx", n, block, "bump"];
        capture(dir.path(), name, &words).says(0, &[]);
    }
    let all = [
        "--kernel",
        "bump",
        "--captured",
        "one",
        "--captured",
        "two",
        "--captured",
        "three",
    ];
    let refused = adopt(dir.path(), &all);
    refused.says(
        2,
        &[
            "grid x is 8 with n=1000, 47 with n=3000, 53 with n=5000",
            "--capture-value NAME=VALUE",
        ],
    );
}

#[test]
fn a_killed_program_leaves_the_launches_before() {
    let dir = folder();
    let ran = capture(
        dir.path(),
        "one",
        &["scale_128.ptx", "1000", "128", "scale", "kill"],
    );
    ran.says(137, &["captured 1 launch of scale"]);
    assert_eq!(document(&dir.path().join("one"))["ended"]["signal"], 9);
    let adopted = adopt(dir.path(), &["--captured", "one"]);
    adopted.says(0, &["did not end with 0"]);
}

#[test]
fn a_folder_that_cannot_be_written_ends_the_capture_with_a_sentence() {
    let dir = folder();
    let data = dir.path().join("one/data");
    let words = [
        "scale_128.ptx",
        "1000",
        "128",
        "scale",
        "vanish",
        data.to_str().unwrap(),
        "bump",
    ];
    let ran = capture(dir.path(), "one", &words);
    ran.says(
        0,
        &[
            "bump: the capture ended here",
            "make room or name another folder",
        ],
    );
    let document = document(&dir.path().join("one"));
    assert_eq!(document["launches"].as_array().unwrap().len(), 1);
}

#[test]
fn a_summary_that_cannot_be_written_names_its_file() {
    let dir = folder();
    let words = ["scale_128.ptx", "1000", "128", "scale"];
    // Before the program runs.
    exec(dir.path(), &["--json", "."], &words).says(2, &[". is a folder; name a file"]);
    exec(dir.path(), &["--json", "/dev/full"], &words).says(1, &["cannot write /dev/full"]);
}

#[test]
fn limits_are_told_and_name_the_option() {
    let dir = folder();
    let words = ["scale_128.ptx", "1000", "128", "scale", "bump"];
    let ran = exec(
        dir.path(),
        &["--capture", "one", "--capture-bytes", "10K"],
        &words,
    );
    ran.says(
        0,
        &[
            "scale: a launch was not captured",
            "give a larger --capture-bytes",
        ],
    );
    assert_eq!(
        document(&dir.path().join("one"))["launches"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let named = adopt(dir.path(), &["--captured", "one", "--kernel", "scale"]);
    named.says(
        2,
        &[
            "no launch of it was captured",
            "give a larger --capture-bytes",
        ],
    );
    let again = capture(dir.path(), "one", &words);
    again.says(2, &["one has a capture already; name another folder"]);
    exec(
        dir.path(),
        &["--capture-bytes", "x", "--capture", "y"],
        &words,
    )
    .says(2, &["64M or 2G"]);
}

#[test]
fn captures_of_another_kernel_or_source_are_refused() {
    let dir = folder();
    capture(
        dir.path(),
        "one",
        &["scale_128.ptx", "1000", "128", "scale"],
    )
    .says(0, &[]);
    let other = adopt(dir.path(), &["--captured", "one", "--kernel", "bump"]);
    other.says(
        2,
        &[
            "bump: no launch of it was captured",
            "the captures have scale: --kernel NAME",
        ],
    );
    adopt(dir.path(), &["--captured", "none"]).says(2, &["tuner exec --capture none"]);
    crate::program::replace(
        &dir.path().join("scale.cu"),
        "factor * tile",
        "2.0f * factor * tile",
    );
    let changed = adopt(dir.path(), &["--captured", "one"]);
    changed.says(
        2,
        &[
            "is not the version that was captured in one",
            "build the program from this file",
        ],
    );
}

#[test]
fn a_reference_by_values_needs_data_of_one_run() {
    let dir = folder();
    capture(
        dir.path(),
        "one",
        &["scale_128.ptx", "1000", "128", "scale"],
    )
    .says(0, &[]);
    adopt(dir.path(), &["--captured", "one"]).says(0, &[]);
    let path = dir.path().join("adopted/scale.yaml");
    let whole = std::fs::read_to_string(&path).unwrap();
    let file = "fill: { file: \"scale.data/{problem}/x.bin\" }";
    let cases = [
        (
            file,
            "fill: { uniform: { min: 0, max: 1 } }",
            "`x` differs from seed to seed",
        ),
        ("values: { y:", "values: { x:", "`x` is not an output"),
        (
            "y.expected.bin",
            "z.bin",
            "adopted/scale.data/program/z.bin",
        ),
        (
            "shape: [\"1000\"], fill",
            "shape: [\"999\"], fill",
            "999 elements of f32 take 3996",
        ),
    ];
    for (from, to, said) in cases {
        assert!(whole.contains(from), "{from}");
        std::fs::write(&path, whole.replace(from, to)).unwrap();
        let checked = crate::program::run(dir.path(), "check adopted/scale.yaml");
        let text = checked.stdout.clone() + &checked.stderr;
        assert!(checked.code != 0 && text.contains(said), "{to}: {text}");
    }
}

/// Structs with pointers, buffers passed twice, templates; and what a search space cannot describe.
#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn all_forms_of_parameters_are_described_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(data("forms.cu"), dir.path().join("forms.cu")).unwrap();
    let build = "nvcc -std=c++17 -arch=sm_80 -cudart shared -lineinfo forms.cu -o app && ./app";
    let mut command = tuner(dir.path());
    let adopted = ended(command.args(["adopt", "forms.cu", "--run", build]));
    adopted.says(
        0,
        &[
            "maybe: `bias` is a null pointer",
            "pp: its argument `rows` is a pointer to pointers",
            "TUNE_TILE is not varied",
            "each is described as far as the next one",
        ],
    );
    has(
        &space(dir.path(), "by_struct"),
        &[
            "value: { data: v_data, rows: 5, scale: [1.5, -2], index: v_index, flags: [1, 2, 3] }",
            "grid: [\"ceil_div(n, BLOCK_SIZE)\", 1, 1]",
        ],
    );
    has(&space(dir.path(), "alias"), &["args: [a, a, n]"]);
    has(&space(dir.path(), "rsum"), &["shared: \"1024\""]);
    for kernel in ["by_struct", "alias", "parts", "transpose", "rsum"] {
        let line = format!("check adopted/{kernel}.yaml --config default");
        let (_, rows) = json(dir.path(), &line);
        assert_eq!(rows[0]["verdict"], "ok", "{rows:?}");
    }
}

/// A program of nvcc, built and run by `--run` with several sizes.
#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn one_command_builds_captures_and_adopts() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(data("program.cu"), dir.path().join("program.cu")).unwrap();
    let build =
        "nvcc -std=c++17 -arch=sm_80 -cudart shared -lineinfo program.cu -o app && ./app {N}";
    let mut command = tuner(dir.path());
    let adopted = ended(command.args([
        "adopt",
        "program.cu",
        "--run",
        build,
        "--vary",
        "N=1000,4096",
    ]));
    adopted.says(0, &["running: nvcc"]);
    has(
        &space(dir.path(), "saxpy"),
        &[
            "n4096: { n: 4096 }",
            "n1000: { n: 1000 }",
            "grid: [\"ceil_div(n, TUNE_BLOCK)\", 1, 1], block: [\"TUNE_BLOCK\", 1, 1]",
        ],
    );
    assert!(
        !dir.path().join("app").exists(),
        "the build is in another folder"
    );
    let (code, rows) = json(dir.path(), "check adopted/saxpy.yaml");
    assert_eq!(code, 0, "{rows:?}");
}

/// Tables of CUDA's math functions are variables of the module, and none that a user sets.
#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn tables_of_math_functions_are_not_variables_to_set() {
    let dir = tempfile::tempdir().unwrap();
    let code = "__global__ void wave(const float* x, float* y) { y[threadIdx.x] = sinf(x[threadIdx.x]); }
        int main() { float *x, *y, h[32]; for (int i = 0; i < 32; i++) h[i] = 1e6f * i;
        cudaMalloc(&x, sizeof h); cudaMalloc(&y, sizeof h); cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
        wave<<<1, 32>>>(x, y); return cudaDeviceSynchronize(); }";
    std::fs::write(dir.path().join("wave.cu"), code).unwrap();
    let build = "nvcc -arch=sm_80 -cudart shared wave.cu -o app && ./app";
    let mut command = tuner(dir.path());
    let adopted = ended(command.args(["adopt", "wave.cu", "--run", build]));
    adopted.says(0, &["running: nvcc"]);
    let text = adopted.stdout + &adopted.stderr;
    assert!(!text.contains("__cudart"), "{text}");
}

/// A program whose header is in a folder beside its own, which the copy for the build lacks.
#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn headers_beside_the_folder_are_found_by_the_build() {
    let dir = tempfile::tempdir().unwrap();
    let (chapter, common) = (dir.path().join("chapter"), dir.path().join("common"));
    for folder in [&chapter, &common] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(common.join("sizes.h"), "#define COUNT 1000\n").unwrap();
    let source = "#include \"../common/sizes.h\"\n\
        __global__ void twice(float *x) { int i = blockIdx.x * 256 + threadIdx.x; if (i < COUNT) x[i] *= 2; }\n\
        int main() {\n  float *x;\n  cudaMalloc(&x, COUNT * 4);\n  cudaMemset(x, 0, COUNT * 4);\n\
          twice<<<4, 256>>>(x);\n  return cudaDeviceSynchronize();\n}\n";
    std::fs::write(chapter.join("app.cu"), source).unwrap();
    let build = "nvcc -arch=sm_80 -cudart shared -lineinfo app.cu -o app && ./app";
    let mut command = tuner(dir.path());
    let adopted = ended(command.args(["adopt", "chapter/app.cu", "--run", build]));
    adopted.says(0, &["wrote adopted/twice.yaml"]);
    let (_, rows) = json(dir.path(), "check adopted/twice.yaml --config default");
    assert_eq!(rows[0]["verdict"], "ok", "{rows:?}");
}
