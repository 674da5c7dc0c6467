//! Kernels as they lie in other people's projects: named by C++, with the host's headers.

use crate::program::{json, run, write};
use std::path::Path;

const SPACE: &str = "\
version: 1
kernel: scale
source: kernel.cu
problems:
  small: { SIZE: 1000 }
parameters:
  BLOCK: { values: [64, 128], default: 128 }
  FACTOR: { values: [2], default: 2 }
arguments:
  - { name: x, type: f32, role: input, shape: [SIZE] }
  - { name: y, type: f32, role: output, shape: [SIZE] }
launches:
  - { entry: \"ENTRY\", grid: [\"ceil_div(SIZE, BLOCK)\", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: reference.cu, entry: plain, grid: [\"ceil_div(SIZE, 64)\", 1, 1], block: [64, 1, 1] }
";

const KERNEL: &str = "\
namespace outer { namespace inner {
template <int THREADS, int TIMES, typename T>
__global__ void scale(const T* x, T* y) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < SIZE) y[i] = TIMES * x[i];
}
} }
__global__ void unmangled(const float* x, float* y) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < SIZE) y[i] = FACTOR * x[i];
}
namespace { __global__ void hidden(const float* x, float* y) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < SIZE) y[i] = FACTOR * x[i];
} }
";

const REFERENCE: &str = "\
__global__ void plain(const float* x, float* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < SIZE) y[i] = FACTOR * x[i];
}
";

/// The verdicts of a kernel on both configurations.
fn verdicts(folder: &Path, kernel: &str, entry: &str) -> (Vec<String>, i32, String) {
    write(folder, "kernel.cu", kernel);
    write(folder, "reference.cu", REFERENCE);
    write(folder, "space.yaml", &SPACE.replace("ENTRY", entry));
    let (code, rows) = json(folder, "check space.yaml --sample 2 --seed 1");
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
    let detail = rows
        .first()
        .map_or(String::new(), |row| text(row, "detail"));
    (
        rows.iter().map(|row| text(row, "verdict")).collect(),
        code,
        detail,
    )
}

#[test]
fn kernels_are_named_by_cpp_and_need_no_extern_c() {
    let dir = tempfile::tempdir().unwrap();
    for entry in [
        "outer::inner::scale<BLOCK, {FACTOR}, float>",
        "outer::inner::scale<{BLOCK}, 1 + FACTOR - 1, float>",
        "unmangled",
        "hidden",
    ] {
        let (found, code, detail) = verdicts(dir.path(), KERNEL, entry);
        assert_eq!(found, ["ok"; 2], "{entry}: {detail}");
        assert_eq!(code, 0);
    }
}

#[test]
fn a_template_argument_that_is_wrong_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let entry = "outer::inner::scale<BLOCK, 1 + {FACTOR}, float>";
    let (found, code, _) = verdicts(dir.path(), KERNEL, entry);
    assert_eq!(found, ["incorrect"; 2]);
    assert_eq!(code, 4);
}

#[test]
fn an_entry_that_names_nothing_is_refused_with_what_to_type() {
    let dir = tempfile::tempdir().unwrap();
    for (entry, said) in [
        ("missing", "there is no kernel `missing` (found: "),
        ("outer::scale<BLOCK, 2, float>", "correct `entry`"),
        ("outer::inner::scale<BLOCK>", "correct `entry`"),
    ] {
        let (found, code, detail) = verdicts(dir.path(), KERNEL, entry);
        assert_eq!(
            found.first().map(String::as_str),
            Some("compile_failed"),
            "{entry}"
        );
        assert!(detail.contains(said), "{entry}: {detail}");
        assert_eq!(code, 4);
    }
}

#[test]
fn the_types_of_a_templates_instance_are_compared_with_the_declared_ones() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "kernel.cu", KERNEL);
    write(dir.path(), "reference.cu", REFERENCE);
    let entry = "outer::inner::scale<BLOCK, {FACTOR}, double>";
    write(dir.path(), "space.yaml", &SPACE.replace("ENTRY", entry));
    run(dir.path(), "check space.yaml").says(2, &["double"]);
}

const HEADERS: &str = "\
#include <algorithm>
#include <array>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cub/block/block_reduce.cuh>
#include <cuda.h>
#include <cuda/std/type_traits>
#include <cuda_runtime.h>
#include <iostream>
#include <limits>
#include <mma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <type_traits>
#include <vector>
using namespace std;
namespace cg = cooperative_groups;
static_assert(std::is_same<int64_t, std::int64_t>::value && sizeof(uint) == 4, \"\");
extern \"C\" __global__ void scale(const float* x, float* y) {
  assert(blockDim.x == BLOCK);
  cg::thread_block block = cg::this_thread_block();
  const int64_t i = blockIdx.x * BLOCK + block.thread_rank();
  const float bound = std::numeric_limits<float>::max();
  if (i < SIZE && i < INT_MAX) {
    float value = x[i];
    float copy;
    __builtin_memcpy(&copy, &value, sizeof copy);
    copy = std::min(std::max(copy, -FLT_MAX), INFINITY);
    y[i] = copy * FACTOR * float(M_PI / M_PI) + (isnan(value) ? NAN : 0.0f) + (fabs(value) > bound);
    if (value > FLT_MAX) printf(\"%f\\n\", value);
  }
}
";

#[test]
fn headers_of_the_host_and_of_cccl_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let (found, _, detail) = verdicts(dir.path(), HEADERS, "scale");
    assert_eq!(found, ["ok"; 2], "{detail}");
}

#[test]
fn an_assertion_that_fails_is_a_crash_at_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = HEADERS.replace("blockDim.x == BLOCK", "blockDim.x != BLOCK");
    let (found, _, detail) = verdicts(dir.path(), &wrong, "scale");
    assert_eq!(found, ["crashed"; 2], "{detail}");
}

#[test]
fn what_has_no_device_part_is_told_with_what_to_type() {
    let dir = tempfile::tempdir().unwrap();
    for (code, said) in [
        (
            "#include <my_project/util.h>\n",
            "compile: { include: [FOLDER] }",
        ),
        (
            "#include <vector>\n__device__ std::vector<int> v;\n",
            "`std::vector` is host code",
        ),
        (
            "int main() { return 0; }\n",
            "--device-as-default-execution-space",
        ),
    ] {
        let (found, _, detail) = verdicts(dir.path(), &format!("{code}{HEADERS}"), "scale");
        assert_eq!(
            found.first().map(String::as_str),
            Some("compile_failed"),
            "{code}"
        );
        assert!(detail.contains(said), "{code}: {detail}");
    }
}

#[test]
fn names_of_the_standard_library_are_those_of_libcudacxx() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "kernel.cu", include_str!("data/std_names.cu"));
    for options in ["", "compile: { options: [\"--std=c++20\"] }\n"] {
        let space = format!(
            "version: 1\nkernel: k\nsource: kernel.cu\nproblems: {{ one: {{ SIZE: 2 }} }}\narguments:\n  \
             - {{ name: x, type: i32, role: output, shape: [SIZE] }}\nlaunches:\n  \
             - {{ entry: k, grid: [1], block: [1] }}\nreference: none\n{options}"
        );
        write(dir.path(), "space.yaml", &space);
        let (_, rows) = json(dir.path(), "check space.yaml");
        assert_eq!(
            rows[0]["verdict"], "unchecked",
            "{options}{}",
            rows[0]["detail"]
        );
    }
}
