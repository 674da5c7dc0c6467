//! The cores of gemm_f16 and gemm_bf16 (`CORE=3`) and of attention_f16 and attention_bf16 (`CORE=4`) in tensor memory:
//! their results, and the hazards of a core that lacks one of its waits or hands a buffer over too early.

use crate::kernels::broken::{Fault, Subject};
use crate::kernels::failures;
use crate::program::{ended, root, tuner};

/// All swizzles and epilogues, 64 and 128 rows a product, one to three products a tile, one and two blocks.
const PRODUCTS: [&str; 6] = [
    "CORE=3,BM=64,BN=16,BK=16,WM=64,WN=16,STAGES=2",
    "CORE=3,BM=192,BN=96,BK=32,WM=64,WN=48,STAGES=3,SPLIT_K=16,RASTER=1",
    "CORE=3,BM=128,BN=192,BK=64,WM=128,WN=96,STAGES=2,SPLIT_K=4,UNROLL_K=2,CLUSTER=2,MULTICAST=1",
    "CORE=3,BM=128,BN=256,BK=64,WM=128,WN=64,STAGES=4,EPILOGUE=1,PERSISTENT=1",
    "CORE=3,BM=128,BN=128,BK=64,WM=128,WN=64,STAGES=4,EPILOGUE=2,CLUSTER=2,MULTICAST=1",
    "CORE=3,BM=256,BN=128,BK=32,WM=128,WN=32,STAGES=3,EPILOGUE=1,PERSISTENT=1,CLUSTER=2,MULTICAST=1",
];

/// One and two groups of warps, all ways to fill tiles, all epilogues, tiles of keys that are no multiple of 32.
const ATTENTION: [&str; 6] = [
    "CORE=4,BM=128,BN=16,WARPS=4,STAGES_K=1,STAGES_V=1",
    "CORE=4,BM=128,BN=80,WARPS=4,STAGES_K=2,STAGES_V=3,BARRIERS=1,SPLIT_KV=3,RESCALE=8,KV_ORDER=1",
    "CORE=4,BM=128,BN=64,WARPS=4,STAGES_K=2,STAGES_V=1,PRODUCERS=1,HANDOVER=1,PERSISTENT=2,EPILOGUE=1",
    "CORE=4,BM=256,BN=32,WARPS=8,STAGES_K=1,STAGES_V=1,EPILOGUE=2,PERSISTENT=1,RESCALE=4,UNROLL_KV=2",
    "CORE=4,BM=256,BN=64,WARPS=8,STAGES_K=2,STAGES_V=2,PRODUCERS=2,HANDOVER=1,PERSISTENT=1,EPILOGUE=1",
    "CORE=4,BM=256,BN=128,WARPS=8,STAGES_K=2,STAGES_V=2,PRODUCERS=4,HANDOVER=1,RESCALE=8",
];

