//! Programs that nvcc builds, where it is installed (`scripts/get-nvcc`).

use super::text;
use std::process::Command;

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_file_is_compiled_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("app.cu");
    let code = r#"
#include <cstdio>
#include <cstdlib>
__global__ void twice(int *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i <= n) x[i] *= 2; }
int main(int, char **arguments) {
  int n = atoi(arguments[1]), *x, *h = new int[n];
  for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&x, n * sizeof(int));
  cudaMemcpy(x, h, n * sizeof(int), cudaMemcpyHostToDevice);
  twice<<<(n + 255) / 256, 256>>>(x, n);
  printf("%d\n", cudaDeviceSynchronize());
}
"#;
    std::fs::write(&source, code).expect("a file");
    let run = |size: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
            .args(["exec", "--build"])
            .arg(&source)
            .args(["--", size])
            .output()
            .expect("tuner");
        let code = output.status.code();
        (code, text(&output.stdout), text(&output.stderr))
    };
    // The last block of 1024 threads has no thread beyond the end.
    assert_eq!(run("1024").0, Some(0));
    let (code, stdout, stderr) = run("1000");
    assert_eq!((code, stdout.as_str()), (Some(4), "700\n"), "{stderr}");
    assert!(stderr.contains("app.cu:4"), "{stderr}");
}
