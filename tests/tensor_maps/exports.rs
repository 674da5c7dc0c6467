//! Exports of kernels with clusters and tensor maps: launcher and PyTorch package run on the virtual GPU, other
//! formats hold them.

use crate::program::{Ended, ended, replace, root, toolkit, tuner};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use tuner_kernel::compile::{Nvrtc, Surroundings};

/// A tuned project whose problems differ in the launch and in the cluster.
fn tuned() -> TempDir {
    tuned_with(&[])
}

/// The same with texts of its files replaced.
fn tuned_with(changes: &[[&str; 3]]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let files = [
        ("swapped/kernel.cu", "templates/swapped/kernel.cu"),
        ("reference.cu", "templates/swapped/reference.cu"),
        ("swapped/space.yaml", "search_spaces/swapped.yaml"),
        ("swapped/main.cu", "main.cu"),
        ("swapped/probe.py", "probe.py"),
        ("stub.py", "stub.py"),
    ];
    for (from, to) in files {
        let to = at.join(to);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("the folder is made");
        std::fs::copy(root().join("tests/tensor_maps").join(from), to).expect("the file is copied");
    }
    for [file, from, to] in changes {
        replace(&at.join(file), from, to);
    }
    done(
        at,
        "run swapped --device vgpu:h100 --db t.db --evals 4 --seed 1",
    );
    folder
}

/// Runs a command that must succeed.
fn done(folder: &Path, line: &str) -> Ended {
    let ended = ended(tuner(folder).args(line.split(' ')));
    ended.says_of(&line, 0, &[]);
    ended
}

fn export(folder: &Path, more: &str) -> Ended {
    let line = format!("export swapped --db t.db --allow-predicted --allow-uncompared {more}");
    done(folder, &line)
}

/// Compiles the program of a launcher.
fn build(folder: &Path, source: &Path) {
    let mut nvcc = Command::new(toolkit().join("bin/nvcc"));
    nvcc.args("-std=c++17 -cudart shared -arch=sm_90 -Xcompiler -Wall,-Wextra,-Werror".split(' '))
        .args(["-I", "."])
        .arg("-I")
        .arg(root().join("tests/exec/launcher"))
        .arg(source)
        .args(["-o", "main", "-ldl", "-L"])
        .arg(toolkit().join("lib"));
    ended(nvcc.current_dir(folder)).says(0, &[]);
}

