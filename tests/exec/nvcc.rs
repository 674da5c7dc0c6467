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

/// Copies a matrix box by box; its argument is the stride of a first map, in bytes.
const BOXES: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cudaTypedefs.h>
__global__ void copy(const __grid_constant__ CUtensorMap from, float *to) {
  __shared__ alignas(128) float box[32 * 32];
  __shared__ alignas(8) unsigned long long bar;
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar), s = (unsigned)__cvta_generic_to_shared(box);
  int x = blockIdx.x * 32, y = blockIdx.y * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(b) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(s), "l"(&from), "r"(x), "r"(y), "r"(b) : "memory");
  }
  asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n @!p bra L;\n}" ::"r"(b) : "memory");
  for (int i = threadIdx.x; i < 1024; i += 128) to[(y + i / 32) * 64 + x + i % 32] = box[i];
}
int main(int, char **arguments) {
  void *found; cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
  auto encode = (PFN_cuTensorMapEncodeTiled_v12000)found;
  float *x, *y, h[4096];
  for (int i = 0; i < 4096; i++) h[i] = i;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&y, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  CUtensorMap map;
  cuuint64_t sizes[2] = {64, 64}, stride = atoi(arguments[1]);
  cuuint32_t box[2] = {32, 32}, steps[2] = {1, 1};
  CUresult encoded = encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, x, sizes, &stride, box, steps,
                            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (encoded) return printf("error %d\n", encoded), 1;
  copy<<<dim3(2, 2), 128>>>(map, y);
  cudaMemset(h, 0, 0);
  cudaMemcpy(h, y, sizeof h, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 4096; i++) wrong += h[i] != i;
  printf("%d wrong\n", wrong);
}
"#;

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn boxes_of_a_tensor_are_copied_by_the_programs_map() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("boxes.cu");
    std::fs::write(&source, BOXES).expect("a file");
    let run = |stride: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
            .args(["exec", "--device", "vgpu:h100", "--build"])
            .arg(&source)
            .args(["--", stride])
            .output()
            .expect("tuner");
        let code = output.status.code();
        (code, text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run("256");
    assert_eq!((code, stdout.as_str()), (Some(0), "0 wrong\n"), "{stderr}");
    let (code, stdout, stderr) = run("200");
    assert_eq!((code, stdout.as_str()), (Some(1), "error 1\n"), "{stderr}");
    assert!(
        stderr.contains("the stride of dimension 1 is 200 bytes"),
        "{stderr}"
    );
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn clusters_are_launched_and_counted() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/clusters.cu");
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args(["exec", "--device", "vgpu:h100", "--build"])
        .arg(&source)
        .output()
        .expect("tuner");
    let stderr = text(&output.stderr);
    let expected = "attribute 0 wrong\nkernel 0 wrong\nlargest 8\nlargest allowed 16\n\
                    active cudaSuccess, at once yes\nnot a multiple cudaErrorInvalidClusterSize\n\
                    too large cudaErrorInvalidClusterSize\nallowed cudaSuccess\n";
    assert_eq!(text(&output.stdout), expected, "{stderr}");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn arrays_textures_and_surfaces_of_both_interfaces_work() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/textures.cu");
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args(["exec", "--build"])
        .arg(&source)
        .output()
        .expect("tuner");
    let stderr = text(&output.stderr);
    let expected = "array 40 6 0, 32 bits\nlinear 0 wrong\npitched 0 wrong\n\
                    bytes 0.000 0.200 0.400 1.000\nline 0 5 6 7 8 0\nvolume 24 28 32 36\n\
                    layers 0 16 32\nsurface 0 wrong\nintegers filtered cudaErrorInvalidFilterSetting\n\
                    surface of a plain array cudaErrorInvalidValue\nmipmap cudaErrorNotSupported\n\
                    beyond cudaErrorInvalidValue\ndriver 5 0 4 8 12 5\ndestroyed twice 1\n";
    assert_eq!(text(&output.stdout), expected, "{stderr}");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("not supported: cudaMallocMipmappedArray"),
        "{stderr}"
    );
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn launches_are_predicted_with_and_without_running_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("app.cu");
    let code = r#"
#include <cstdio>
__global__ void add(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
int main() {
  int *x, h[1024] = {};
  cudaMalloc(&x, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  for (int i = 0; i < 3; i++) add<<<4, 256>>>(x);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d %d\n", h[0], h[1023]);
}
"#;
    std::fs::write(&source, code).expect("a file");
    let run = |option: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
            .args(["exec", "--build"])
            .arg(&source)
            .arg(option)
            .output()
            .expect("tuner");
        (text(&output.stdout), text(&output.stderr))
    };
    // The blocks that the model runs leave no trace in memory.
    let (stdout, stderr) = run("--predict");
    assert_eq!(stdout, "3 3\n", "{stderr}");
    assert!(!stderr.contains("lower bound"), "{stderr}");
    let (stdout, stderr) = run("--predict-only");
    assert_eq!(stdout, "0 0\n", "{stderr}");
    assert!(stderr.contains("no launch ran"), "{stderr}");
}

