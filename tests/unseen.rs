//! Sources as nobody had them in mind: what `adopt` makes of each.

use crate::program::{ended, folder, json, tuner};
use std::path::Path;

/// Adopts `kernel.cu` with this text; the search space of the kernel of that name.
fn adopted(text: &str, kernel: &str, more: &[&str]) -> (tempfile::TempDir, String) {
    let dir = folder(&[("kernel.cu", text)]);
    let said = ended(tuner(dir.path()).args(["adopt", "kernel.cu"]).args(more));
    said.says(0, &[]);
    let space = dir.path().join(format!("adopted/{kernel}.yaml"));
    let space = std::fs::read_to_string(space).expect("the space");
    (dir, space)
}

/// What `adopt` says of a file that it refuses.
fn refused(text: &str, more: &[&str]) -> String {
    let dir = folder(&[("kernel.cu", text)]);
    let said = ended(tuner(dir.path()).args(["adopt", "kernel.cu"]).args(more));
    said.says(2, &[]);
    said.stderr
}

/// The verdicts of all rows of a check, each once.
pub(crate) fn verdicts(folder: &Path, line: &str) -> Vec<String> {
    let (_, rows) = json(folder, line);
    let mut all: Vec<String> = rows
        .iter()
        .map(|row| row["verdict"].as_str().unwrap_or("").to_owned())
        .collect();
    all.sort();
    all.dedup();
    all
}

pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn every_definition_of_a_group_of_defaults_is_there_and_those_of_tiles_are_parameters() {
    let kernel = "\
#ifndef TILE_W
#define TILE_W 128
#define COLS 2048
#endif
#ifndef per_thread
#define per_thread 2
#endif
#ifndef ROWS
#define ROWS 8
#define LAST 3
#endif
__global__ void shift(float* out, const float* in) {
  int i = (blockIdx.x * TILE_W + threadIdx.x) * per_thread;
  for (int k = 0; k < per_thread; ++k)
    if (i + k < COLS) out[i + k] = in[i + k] + ROWS + LAST;
}
void go(float* out, const float* in) {
  shift<<<(COLS + TILE_W * per_thread - 1) / (TILE_W * per_thread), TILE_W>>>(out, in);
}
";
    let (dir, space) = adopted(kernel, "shift", &[]);
    has(
        &space,
        &["TILE_W: { values: [32, 64", "per_thread: { values: ["],
    );
    assert_eq!(
        verdicts(dir.path(), "check adopted/shift.yaml"),
        ["unchecked"]
    );
}

#[test]
fn a_guessed_launch_follows_what_the_kernel_asks_for() {
    let tile = "\
#define TX 32
#define TY 4
__global__ void tile(float* out, const float* in, int w, int h) {
  __shared__ float s[TY][TX];
  int x = blockIdx.x * TX + threadIdx.x, y = blockIdx.y * TY + threadIdx.y;
  s[threadIdx.y][threadIdx.x] = (x < w && y < h) ? in[y * w + x] : 0.0f;
  __syncthreads();
  if (x < w && y < h) out[y * w + x] = s[threadIdx.y][threadIdx.x];
}
";
    let (dir, space) = adopted(tile, "tile", &[]);
    has(&space, &["block: [32, 4, 1]"]);
    assert_eq!(
        verdicts(dir.path(), "check adopted/tile.yaml"),
        ["unchecked"]
    );
    let columns = "\
__global__ void centre(float* a, int h, int w) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= w || threadIdx.y != 0) return;
  float sum = 0;
  for (int r = 0; r < h; ++r) sum += a[r * w + c];
  for (int r = 0; r < h; ++r) a[r * w + c] -= sum / h;
}
";
    let (dir, space) = adopted(columns, "centre", &[]);
    has(&space, &["grid: [\"ceil_div(w, 16)\", 1, 1]"]);
    assert_eq!(
        verdicts(dir.path(), "check adopted/centre.yaml"),
        ["unchecked"]
    );
    let single = "__global__ void one(float* a) { a[threadIdx.x] += 1; }\n";
    has(&adopted(single, "one", &[]).1, &["grid: [1, 1, 1]"]);
}

