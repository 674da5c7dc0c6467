//! `tuner adopt --run` of programs whose block and size are macros of the build or numbers of the host.

use crate::program::{Ended, ended, tuner};
use std::path::Path;

/// The kernel takes no size, and the file does not define the block.
const PROGRAM: &str = r"
#include <cstdlib>
__global__ void fill(float *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x / blockDim.x; }
int main(int, char **words) {
  int n = atoi(words[1]);
  float *out;
  cudaMalloc(&out, n * sizeof(float));
  dim3 threads(BLOCK_SIZE), blocks(n / BLOCK_SIZE);
  fill<<<blocks, threads>>>(out);
  return cudaDeviceSynchronize();
}
";

fn adopt(folder: &Path, command: &str, more: &[&str]) -> Ended {
    std::fs::write(folder.join("app.cu"), PROGRAM).expect("a file");
    let build = format!("nvcc -cudart shared -lineinfo app.cu -o app {command}");
    let mut adopted = tuner(folder);
    ended(
        adopted
            .args(["adopt", "app.cu", "--run", &build])
            .args(more),
    )
}

#[track_caller]
fn has_launch(folder: &Path) {
    let space = std::fs::read_to_string(folder.join("adopted/fill.yaml")).expect("a space");
    for part in [
        "grid: [\"ceil_div(N, TUNE_BLOCK_SIZE)\", 1, 1], block: [\"TUNE_BLOCK_SIZE\", 1, 1]",
        "default: 128",
        "shape: [\"N\"]",
        ": { N: 4096 }",
        ": { N: 1024 }",
    ] {
        assert!(space.contains(part), "{part} is missing:\n{space}");
    }
}

#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn a_block_that_only_the_build_gives_is_that_of_the_launch() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "-arch=sm_80 -DBLOCK_SIZE=128 && ./app {N}";
    adopt(folder.path(), command, &["--vary", "N=1024,4096"]).says(0, &["wrote adopted/fill.yaml"]);
    has_launch(folder.path());
}

#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn a_block_that_is_varied_has_one_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "-arch=sm_80 -DBLOCK_SIZE={BLOCK_SIZE} && ./app {N}";
    let vary = ["--vary", "BLOCK_SIZE=128,256", "--vary", "N=1024,4096"];
    adopt(folder.path(), command, &vary).says(0, &["wrote adopted/fill.yaml"]);
    has_launch(folder.path());
}

#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn a_build_for_another_gpu_names_the_device_that_runs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "-arch=sm_90 -DBLOCK_SIZE=128 && ./app 1024";
    let refused = adopt(folder.path(), command, &[]);
    refused.says(
        2,
        &["no code for sm_80", "-arch=sm_80, or choose --device vgpu:"],
    );
    let device = ["--device", "vgpu:h100"];
    adopt(folder.path(), command, &device).says(0, &["wrote adopted/fill.yaml"]);
}

/// The type of the coefficients is the second branch's, and a scale has it, too.
const OF_A_BRANCH: &str = r"
#ifdef DOUBLE
typedef double real;
#else
typedef float real;
#endif
__constant__ real taps[5];
__constant__ real scale;
__global__ void fir(const real *x, real *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  real sum = 0;
  for (int k = 0; k < 5 && i + k < n; ++k) sum += taps[k] * x[i + k];
  if (i < n) y[i] = scale * sum;
}
int main() {
  const int n = 5000;
  real host[n], coefficients[5] = {1, 2, 3, 2, 1}, half = 0.5f, *x, *y;
  for (int i = 0; i < n; ++i) host[i] = i % 17;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(taps, coefficients, sizeof coefficients);
  cudaMemcpyToSymbol(scale, &half, sizeof half);
  fir<<<(n + 255) / 256, 256>>>(x, y, n);
  return cudaDeviceSynchronize();
}
";

#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn variables_have_the_type_of_the_branch_that_was_built() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("app.cu"), OF_A_BRANCH).expect("a file");
    let build = "nvcc -cudart shared -lineinfo -arch=sm_80 app.cu -o app && ./app";
    let adopted = ended(tuner(folder.path()).args(["adopt", "app.cu", "--run", build]));
    adopted.says(0, &["wrote adopted/fir.yaml"]);
    let mut check = tuner(folder.path());
    let check = check.args(["check", "adopted/fir.yaml", "--device", "vgpu:a100"]);
    ended(check.args(["--config", "default"])).says(0, &["ok"]);
}

/// Two kernels of one name, whose launches are alike.
const OVERLOADS: &str = r"
__global__ void scale(float *y, int n, float by) { int i = threadIdx.x; if (i < n) y[i] *= by; }
__global__ void scale(double *y, int n, double by) { int i = threadIdx.x; if (i < n) y[i] *= by; }
template <typename T> void run(T by) {
  T data[100], *y;
  for (int i = 0; i < 100; ++i) data[i] = i;
  cudaMalloc(&y, sizeof data);
  cudaMemcpy(y, data, sizeof data, cudaMemcpyHostToDevice);
  scale<<<1, 128>>>(y, 100, by);
}
int main() { run(2.0); run(3.0f); return cudaDeviceSynchronize(); }
";

#[test]
#[cfg_attr(not(nvcc), ignore = "needs nvcc: scripts/get-nvcc")]
fn the_overload_that_was_launched_is_adopted() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("app.cu"), OVERLOADS).expect("a file");
    let build = "nvcc -cudart shared -lineinfo -arch=sm_80 app.cu -o app && ./app";
    for (to, entry, ty) in [
        ("first", None, "f64"),
        ("other", Some("scale(float*, int, float)"), "f32"),
    ] {
        let mut adopt = tuner(folder.path());
        adopt.args(["adopt", "app.cu", "--run", build, "-o", to]);
        adopt.args(entry.iter().flat_map(|entry| ["--entry", entry]));
        ended(&mut adopt).says(0, &["--entry 'NAME(…)'", &format!("wrote {to}/scale.yaml")]);
        let space = format!("{to}/scale.yaml");
        let text = std::fs::read_to_string(folder.path().join(&space)).expect("a space");
        assert!(text.contains(&format!("type: {ty}")), "{text}");
        let mut check = tuner(folder.path());
        check.args(["check", &space, "--device", "vgpu:a100"]);
        ended(check.args(["--config", "default"])).says(0, &["ok"]);
    }
}
