//! Predictions of kernels whose blocks wait for each other: a block that is executed alone would wait
//! for ever.

use crate::program::words;
use assert_cmd::Command;

const SPACE: &str = r#"
version: 1
kernel: centre
source: kernel.cu
problems:
  main: { N: 4096 }
parameters:
  MEETS: { values: [1, 3], default: 1 }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: count, type: u32, role: inout, shape: [1], fill: zeros }
  - { name: sums, type: f32, role: scratch, shape: ["N // 64"] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: centre, grid: ["N // 64"], block: [64], cooperative: $COOPERATIVE }
reference: { source: kernel.cu, entry: centre, grid: ["N // 64"], block: [64] }
"#;

/// Blocks leave a word each, meet, and read the words of all.
const KERNEL: &str = r#"
__device__ void meet(unsigned* count) {
    __syncthreads();
    if (threadIdx.x == 0) {
#if COOPERATIVE
        unsigned high, low, old, now;
        asm("mov.u32 %0, %%envreg1;" : "=r"(high));
        asm("mov.u32 %0, %%envreg2;" : "=r"(low));
        unsigned* word = (unsigned*)((unsigned long long)high << 32 | low) + 1;
        unsigned add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(old) : "l"(word), "r"(add) : "memory");
        do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
        while (!((old ^ now) & 0x80000000u));
#else
        __threadfence();
        unsigned before = atomicAdd(count, 1);
        while (*(volatile unsigned*)count < (before / gridDim.x + 1) * gridDim.x) {}
        __threadfence();
#endif
    }
    __syncthreads();
}
extern "C" __global__ void centre(const float* x, unsigned* count, float* sums, float* y) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x == 0) sums[blockIdx.x] = x[i];
    for (int n = 0; n < MEETS; ++n) meet(count);
    float all = 0;
#pragma unroll 1
    for (int b = 0; b < N / 64; ++b) all += ((volatile float*)sums)[b];
    y[i] = x[i] - all / N;
}
"#;

/// Rows of `tuner predict`, and what it says of its cost.
fn predicted(cooperative: bool) -> (Vec<serde_json::Value>, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let space = SPACE.replace("$COOPERATIVE", if cooperative { "true" } else { "false" });
    let kernel = format!("#define COOPERATIVE {}\n{KERNEL}", i32::from(cooperative));
    for (name, text) in [("space.yaml", space), ("kernel.cu", kernel)] {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    std::fs::write(folder.path().join("both.csv"), "MEETS\n1\n3\n").expect("the file is written");
    let mut command = Command::new(crate::rig::program());
    command
        .current_dir(&folder)
        .env("TUNER_CACHE", folder.path());
    command.args(words(
        "predict space.yaml --device vgpu:l4 --configs both.csv --format json",
    ));
    let output = command.assert().success().get_output().clone();
    let rows = serde_json::from_slice(&output.stdout).expect("rows");
    (rows, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_block_of_a_cooperative_grid_finds_the_others_there_and_runs_to_its_end() {
    let (rows, said) = predicted(true);
    assert_eq!(rows.len(), 2, "{said}");
    let number = |row: &serde_json::Value, name: &str| row[name].as_f64().expect("a number");
    for row in &rows {
        let doubts = row["reliability"].as_str().expect("words");
        assert!(doubts.contains("waits of the whole grid"), "{doubts}");
        assert!(!doubts.contains("did not run to its end"), "{doubts}");
        let stored = number(row, "global_store_bytes");
        assert!(stored >= 64.0 * (4.0 + 256.0), "{stored}");
    }
    // Each thread reads a word of every block; a meeting more costs each block a few loads of one thread.
    let loaded = rows.iter().map(|row| number(row, "global_load_bytes"));
    let loaded: Vec<f64> = loaded.collect();
    let once = 64.0 * 64.0 * 64.0 * 4.0;
    assert!(
        loaded
            .iter()
            .all(|bytes| (once..1.1 * once).contains(bytes)),
        "{loaded:?}"
    );
}

#[test]
fn a_block_that_waits_for_others_is_left_where_it_waits() {
    let (rows, said) = predicted(false);
    for row in &rows {
        let doubts = row["reliability"].as_str().expect("words");
        assert!(doubts.contains("did not run to its end"), "{doubts}");
        // As PTX it is cut after as many instructions as the machine code is.
        let executed = row["warp_instructions"].as_f64().expect("a number");
        assert!(executed < 64.0 * 1e6, "{executed}\n{said}");
    }
}

#[test]
fn blocks_beyond_the_data_add_no_traffic_and_take_none_away() {
    // Grids of up to forty times as many blocks as there is data for.
    let space = r#"
version: 1
kernel: add
source: kernel.cu
problems:
  main: { N: 10000000 }
parameters:
  TIMES: { values: [1, 2, 8, 40], default: 1 }
arguments:
  - { name: a, type: f32, role: input, shape: [N] }
  - { name: b, type: f32, role: output, shape: [N] }
launches:
  - { entry: add, grid: ["ceil_div(N, 64) * TIMES"], block: [64] }
reference: none
"#;
    let kernel = "extern \"C\" __global__ void add(const float* a, float* b) {\n\
                  int i = blockIdx.x * 64 + threadIdx.x;\n    if (i < N) b[i] = a[i] + 1;\n}\n";
    let folder = crate::program::folder(&[("space.yaml", space), ("kernel.cu", kernel)]);
    std::fs::write(folder.path().join("all.csv"), "TIMES\n1\n2\n8\n40\n").expect("a file");
    let line = "predict space.yaml --device vgpu:h100 --configs all.csv";
    let (_, rows) = crate::program::json(folder.path(), line);
    let of = |row: usize, name: &str| rows[row][name].as_f64().expect("a number");
    for (row, times) in [2.0, 8.0, 40.0].into_iter().enumerate() {
        for name in ["global_load_bytes", "time_us"] {
            // The share of busy blocks is estimated from a sample.
            let ratio = of(row + 1, name) / of(0, name);
            assert!((0.75..1.35).contains(&ratio), "{times} {name}: {ratio}");
        }
        let doubts = rows[row + 1]["reliability"].as_str().expect("words");
        let told = doubts.contains("of the blocks do nothing");
        assert!(told || times == 2.0, "{doubts}");
    }
}
