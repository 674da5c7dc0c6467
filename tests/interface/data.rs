//! Where the data of buffers come from: files, generators, structured fills.

use super::check;
use crate::program::{folder, run};

/// A sparse matrix times a vector, with a check of what the graph is: the output counts what is wrong
/// with it.
const GRAPH: &str = "\
extern \"C\" __global__ void make_x(float* out, unsigned long long count, unsigned long long seed) {
  const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
  if (i < count) out[i] = (float)((i * 7 + seed % 5) % 11) - 5.0f;
}
extern \"C\" __global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x,
                                const int* order, const float* sorted, const float4* boxes, float* y, int* wrong) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= ROWS) return;
  float sum = 0;
  int bad = offsets[0] != 0 || offsets[ROWS] != NNZ || offsets[row] > offsets[row + 1];
  for (int k = offsets[row]; k < offsets[row + 1]; ++k) {
    sum += values[k] * x[columns[k]];
    bad |= k > offsets[row] && columns[k] <= columns[k - 1];
  }
  bad |= row > 0 && sorted[row] < sorted[row - 1];
  bad |= boxes[row].x >= boxes[row].z || boxes[row].y >= boxes[row].w;
  bad |= x[row] < -5 || x[row] > 5 || x[row] != (int)x[row];
  y[order[row]] = sum;
  wrong[row] = bad;
}
";

const GRAPH_REFERENCE: &str = "\
extern \"C\" __global__ void reference(const int* offsets, const int* columns, const float* values, const float* x,
                                     const int* order, const float* sorted, const float4* boxes, float* y, int* wrong) {
  for (int row = 0; row < ROWS; ++row) {
    float sum = 0;
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) sum += values[k] * x[columns[k]];
    y[order[row]] = sum;
    wrong[row] = 0;
  }
}
";

const GRAPH_SPACE: &str = "\
version: 1
kernel: spmv
source: k.cu
problems: { main: { ROWS: 300, NNZ: 2000 } }
arguments:
  - { name: offsets, type: i32, role: input, shape: [\"ROWS + 1\"], fill: { csr: { offsets: NNZ } } }
  - { name: columns, type: i32, role: input, shape: [NNZ], fill: { csr: { rows: ROWS, columns: ROWS } } }
  - { name: values, type: f32, role: input, shape: [NNZ], fill: { file: values.npy } }
  - { name: x, type: f32, role: input, shape: [ROWS], fill: { kernel: make_x } }
  - { name: order, type: i32, role: input, shape: [ROWS], fill: permutation }
  - { name: sorted, type: f32, role: input, shape: [ROWS], fill: sorted }
  - { name: boxes, type: float4, role: input, shape: [ROWS], fill: boxes }
  - { name: y, type: f32, role: output, shape: [ROWS] }
  - { name: wrong, type: i32, role: output, shape: [ROWS] }
launches:
  - { entry: spmv, grid: [\"ceil_div(ROWS, 64)\"], block: [64] }
reference: { source: r.cu, entry: reference, grid: [1], block: [1] }
";

/// A NumPy file of float32 numbers.
fn npy(count: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}\n");
    let mut content = b"\x93NUMPY\x01\x00".to_vec();
    content.extend((header.len() as u16).to_le_bytes());
    content.extend(header.as_bytes());
    content.extend((0..count).flat_map(|i| (i as f32 * 0.25).to_le_bytes()));
    content
}

/// A folder with the sparse matrix and its values.
fn graph(kernel: &str, space: &str) -> tempfile::TempDir {
    let folder = folder(&[
        ("k.cu", kernel),
        ("r.cu", GRAPH_REFERENCE),
        ("k.yaml", space),
    ]);
    std::fs::write(folder.path().join("values.npy"), npy(2000)).expect("written");
    folder
}

#[test]
fn data_comes_from_files_generators_and_structured_fills() {
    let folder = graph(GRAPH, GRAPH_SPACE);
    let (rows, exit) = check(folder.path());
    assert_eq!(exit, 0, "{rows:#?}");
    assert_eq!(rows[0]["verdict"], "ok", "{rows:#?}");
    let predict = run(folder.path(), "predict k.yaml --format json");
    predict.says(0, &[]);
    let predicted = predict.rows();
    assert_eq!(predicted[0]["verdict"], "ok", "{predicted:#?}");
    // A kernel that takes a wrong row is caught on this data.
    let wrong = GRAPH.replace("y[order[row]]", "y[row]");
    std::fs::write(folder.path().join("k.cu"), wrong).expect("written");
    let (rows, exit) = check(folder.path());
    assert_eq!(
        (exit, &rows[0]["verdict"]),
        (4, &serde_json::json!("incorrect")),
        "{rows:#?}"
    );
}

#[test]
fn data_that_does_not_fit_is_told_with_what_to_do() {
    let cases = [
        (
            "NNZ: 2000",
            "NNZ: 1999",
            "and 1999 elements of f32 take 7996",
        ),
        (
            "values.npy",
            "missing.npy",
            "cannot read the data of `values`",
        ),
        (
            "type: f32, role: input, shape: [NNZ]",
            "type: i32, role: input, shape: [NNZ]",
            "write `type: f32` here",
        ),
        ("kernel: make_x }", "kernel: make_z }", "make_z"),
        (
            "{ csr: { offsets: NNZ } }",
            "{ csr: { rows: NNZ } }",
            "write `csr: { offsets: NNZ }`",
        ),
        (
            "fill: boxes",
            "fill: { boxes: { min: 3, max: 1 } }",
            "`min` is larger than `max`",
        ),
        (
            "fill: sorted",
            "fill: { sparse: { rate: 3 } }",
            "write a number from 0 to 1",
        ),
        ("fill: sorted", "fill: sortd", "did you mean `sorted`?"),
        ("fill: sorted", "fill: csr", "`csr` needs a value"),
    ];
    for (from, to, says) in cases {
        let space = GRAPH_SPACE.replace(from, to);
        let folder = graph(GRAPH, &space);
        let output = run(folder.path(), "check k.yaml");
        let said = output.stderr + &output.stdout;
        assert!(matches!(output.code, 2 | 4), "{to}: {said}");
        assert!(said.contains(says), "{to}: {said}");
    }
}

#[test]
fn a_generator_that_does_wrong_is_named() {
    for (from, to, says) in [
        (
            "if (i < count)",
            "if (i < count && i != 7)",
            "leaves element 7 unwritten",
        ),
        ("if (i < count)", "if (i <= count)", "out_of_bounds"),
        (
            "unsigned long long count",
            "int count",
            "a generator is `void make_x(T* out",
        ),
    ] {
        let source = GRAPH.replacen(from, to, 1);
        let folder = graph(&source, GRAPH_SPACE);
        let output = run(folder.path(), "check k.yaml");
        let said = output.stderr + &output.stdout;
        assert_ne!(output.code, 0, "{said}");
        assert!(said.contains(says), "{to}: {said}");
    }
}