#[test]
fn counters_of_loops_zeroed_buffers_and_real_divisions_are_read_from_the_host() {
    let kernel = "\
#include <cuda_runtime.h>
#define N 1024
#define STEPS 100
__global__ void step(const float* source, float* field, int* done, int t, float scale, float inverse, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N && i < n) field[i] += source[t] * scale * inverse;
  if (atomicAdd(done, 1) == N - 1) *done = 0;
}
void go(int n) {
  float *source, *field; int* done;
  cudaMalloc((void**)&source, STEPS * sizeof(float));
  cudaMalloc((void**)&field, N * sizeof(float));
  cudaMalloc((void**)&done, sizeof(int));
  cudaMemset(done, 0, sizeof(int));
  float height = 0.016f;
  float scale = height / n;
  float inverse = 1.0f / scale;
  for (int t = 0; t < STEPS; t++) step<<<N / 256, 256>>>(source, field, done, t, scale, inverse, n);
}
";
    let (_, space) = adopted(kernel, "step", &[]);
    has(
        &space,
        &[
            "t: 0",
            "name: done, type: i32, role: inout, shape: [\"1\"], fill: zeros }",
            "value: \"0.016 / n\"",
            "value: \"1 / (0.016 / n)\"",
        ],
    );
}

#[test]
fn small_sizes_keep_an_element_for_each_thread() {
    let kernel = "\
#include <cuda_runtime.h>
__global__ void copy(const float* data, float* output, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  output[i] = data[(i * 17) & (size - 1)];
}
void go() {
  size_t work = 32768, bytes = 64 * 1024 * 1024;
  size_t words = bytes / sizeof(float);
  float *a, *b;
  cudaMalloc((void**)&a, sizeof(float) * words);
  cudaMalloc((void**)&b, sizeof(float) * words);
  copy<<<work / 256, 256>>>(a, b, words);
}
";
    let (dir, _) = adopted(kernel, "copy", &[]);
    let line = "check adopted/copy.yaml --problem small --config default";
    let (_, rows) = json(dir.path(), line);
    assert_ne!(rows[0]["verdict"], "out_of_bounds", "{rows:#?}");
}

#[test]
fn a_grid_without_a_value_is_guessed_and_says_so() {
    let kernel = "\
template <int N>
__global__ void twice(const float* in, float* out, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  for (int k = 0; k < N; ++k) if (i + k < n) out[i + k] = 2 * in[i + k];
}
struct Tensor { int element_size() const; };
void go(const float* in, float* out, int n, const Tensor& t) {
  typedef uint4 vector_t;
  const int N = sizeof(vector_t) / t.element_size();
  dim3 block(128);
  dim3 grid((n + block.x * N - 1) / (block.x * N));
  twice<4><<<grid, block>>>(in, out, n);
}
";
    let (dir, space) = adopted(kernel, "twice", &[]);
    assert!(!space.contains("sizeof"), "{space}");
    assert_eq!(
        verdicts(dir.path(), "check adopted/twice.yaml"),
        ["unchecked"]
    );
}