/// Runs the program of graphs with these arguments; returns exit code, standard output and standard error.
fn graphs(arguments: &[&str]) -> (Option<i32>, String, String) {
    built("graphs.cu", arguments)
}

/// Builds and runs a program of this folder.
pub(super) fn built(name: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    built_with(name, &[], arguments)
}

/// Builds and runs a program of this folder with options for nvcc.
pub(super) fn built_with(
    name: &str,
    options: &[&str],
    arguments: &[&str],
) -> (Option<i32>, String, String) {
    built_for(name, &[], options, arguments)
}

/// The same with options for `tuner exec`.
pub(super) fn built_for(
    name: &str,
    exec: &[&str],
    options: &[&str],
    arguments: &[&str],
) -> (Option<i32>, String, String) {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec");
    let source = tests.join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .arg("exec")
        .args(exec)
        .arg("--build")
        .arg(&source)
        .args(
            options
                .iter()
                .map(|option| format!("--nvcc-option={option}")),
        )
        .arg("--")
        .args(arguments)
        .output()
        .expect("tuner");
    let code = output.status.code();
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn graphs_have_conditional_nodes_and_account_for_their_memory() {
    let (code, stdout, stderr) = graphs(&[]);
    let expected = "loop 10 again 11\nif 1: 0 1 1\nif 2: 10 1 1\nswitch 2: 1 10 0\n\
                    two bodies of a loop refused\nchild cudaErrorNotSupported\n\
                    copy into a fill cudaErrorInvalidValue\n\
                    created: used 0 of 0, reserved 0 of 0\n\
                    launched: used 4096 of 4096, reserved 4096 of 4096\n\
                    trimmed: used 1024 of 4096, reserved 1024 of 4096\n\
                    freed: used 1024 of 0, reserved 1024 of 4096\n\
                    trimmed: used 0 of 0, reserved 0 of 4096\n\
                    set cudaErrorInvalidValue\ndriver 77\n";
    assert_eq!(stdout, expected, "{stderr}");
    assert_eq!(code, Some(0), "{stderr}");
}

/// Nodes run in an order that satisfies the dependencies, whatever the order of their creation, and only these
/// order them.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn dependencies_alone_order_the_nodes_of_a_graph() {
    for (mode, code, stdout) in [
        ("chain", 0, "value 6, expected 6\n"),
        ("unordered", 4, "value 6, expected 6\n"),
        ("fork", 0, "value 6, expected 6\n"),
        ("late", 4, "value 6, expected 6\n"),
        ("unjoined", 0, "end 904\n"),
    ] {
        let (ended, said, stderr) = built("graph_edges.cu", &[mode]);
        assert_eq!(
            (ended, said.as_str()),
            (Some(code), stdout),
            "{mode}: {stderr}"
        );
        assert_eq!(stderr.contains("unordered"), code == 4, "{mode}: {stderr}");
    }
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_program_asks_for_the_dependencies_of_a_graph() {
    let (code, stdout, stderr) = built("graph_edges.cu", &["questions"]);
    let expected = "roots 1 1\nbefore 2 1\nafter 2, with room for one 2\n\
                    edges 4: 0-1 0-2 1-3 2-3\nremoved: roots 2, again 1\ncircular 1\n";
    assert_eq!((code, stdout.as_str()), (Some(0), expected), "{stderr}");
}

/// The files share their symbols as the compiler links them, and hazards are found in all of them.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn relocatable_device_code_is_linked() {
    let other = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/linked_other.cu");
    let other = other.to_string_lossy();
    for (arguments, code) in [(&["ordered"][..], 0), (&[], 4)] {
        let options = ["-rdc=true", &*other];
        let (ended, stdout, stderr) = built_with("linked_main.cu", &options, arguments);
        assert_eq!(ended, Some(code), "{stdout}{stderr}");
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines, ["from other", "from main", "0 1141"], "{stderr}");
        assert_eq!(stderr.contains("linked_other.cu:12"), code == 4, "{stderr}");
    }
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn machine_code_of_several_files_runs_without_ptx() {
    let other =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/separate_other.cu");
    for (device, code) in [("vgpu:a100", 80), ("vgpu:h100", 90), ("vgpu:rtx5090", 120)] {
        // In place of the option of `--build`, which adds PTX.
        let target = [format!("-arch=compute_{code}"), format!("-code=sm_{code}")];
        let [arch, code] = &target;
        let options = ["-rdc=true", arch, code, &*other.to_string_lossy()];
        let (ended, stdout, stderr) =
            built_for("separate_code.cu", &["--device", device], &options, &[]);
        assert_eq!(ended, Some(0), "{stdout}{stderr}");
        let lines: Vec<&str> = stdout.lines().collect();
        let expected = [
            "call cudaSuccess 42 44 46 4",
            "choose cudaSuccess 2 6 4 12",
            "dispatch cudaSuccess 101 202 103 204",
            "read cudaSuccess 71 142 73 144",
        ];
        assert_eq!(lines, expected, "{stderr}");
        assert!(stderr.contains("hazards of call: not checked"), "{stderr}");
    }
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn kernels_launch_kernels() {
    let options = ["-rdc=true", "-lcudadevrt"];
    // The hazard is in the kernel that a kernel launched.
    let fault = "out_of_bounds in add at block (0,0,0), thread (40,0,0)";
    for (arguments, error, hazard) in [
        (&[][..], None, ""),
        (&["wrong"], Some("cudaErrorIllegalAddress"), fault),
        (&["wait"], Some("cudaErrorLaunchFailure"), "before it ends"),
    ] {
        let (ended, stdout, stderr) = built_with("device_launches.cu", &options, arguments);
        let code = if error.is_some() { 4 } else { 0 };
        assert_eq!(ended, Some(code), "{stdout}{stderr}");
        let mut expected = vec![
            "cudaErrorInvalidConfiguration invalid configuration argument, then 0",
            "cudaSuccess",
            "1 2 3 99 | 7 5 515",
            "depth 24",
        ];
        expected.extend(error);
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines, expected, "{stderr}");
        assert!(stderr.contains(hazard), "{stderr}");
    }
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn nodes_of_graphs_are_described_and_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("graph.dot");
    let (code, stdout, stderr) = built("graph_nodes.cu", &[&file.to_string_lossy()]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "passed\n"),
        "{stdout}{stderr}"
    );
    let dot = std::fs::read_to_string(file).expect("a graph");
    assert!(
        dot.starts_with("digraph") && dot.contains("_Z3addPii") && dot.matches("->").count() == 4,
        "{dot}"
    );
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn calls_of_the_host_return_what_is_documented() {
    let (code, stdout, stderr) = built_with("host_calls.cu", &["-lcuda"], &[]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "passed\n"),
        "{stdout}{stderr}"
    );
    // The program ends before it synchronizes with its last kernel.
    assert!(
        stderr.contains("8 bytes of device printf were never printed"),
        "{stderr}"
    );
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn arguments_that_cuda_refuses_are_refused() {
    let (code, stdout, stderr) = built_with("invalid_calls.cu", &["-lcuda"], &[]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "passed\n"),
        "{stdout}{stderr}"
    );
}

