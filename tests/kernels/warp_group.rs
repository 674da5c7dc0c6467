//! The warp-group core of gemm_f16 and gemm_bf16 (`CORE=1`): its results, and the hazards of a core that
//! lacks one of its fences, waits or barriers.

use crate::kernels::failures;
use crate::program::{root, tuner};
use std::fs;
use std::path::Path;

/// All swizzles, epilogues and ways to fill the device, one to four warp groups, and products that cross steps.
const CONFIGURATIONS: [&str; 8] = [
    "CORE=1,BM=64,BN=16,BK=16,WM=64,WN=16,STAGES=1",
    "CORE=1,BM=64,BN=32,BK=16,WM=64,WN=32,STAGES=6,G2S=3",
    "CORE=1,BM=128,BN=96,BK=32,WM=64,WN=48,STAGES=2,UNROLL_K=2",
    "CORE=1,BM=192,BN=96,BK=32,WM=64,WN=96,STAGES=3,WG_PENDING=1,EPILOGUE=2",
    "CORE=1,BM=64,BN=128,BK=64,WM=64,WN=64,STAGES=3,SPLIT_K=4,RASTER=1",
    "CORE=1,BM=128,BN=128,BK=64,WM=128,WN=128,STAGES=2,MIN_BLOCKS=2,PERSISTENT=2",
    "CORE=1,BM=256,BN=192,BK=64,WM=128,WN=192,STAGES=3,WG_PENDING=1,EPILOGUE=1",
    "CORE=1,BM=128,BN=256,BK=64,WM=64,WN=256,STAGES=4,WG_PENDING=1",
];

#[test]
fn the_warp_group_core_is_right_and_free_of_hazards() {
    let mut wrong = Vec::new();
    for (kernel, configurations) in [
        ("gemm_f16", &CONFIGURATIONS[..]),
        ("gemm_bf16", &CONFIGURATIONS[6..]),
    ] {
        let mut arguments = vec!["--device", "vgpu:h200"];
        arguments.extend(configurations.iter().flat_map(|one| ["--config", one]));
        wrong.extend(failures(kernel, &arguments));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks a copy of the kernel in which `correct` is replaced by `broken`.
fn check_broken(folder: &Path, correct: &str, broken: &str, configuration: &str) -> String {
    let core = folder.join("templates/gemm_f16/warpgroup.cuh");
    let text = fs::read_to_string(root().join("templates/gemm_f16/warpgroup.cuh")).unwrap();
    assert_eq!(text.matches(correct).count(), 1, "{correct}");
    fs::write(core, text.replace(correct, broken)).unwrap();
    let output = tuner(folder)
        .args(["check", "search_spaces/gemm_f16.yaml", "--device"])
        .args(["vgpu:h200", "--problem", "thin", "--format", "json"])
        .args(["--config", configuration])
        .output()
        .expect("tuner runs");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    format!(
        "{}: {}",
        rows[0]["verdict"].as_str().unwrap_or_default(),
        rows[0]["detail"].as_str().unwrap_or_default()
    )
}

#[test]
fn a_warp_group_core_without_a_fence_or_a_wait_is_a_race() {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "search_spaces/gemm_f16.yaml",
        "templates/gemm_f16/kernel.cu",
    ] {
        let copy = folder.path().join(file);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(root().join(file), copy).unwrap();
    }
    // Five steps of 32, so that stages are used again.
    let plain = "CORE=1,BN=64,STAGES=3";
    let pending = "CORE=1,BN=64,STAGES=3,WG_PENDING=1";
    for (correct, broken, configuration, hazard) in [
        (
            "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");",
            "",
            plain,
            "a wgmma reads shared memory that ordinary stores wrote, without `fence.proxy.async`",
        ),
        (
            "asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");",
            "",
            plain,
            "a wgmma uses registers that changed after the last `wgmma.fence`",
        ),
        (
            "if (WG_PENDING) wait_products<0>();",
            "",
            pending,
            "reads the accumulators of a wgmma that was not waited for",
        ),
        (
            "wait_products<WG_PENDING>();",
            "wait_products<1>();",
            plain,
            "a write of shared memory is not ordered with a wgmma",
        ),
        (
            "STAGES - 1 - WG_PENDING;",
            "STAGES - 1;",
            pending,
            "a write of shared memory is not ordered with a wgmma",
        ),
        (
            "wait_groups<(AHEAD > 0 ? AHEAD - 1 : 0)>();",
            "wait_groups<AHEAD>();",
            plain,
            "a read of shared memory is not ordered with an asynchronous copy",
        ),
    ] {
        let found = check_broken(folder.path(), correct, broken, configuration);
        let expected = found.starts_with("race: ") && found.contains(hazard);
        assert!(expected, "without `{correct}`: {found}");
    }
}