#[test]
fn a_kernel_in_a_branch_is_adopted_where_the_branch_is_compiled() {
    let kernel = "\
#if STAGED == 1
__global__ void copy(float* out, const float* in, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) { s[threadIdx.x] = in[i]; out[i] = s[threadIdx.x]; }
}
#else
__global__ void copy(float* out, const float* in, int n) {
  int i = blockIdx.x * per_block + threadIdx.x;
  if (i < n) out[i] = in[i];
}
#endif
";
    has(
        &refused(kernel, &[]),
        &["defines per_block", "--define per_block=VALUE"],
    );
    let (dir, _) = adopted(kernel, "copy", &["--define", "STAGED=1"]);
    assert_eq!(
        verdicts(dir.path(), "check adopted/copy.yaml"),
        ["unchecked"]
    );
    let (dir, space) = adopted(kernel, "copy", &["--define", "per_block=64,128"]);
    has(
        &space,
        &[
            "per_block: { values: [64, 128], default: 64",
            "block: [\"per_block\", 1, 1]",
        ],
    );
    assert_eq!(
        verdicts(dir.path(), "check adopted/copy.yaml"),
        ["unchecked"]
    );
    let only = "#if STAGED == 1\n__global__ void k(float* a) { a[0] = 1; }\n#endif\n";
    has(
        &refused(only, &[]),
        &["kernel.cu:2: `k` is not compiled", "#if STAGED == 1"],
    );
    let wrong = refused(only, &["--define", "STAGED"]);
    has(&wrong, &["such as TILE=16,32"]);
}

#[test]
fn attributes_between_type_and_name_and_spellings_of_other_compilers_are_read() {
    let kernel = "\
template <int CM, int T>
__global__ __launch_bounds__(T) void __cluster_dims__(CM, 1, 1) twice(float* out, const float* in, int n) {
  int i = blockIdx.x * T + threadIdx.x, l;
  __asm__ __volatile__(\"mov.u32 %0, %%laneid;\" : \"=r\"(l));
  if (i < n) out[i] = 2.0f * in[i] + l;
}
void go(float* out, const float* in, int n) { twice<1, 128><<<n / 128, 128>>>(out, in, n); }
__global__ void __maxnreg__(64) once(float* out) { out[threadIdx.x] = 1; }
void go2(float* out) { once<<<1, 64>>>(out); }
";
    let (dir, space) = adopted(kernel, "once", &[]);
    has(&space, &["block: [64, 1, 1]"]);
    assert_eq!(
        verdicts(dir.path(), "check adopted/once.yaml"),
        ["unchecked"]
    );
    assert!(dir.path().join("adopted/twice.yaml").exists());
}

#[test]
fn an_enumeration_with_directives_inside_is_cut_whole() {
    let kernel = "\
#include <nosuch_host_library.h>
namespace lib {
enum {
  KIND_NAN =
#define KIND_NAN 0
      KIND_NAN,
  KIND_ZERO =
#define KIND_ZERO 1
      KIND_ZERO
};
__device__ inline int kind(float v) { return v == 0 ? KIND_ZERO : KIND_NAN; }
}
__global__ void put(const float* in, int* out) { out[blockIdx.x * 64 + threadIdx.x] = lib::kind(in[threadIdx.x]); }
void go(const float* in, int* out, nosuch::Stream s) { put<<<4, 64>>>(in, out); }
";
    let (dir, _) = adopted(kernel, "put", &[]);
    assert_eq!(
        verdicts(dir.path(), "check adopted/put.yaml"),
        ["unchecked"]
    );
}

#[test]
fn an_access_is_put_down_to_the_buffer_whose_pointer_it_comes_from() {
    let kernel = "\
#include <cuda_runtime.h>
#include <cuda/std/type_traits>
#define N 128
__global__ void slab(float* sum, const float* a, int r) {
  int p = blockIdx.x * 64 + threadIdx.x;
  if (p < N) sum[r * N * N + p] = a[p - 4];
}
void go() {
  float *sum, *a;
  cudaMalloc((void**)&sum, N * N * N * sizeof(float));
  cudaMalloc((void**)&a, N * sizeof(float));
  slab<<<2, 64>>>(sum, a, 65536);
}
";
    let (dir, _) = adopted(kernel, "slab", &[]);
    let (_, rows) = json(dir.path(), "check adopted/slab.yaml");
    let hazards = rows[0]["hazards"].to_string();
    has(&hazards, &["of `sum`, which has", "at byte -16 of `a`"]);
}

#[test]
fn hazards_of_guessed_contents_are_not_those_of_the_program() {
    let kernel = "\
__global__ void scatter(float* out, const float* in, const int* at, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[at[i] / 2] = in[i];
}
void go(float* out, const float* in, const int* at, int n) { scatter<<<(n + 255) / 256, 256>>>(out, in, at, n); }
";
    let (dir, _) = adopted(kernel, "scatter", &[]);
    let (code, rows) = json(dir.path(), "check adopted/scatter.yaml --config default");
    assert_eq!(code, 4);
    assert_eq!(rows[0]["verdict"], "unchecked", "{rows:?}");
    let detail = rows[0]["detail"].as_str().expect("a detail");
    has(detail, &["with what is guessed of `at`: race:"]);
    // A permutation is one of the contents.
    let (dir, _) = adopted(&kernel.replace(" / 2", ""), "scatter", &[]);
    let (_, rows) = json(dir.path(), "check adopted/scatter.yaml --config default");
    let detail = rows[0]["detail"].as_str().expect("a detail");
    assert!(!detail.contains("race"), "{detail}");
}

