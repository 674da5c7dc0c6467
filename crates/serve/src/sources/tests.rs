use super::*;
use tuner_core::record::Verdict;

const SPACE: &str = "\
version: 1
kernel: scale
source: ../src/scale.cu
problems: { timed: { N: 1024 } }
parameters: { BLOCK: { values: [64, 128] } }
arguments:
  - { name: x, type: f32, role: input, shape: [N], fill: arange }
  - { name: y, type: f32, role: output, shape: [N] }
launches: [{ entry: scale, grid: [\"ceil_div(N, BLOCK)\"], block: [BLOCK] }]
reference: none
";

const TEMPLATE: &str = "\
#include \"helper.cuh\"
extern \"C\" __global__ void scale(const float *x, float *y) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < N) y[i] = twice(x[i]);
}
";

/// A project with a kernel outside a folder `templates`, and a header next to it that the kernel does not
/// include.
fn project() -> (tempfile::TempDir, [PathBuf; 1]) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap();
    for folder in ["search_spaces", "src", "private"] {
        std::fs::create_dir(path.join(folder)).unwrap();
    }
    let files = [
        ("search_spaces/scale.yaml", SPACE),
        ("src/scale.cu", TEMPLATE),
        (
            "src/helper.cuh",
            "__device__ float twice(float x) { return 2 * x; }\n",
        ),
        ("src/secret.h", "#define KEY \"hunter2\"\n"),
        ("private/secret.h", "#define KEY \"hunter2\"\n"),
        ("search_spaces/secret.cuh", "#define KEY \"hunter2\"\n"),
    ];
    for (name, text) in files {
        std::fs::write(path.join(name), text).unwrap();
    }
    let folders = [path.join("search_spaces")];
    (root, folders)
}

fn hazard(file: &str, line: u32) -> Hazard {
    Hazard {
        kind: Verdict::Race,
        detail: String::new(),
        file: Some(file.to_owned()),
        line: Some(line),
        block: None,
        thread: None,
        address: None,
    }
}

#[test]
fn lines_of_a_template_and_its_headers_are_shown() {
    let (root, folders) = project();
    let sources = Sources::of_kernel("scale", &folders);
    let line = |file: &str, line: u32| sources.line(&hazard(file, line));
    let third = Some("  int i = blockIdx.x * BLOCK + threadIdx.x;".to_owned());
    assert_eq!(line("src/scale.cu", 3), third);
    let absolute = root.path().join("src/scale.cu");
    assert_eq!(line(absolute.to_str().unwrap(), 3), third);
    let helper = line("../src/helper.cuh", 1).unwrap();
    assert!(helper.contains("twice"), "{helper}");
    assert_eq!(line("src/scale.cu", 0), None);
    assert_eq!(line("src/scale.cu", 99), None);
}

#[test]
fn lines_of_other_files_are_not_shown() {
    let (root, folders) = project();
    let sources = Sources::of_kernel("scale", &folders);
    let private = root.path().join("private/secret.h");
    for file in [
        "private/secret.h",
        private.to_str().unwrap(),
        "src/secret.h",
        "secret.cuh",
        "scale.yaml",
    ] {
        assert_eq!(sources.line(&hazard(file, 1)), None, "{file}");
    }
    let others = Sources::of_kernel("other", &folders);
    assert_eq!(others.line(&hazard("src/scale.cu", 3)), None);
}