/// The host waits for copies from page-locked memory, not for those from pageable memory, which a staging buffer
/// holds; the host's end of a copy or fill is ordered as the device's.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn memory_of_host_and_device_is_ordered_between_streams() {
    for (case, code) in [
        ("pinned", 0),
        ("registered", 0),
        ("pageable", 4),
        ("through", 4),
        ("written", 4),
        ("same", 0),
        ("filled", 0),
        ("filled in a stream", 4),
    ] {
        let (ended, _, stderr) = built("stream_order.cu", &[case]);
        assert_eq!(ended, Some(code), "{case}: {stderr}");
        assert_eq!(stderr.contains("unordered"), code == 4, "{case}: {stderr}");
    }
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn threads_that_set_one_condition_race() {
    let (code, _, stderr) = graphs(&["race"]);
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("race at"), "{stderr}");
    assert!(stderr.contains("graphs.cu:13"), "{stderr}");
}

#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_machine_with_less_memory_than_the_gpu_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("app.cu");
    let code = "#include <cstdio>\nint main() {\n  void *x;\n\
                for (size_t gigabytes : {8, 80}) printf(\"%d\\n\", cudaMalloc(&x, gigabytes << 30));\n}\n";
    std::fs::write(&source, code).expect("a file");
    // 4 GB of addresses stand for a small machine. 80 GB are more than the GPU has.
    let line = "ulimit -v 4000000; exec \"$0\" exec --device vgpu:a100 --build \"$1\"";
    let output = Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_tuner")])
        .arg(&source)
        .output()
        .expect("a shell");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(stdout, "2\n2\n", "{stderr}");
    let named = "an allocation of 8589934592 bytes failed: this machine has less free memory";
    assert!(stderr.contains(named), "{stderr}");
    assert!(!stderr.contains("85899345920"), "{stderr}");
}

#[test]
fn an_nvcc_that_was_fetched_before_gets_the_names_that_its_linker_looks_for() {
    let data = tempfile::tempdir().expect("a folder");
    let root = data.path().join("tuner/nvcc/nvidia/cu13");
    for folder in ["bin", "lib"] {
        std::fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    std::fs::copy("/bin/sh", root.join("bin/nvcc")).expect("a program");
    std::fs::write(root.join("lib/libcudart.so.13"), "").expect("a file");
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/get-nvcc");
    let output = Command::new("sh")
        .arg(script)
        .env("XDG_DATA_HOME", data.path())
        .output()
        .expect("a shell");
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("export PATH="), "{stderr}");
    assert!(root.join("lib64/libcudart.so").exists(), "{stderr}");
}