#[test]
fn a_shared_array_with_an_extent_goes_as_far_as_the_launch_says() {
    let kernel = "\
__global__ void turn(const float* in, float* out) {
  extern __shared__ float s[32][32];
  float* flat = &s[0][0];
  for (int k = threadIdx.x; k < 2048; k += 128) flat[k] = in[k];
  __syncthreads();
  for (int k = threadIdx.x; k < 2048; k += 128) out[k] = flat[2047 - k];
}
void go(const float* in, float* out) { turn<<<1, 128, BYTES>>>(in, out); }
";
    for (bytes, verdict) in [("8192", "unchecked"), ("6144", "out_of_bounds")] {
        let (dir, _) = adopted(&kernel.replace("BYTES", bytes), "turn", &[]);
        let file = dir.path().join("adopted/turn.yaml");
        let space = std::fs::read_to_string(&file).unwrap();
        let guess = "shape: [\"128\"], guessed_extent: true";
        std::fs::write(&file, space.replace(guess, "shape: [\"2048\"]")).unwrap();
        assert_eq!(verdicts(dir.path(), "check adopted/turn.yaml"), [verdict]);
    }
}

/// One thread a block stores; the guess of 256 threads would be a race.
const ONE_THREAD: &str = "\
#include <stdint.h>
__global__ void put(float* out, int n, int step) {
  out[blockIdx.x * step] = (float)(uint32_t)threadIdx.x;
}
";

#[test]
fn a_kernel_without_a_launch_is_not_judged_and_says_what_is_needed() {
    let dir = folder(&[("kernel.cu", ONE_THREAD)]);
    let said = ended(tuner(dir.path()).args(["adopt", "kernel.cu"]));
    said.says(0, &["block and grid are guessed", "--launch 'grid=("]);
    let (code, rows) = json(dir.path(), "check adopted/put.yaml");
    assert_eq!(code, 4);
    for row in &rows {
        assert_eq!(row["verdict"], "unchecked", "{row}");
        assert_eq!(row["hazards"], serde_json::json!([]), "{row}");
        let detail = row["detail"].as_str().expect("a detail");
        has(
            detail,
            &["the launch of `put` is guessed", "with the guess: race"],
        );
    }
}