/// Runs that program on the virtual GPU; returns its lines.
fn output(folder: &Path, nvrtc: &str, input: &str) -> Vec<String> {
    let mut exec = tuner(folder);
    exec.args(["exec", "--device", "vgpu:h100", "--", "./main"])
        .env(
            nvrtc,
            Nvrtc::find(&Surroundings::from_env())
                .expect("NVRTC is here")
                .library,
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = exec.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("its input");
    stdin
        .write_all(input.as_bytes())
        .expect("the input is read");
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    stdout.lines().map(str::to_owned).collect()
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_launcher_passes_clusters_and_only_the_maps_that_a_launch_takes() {
    let folder = tuned();
    let at = folder.path();
    for embed in ["", " --embed cubin:sm_90a"] {
        export(at, &format!("--launcher cpp{embed} -o swapped_launch.h"));
        build(at, Path::new("main.cu"));
        let nvrtc = if embed.is_empty() {
            "SWAPPED_NVRTC"
        } else {
            "UNUSED"
        };
        let lines = output(at, nvrtc, "");
        assert_eq!(
            lines[..4],
            [
                "right, large, cluster 16",
                "right, middle, cluster 4",
                "right, small, cluster 1",
                "right, narrow, cluster 0",
            ],
            "{lines:?}"
        );
        let refused = "mapped: grid 29 x 1 x 1 in clusters of 4 x 1 x 1, block 128 x 1 x 1 or 8192 bytes of shared \
                       memory are beyond CUDA's or the device's limits";
        assert_eq!(lines[4], refused);
    }
    let verified = done(at, "verify swapped_launch.h");
    assert_eq!(
        verified.stdout.matches("passed").count(),
        4,
        "{}",
        verified.stdout
    );
}

#[test]
fn a_pytorch_package_passes_clusters_and_only_the_maps_that_a_launch_takes() {
    let folder = tuned();
    let at = folder.path();
    export(at, "--torch --embed cubin:sm_90a -o package");
    let run = done(
        at,
        "exec --device vgpu:h100 -- python3 probe.py package/swapped_torch",
    );
    let expected = "(Tensor x) -> Tensor\n\
                    0 wrong, mapped, cluster 16\n\
                    0 wrong, mapped, cluster 4\n\
                    0 wrong, mapped, cluster 1\n\
                    0 wrong, plain, cluster 1\n\
                    swapped: CUDA refuses clusters (4, 1, 1) of grid (29, 1, 1)\n";
    assert_eq!(run.stdout, expected, "{}", run.stderr);
}

/// Formats without launch code hold no clusters; the header has them as a member of its launches.
#[test]
fn every_format_holds_a_kernel_with_clusters() {
    let folder = tuned();
    for format in ["header", "json", "wisdom", "kernelbench"] {
        let text = export(folder.path(), &format!("--to {format}")).stdout;
        assert!(text.contains("CLUSTER"), "{format}: {text}");
        let member = text.contains("shared_bytes, cluster[3];");
        assert_eq!(member, format == "header", "{format}: {text}");
    }
    for format in ["kernel-tuner", "t4", "triton"] {
        let text = export(folder.path(), &format!("--to {format} --problem large")).stdout;
        assert!(text.contains("CLUSTER"), "{format}: {text}");
    }
}

#[test]
fn a_composed_argument_is_refused_where_a_tensor_map_is_not() {
    let size = "  - { name: R, type: i32, role: scalar }\n";
    let pair = format!("  - {{ name: pair, type: int2, role: scalar, value: [R, C] }}\n{size}");
    let folder = tuned_with(&[
        ["search_spaces/swapped.yaml", size, &pair],
        ["templates/swapped/reference.cu", "int R", "int2, int R"],
    ]);
    for (form, why) in [
        (
            "--torch -o package",
            "--torch: the package cannot pass the composed argument `pair`",
        ),
        (
            "--launcher cpp",
            "--launcher: a launcher cannot pass the composed argument `pair`",
        ),
    ] {
        let line = format!("export swapped --db t.db --allow-predicted --allow-uncompared {form}");
        ended(tuner(folder.path()).args(line.split(' '))).says_of(&line, 2, &[why]);
    }
}

/// Problems of gemm_f16 with the configurations that the test gives them.
const GEMM: &str = "problems:
  small: { M: 64, N: 96, K: 64 }
  mapped: { M: 192, N: 256, K: 128 }
  clustered: { M: 512, N: 256, K: 128 }
";
const GEMM_RULES: &str = "constraints:
  - { rule: \"CORE == (0 if M < 150 else 2)\", why: one core each }
  - { rule: \"CLUSTER == (1 if M < 400 else 2)\", why: one cluster each }
";
const GEMM_SEEDS: &str = "seeds:
  - { BM: 32, BN: 32, BK: 32, WM: 32, WN: 32, STAGES: 2 }
  - { CORE: 2, BM: 64, BN: 128, BK: 64, WM: 64, WN: 128, STAGES: 2, EPILOGUE: 1 }
  - { CORE: 2, BM: 64, BN: 128, BK: 64, WM: 64, WN: 128, STAGES: 2, CLUSTER: 2 }
";

/// Tunes gemm_f16 with these problems.
fn tuned_gemm() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let templates = folder.path().join("templates/gemm_f16");
    std::fs::create_dir_all(&templates).expect("a folder");
    let from = root().join("templates");
    for folder in [from.clone(), from.join("gemm_f16")] {
        for file in std::fs::read_dir(folder).expect("a folder") {
            let file = file.expect("a file").path();
            let to = templates
                .join("..")
                .join(file.strip_prefix(&from).expect("a template"));
            if file.is_file() {
                std::fs::copy(&file, to).expect("the file is copied");
            }
        }
    }
    let space = std::fs::read_to_string(root().join("search_spaces/gemm_f16.yaml"));
    let space = space.expect("the search space");
    let between = |from: &str, to: &str| {
        let from = space.find(from).expect("the key");
        from..from + space[from..].find(to).expect("the next key")
    };
    let (problems, rules) = (
        between("problems:\n", "check_problems:"),
        between("constraints:\n", "  - "),
    );
    let seeds = between("seeds:\n", "baseline:");
    let changed = [
        &space[..problems.start],
        GEMM,
        &space[problems.end..rules.start],
        GEMM_RULES,
        &space[rules.end..seeds.start],
        GEMM_SEEDS,
    ];
    std::fs::create_dir(folder.path().join("search_spaces")).expect("a folder");
    let file = folder.path().join("search_spaces/gemm_f16.yaml");
    std::fs::write(file, changed.concat()).expect("the search space is written");
    let line = "run gemm_f16 --device vgpu:h100 --db t.db --evals 4 --seed 1";
    done(folder.path(), line);
    folder
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_launcher_of_gemm_f16_has_configurations_with_and_without_tensor_maps() {
    let folder = tuned_gemm();
    let at = folder.path();
    let export = "export gemm_f16 --db t.db --allow-predicted --allow-uncompared --launcher cpp -o";
    done(at, &format!("{export} gemm_f16_launch.h"));
    build(at, &root().join("tests/exec/launcher/gemm_f16.cu"));
    // Columns of 182 bytes have no map.
    let lines = output(
        at,
        "GEMM_F16_NVRTC",
        "500 256 128\n200 256 128\n60 96 64\n60 91 33\n",
    );
    let starts = ["right 0 ", "right 1 ", "right 2 ", "right 2 "];
    assert_eq!(lines.len(), starts.len(), "{lines:?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{lines:?}");
    }
}

/// A kernel that copies columns of pixels, tuned.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn an_im2col_map_is_tuned_exported_and_launched() {
    let folder = super::columns();
    let at = folder.path();
    let run = done(
        at,
        "run space.yaml --device vgpu:h100 --db t.db --evals 3 --seed 1",
    );
    for said in ["us predicted", "compared whole", "verdicts ok 2"] {
        assert!(run.stdout.contains(said), "{}", run.stdout);
    }
    let export = "export space.yaml --db t.db --allow-predicted";
    done(at, &format!("{export} --launcher cpp -o columns_launch.h"));
    build(at, Path::new("main.cu"));
    assert_eq!(output(at, "COLUMNS_NVRTC", ""), ["right, 1008 elements"]);
    done(
        at,
        &format!("{export} --torch --embed cubin:sm_90a -o package"),
    );
    let probe = "exec --device vgpu:h100 -- python3 probe.py package/columns_torch";
    assert_eq!(done(at, probe).stdout, "0 wrong\n");
}