#[test]
fn the_cores_in_tensor_memory_are_right_and_free_of_hazards() {
    let mut wrong = Vec::new();
    for (kernel, problems, configurations) in [
        ("gemm_f16", &["chunks"][..], &PRODUCTS[..]),
        ("gemm_bf16", &["chunks"], &PRODUCTS[5..]),
        ("attention_f16", &["ragged", "wide"], &ATTENTION[..]),
        ("attention_bf16", &["keys384"], &ATTENTION[5..]),
    ] {
        let mut arguments = vec!["--device", "vgpu:b200"];
        arguments.extend(problems.iter().flat_map(|name| ["--problem", name]));
        arguments.extend(configurations.iter().flat_map(|one| ["--config", one]));
        wrong.extend(failures(kernel, &arguments));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// File that both cores share.
const SHARED: &str = "tcgen05.cuh";

/// Many small tiles: each persistent block has three, so that both sets of sums are used again.
const TILES: Subject = Subject {
    device: "vgpu:b200",
    space: (
        "chunks: { M: 129, N: 72, K: 40 }",
        "chunks: { M: 128, N: 4752, K: 16 }",
    ),
};
const SETS: &str = "CORE=3,BM=128,BN=16,BK=16,WM=64,WN=16,STAGES=2,PERSISTENT=1";

#[test]
fn sums_and_panels_that_are_used_again_are_waited_for() {
    let panels = "CORE=3,BM=64,BN=64,BK=16,WM=64,WN=64,STAGES=2,PERSISTENT=1,EPILOGUE=1";
    for configuration in [SETS, panels] {
        let right: Fault = (
            "kernel.cu",
            "gemm_mapped(",
            "gemm_mapped(",
            configuration,
            "",
        );
        let found = TILES.check("gemm_f16", "chunks", &right);
        assert_eq!(found, "ok: ", "{configuration}");
    }
}

#[test]
fn sums_without_a_wait_or_released_too_early_are_a_race() {
    // Without its wait a block alone may also take the next phase for its own and never end.
    let pair = "CORE=3,BM=128,BN=32,BK=16,WM=128,WN=16,STAGES=2,CLUSTER=2,MULTICAST=1";
    let core = "tensor_memory.cuh";
    let loaded = "asm volatile(\"tcgen05.wait::ld.sync.aligned;\" ::: \"memory\");";
    let full = "mbarrier_wait(sums.full(), sums.parity);";
    let empty = "mbarrier_wait(sums.empty(), sums.parity ^ 1);";
    let copied = "mbarrier_wait(place.full(), place.parity);";
    let last = "if (at + WN == SET_COLUMNS) release_sums";
    let early = "if (at == 0) release_sums";
    let overwritten = "a write of tensor memory is not ordered with a read";
    let faults = [
        (core, full, "", pair, overwritten),
        (core, empty, "", SETS, overwritten),
        (
            SHARED,
            loaded,
            "",
            SETS,
            "a tcgen05.ld that was not waited for",
        ),
        (
            core,
            copied,
            "",
            SETS,
            "a bulk copy that was not waited for",
        ),
        ("kernel.cu", last, early, SETS, overwritten),
    ];
    TILES.assert_races("gemm_f16", "chunks", &faults);
}

/// Three steps of keys, of which the maxima move.
const STEPS: Subject = Subject {
    device: "vgpu:b200",
    space: ("", ""),
};

#[test]
fn scores_and_values_without_a_wait_are_a_race() {
    let plain = "CORE=4,BM=128,BN=128,WARPS=4,STAGES_K=2,STAGES_V=2";
    let groups = "CORE=4,BM=256,BN=64,WARPS=8,STAGES_K=2,STAGES_V=2,PRODUCERS=1,HANDOVER=1";
    let core = "tensor_memory.cuh";
    let loaded = "asm volatile(\"tcgen05.wait::ld.sync.aligned;\" ::: \"memory\");";
    let scores = "        mbarrier_wait(scores, ring.passed + j & 1);\n";
    let last = "mbarrier_wait(values, ring.passed + j & 1);";
    let earlier = "mbarrier_wait(values, ring.passed + j - 1 & 1);";
    let stored = "        wait_for_stores();\n";
    let publish = "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");";
    let product = "a write of tensor memory is not ordered with a read";
    let faults = [
        (
            SHARED,
            loaded,
            "",
            plain,
            "a tcgen05.ld that was not waited for",
        ),
        (
            core,
            scores,
            "",
            plain,
            "a write of tensor memory is not ordered with a write",
        ),
        (
            core,
            last,
            "",
            plain,
            "a write of shared memory is not ordered with a tcgen05.mma",
        ),
        (core, earlier, "", groups, product),
        (
            core,
            stored,
            "",
            plain,
            "a tcgen05.st that was not waited for",
        ),
        (
            "wgmma.cuh",
            publish,
            "",
            plain,
            "without `fence.proxy.async`",
        ),
    ];
    STEPS.assert_races("attention_f16", "keys384", &faults);
}

/// A wait whose address is spilled reads it again in each turn, and is a wait nevertheless.
#[test]
fn producers_with_spilled_registers_do_not_change_the_scale_of_a_prediction() {
    let configurations = "CORE,BM,BN,WARPS,STAGES_K,STAGES_V,RESCALE,MIN_BLOCKS,PERSISTENT,PRODUCERS,HANDOVER\n\
                4,256,128,8,1,1,8,1,1,0,0\n\
                4,256,128,8,1,1,8,1,1,4,1\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = folder.path().join("configs.csv");
    std::fs::write(&table, configurations).expect("the file is written");
    let mut command = tuner(root());
    command
        .args(["predict", "attention_bf16", "--device", "vgpu:b200"])
        .args(["--problem", "mission", "--format", "json", "--configs"])
        .arg(&table);
    let rows = ended(&mut command).rows();
    let times: Vec<f64> = rows
        .iter()
        .filter_map(|row| row["time_us"].as_f64())
        .collect();
    let [first, second] = times[..] else {
        panic!("{rows:?}");
    };
    let spilled = rows[1]["spill_bytes"].as_u64() > Some(0);
    assert!(
        spilled && (second / first).ln().abs() < 3_f64.ln(),
        "{rows:?}"
    );
}