#[test]
fn a_stated_launch_with_its_sizes_is_judged() {
    let launch = "grid=((n + 2*step - 1) / (2 * step)) block=1";
    let more = ["--launch", launch, "--size", "n=4096", "--size", "step=2"];
    for standard in ["c++14", "c++20"] {
        let (dir, space) = adopted(
            ONE_THREAD,
            "put",
            &[&more[..], &["--std", standard]].concat(),
        );
        has(
            &space,
            &[
                "file: { n: 4096, step: 2 }    # as stated",
                "grid: [\"ceil_div(n, 2 * step)\", 1, 1], block: [1, 1, 1] }\n",
                &format!("\"-std={standard}\""),
            ],
        );
        assert_eq!(
            verdicts(dir.path(), "check adopted/put.yaml"),
            ["unchecked"]
        );
        let (code, _) = json(dir.path(), "check adopted/put.yaml");
        assert_eq!(code, 0);
    }
    let launch = ["--launch", "grid=(n, 1) block=(32)"];
    let racing = [&launch[..], &["--size", "n=64", "--size", "step=2"]].concat();
    let (dir, _) = adopted(ONE_THREAD, "put", &racing);
    assert_eq!(verdicts(dir.path(), "check adopted/put.yaml"), ["race"]);
}

#[test]
fn a_stated_launch_of_unknown_names_is_refused_with_the_sizes() {
    for (more, why) in [
        (
            &["--launch", "grid=(rows) block=(32)"][..],
            "`rows` of --launch cannot be read",
        ),
        (
            &["--launch", "grid=(n +) block=(32)"],
            "`n +` of --launch cannot be read",
        ),
        (
            &["--launch", "grid=(n) block=(32)", "--size", "m=3"],
            "it has no size `m`",
        ),
    ] {
        has(
            &refused(ONE_THREAD, more),
            &[why, "its sizes are n, step", "--size NAME=VALUE"],
        );
    }
    has(
        &refused(ONE_THREAD, &["--launch", "n, 32"]),
        &["grid=(X, Y, Z)"],
    );
    has(&refused(ONE_THREAD, &["--size", "n=many"]), &["n=many"]);
    has(
        &refused(ONE_THREAD, &["--size", "m=3"]),
        &["it has no size `m`"],
    );
}

#[test]
fn a_stated_size_is_that_of_a_structs_field_too() {
    let kernel = "\
struct Field { int n; float* data; };
__global__ void clear(Field field) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < field.n) field.data[i] = 0;
}
";
    let launch = "grid=(ceil_div(field_n, 64)) block=(64)";
    let (dir, space) = adopted(
        kernel,
        "clear",
        &["--launch", launch, "--size", "field_n=5000"],
    );
    has(
        &space,
        &[
            "file: { field_n: 5000 }",
            "n: field_n",
            "ceil_div(field_n, 64)",
        ],
    );
    assert_eq!(
        verdicts(dir.path(), "check adopted/clear.yaml"),
        ["unchecked"]
    );
    let misspelt = refused(kernel, &["--launch", launch, "--size", "field_m=5000"]);
    has(
        &misspelt,
        &["`ceil_div(field_n, 64)` of --launch cannot be read"],
    );
    has(
        &refused(kernel, &["--size", "field_m=5000"]),
        &["it has no size `field_m`"],
    );
}

/// A file beside the adopted one says how its kernel is launched only if it includes it.
#[test]
fn a_launch_of_another_kernel_of_the_name_is_not_taken() {
    let kernel = "__global__ void scale(float* a, int n) {\n\
                  int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i < n) a[i] *= 2;\n}\n";
    let main =
        "int main() {\n float* a;\n cudaMalloc(&a, 4096 * 4);\n scale<<<7, 96>>>(a, 500);\n}\n";
    let own = format!("__global__ void scale(float* a, int n) {{ a[threadIdx.x] = n; }}\n{main}");
    let including = format!("#include \"kernel.cu\"\n{main}");
    for (other, taken) in [(own, false), (including, true)] {
        let dir = folder(&[("kernel.cu", kernel), ("other.cu", &other)]);
        ended(tuner(dir.path()).args(["adopt", "kernel.cu"])).says(0, &[]);
        let space = std::fs::read_to_string(dir.path().join("adopted/scale.yaml"));
        let space = space.expect("the space");
        assert_eq!(space.contains("grid: [7, 1, 1]"), taken, "{space}");
    }
}
