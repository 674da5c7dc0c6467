//! The warp-group cores of gemm_f16 and gemm_bf16 (`CORE=1`, `CORE=2`) and of attention_f16 and attention_bf16
//! (`CORE=3`): their results, and the hazards of a core that lacks one of its fences, waits or barriers.

use crate::kernels::broken::{Fault, Subject};
use crate::kernels::failures;

/// All swizzles, epilogues and ways to fill the device, one to four warp groups, and products that cross steps.
const PRODUCTS: [&str; 8] = [
    "CORE=1,BM=64,BN=16,BK=16,WM=64,WN=16,STAGES=1",
    "CORE=1,BM=64,BN=32,BK=16,WM=64,WN=32,STAGES=6,G2S=3",
    "CORE=1,BM=128,BN=96,BK=32,WM=64,WN=48,STAGES=2,UNROLL_K=2",
    "CORE=1,BM=192,BN=96,BK=32,WM=64,WN=96,STAGES=3,WG_PENDING=1,EPILOGUE=2",
    "CORE=1,BM=64,BN=128,BK=64,WM=64,WN=64,STAGES=3,SPLIT_K=4,RASTER=1",
    "CORE=1,BM=128,BN=128,BK=64,WM=128,WN=128,STAGES=2,MIN_BLOCKS=2,PERSISTENT=2",
    "CORE=1,BM=256,BN=192,BK=64,WM=128,WN=192,STAGES=3,WG_PENDING=1,EPILOGUE=1",
    "CORE=1,BM=128,BN=256,BK=64,WM=64,WN=256,STAGES=4,WG_PENDING=1",
];

/// Tensor maps: all swizzles, both kinds of shared tiles, two and four blocks a cluster, all ways to store.
const MAPPED: [&str; 7] = [
    "CORE=2,BM=64,BN=16,BK=16,WM=64,WN=16,STAGES=2",
    "CORE=2,BM=128,BN=96,BK=32,WM=64,WN=96,STAGES=3,EPILOGUE=1,CLUSTER=2,UNROLL_K=2",
    "CORE=2,BM=64,BN=64,BK=64,WM=64,WN=32,STAGES=2,CLUSTER=4,MULTICAST=1,EPILOGUE=2,RASTER=1",
    "CORE=2,BM=128,BN=128,BK=32,WM=64,WN=64,STAGES=4,SPLIT_K=4,CLUSTER=4,WG_PENDING=1",
    "CORE=2,BM=64,BN=96,BK=32,WM=64,WN=48,STAGES=3,PERSISTENT=1,EPILOGUE=1,WG_PENDING=1,MIN_BLOCKS=1",
    "CORE=2,BM=256,BN=128,BK=64,WM=128,WN=128,STAGES=3,PERSISTENT=1,EPILOGUE=1,CLUSTER=2,L2_HINT=128",
    "CORE=2,BM=128,BN=256,BK=64,WM=64,WN=256,STAGES=4,PERSISTENT=1,EPILOGUE=1,WG_PENDING=1,CLUSTER=2,MULTICAST=1",
];

/// All ways to fill tiles and to hand them over, one to three warp groups, products beside the softmax,
/// registers that move between warp groups.
const ATTENTION: [&str; 8] = [
    "CORE=3,BM=64,BN=64,WARPS=4,STAGES_K=1,STAGES_V=1",
    "CORE=3,BM=128,BN=128,WARPS=8,STAGES_K=2,STAGES_V=2,BARRIERS=1,PIPE_QK=1",
    "CORE=3,BM=64,BN=32,WARPS=4,STAGES_K=3,STAGES_V=2,PRODUCERS=2,HANDOVER=0,PIPE_QK=1,EPILOGUE=1",
    "CORE=3,BM=64,BN=80,WARPS=4,STAGES_K=2,STAGES_V=2,BARRIERS=1,PIPE_QK=1,SPLIT_KV=3,RESCALE=8",
    "CORE=3,BM=192,BN=16,WARPS=12,STAGES_K=1,STAGES_V=1,EPILOGUE=2,PERSISTENT=1,KV_ORDER=1,UNROLL_KV=2",
    "CORE=3,BM=64,BN=48,WARPS=4,STAGES_K=2,STAGES_V=3,PRODUCERS=1,HANDOVER=1,PERSISTENT=1,EPILOGUE=1",
    "CORE=3,BM=192,BN=32,WARPS=12,STAGES_K=2,STAGES_V=2,BARRIERS=1,PIPE_QK=1,TURNS=1,PERSISTENT=1",
    "CORE=3,BM=128,BN=128,WARPS=8,STAGES_K=2,STAGES_V=2,PRODUCERS=4,HANDOVER=1,PIPE_QK=1,EPILOGUE=1",
];

#[test]
fn the_warp_group_core_is_right_and_free_of_hazards() {
    let mut wrong = Vec::new();
    let all = [
        ("gemm_f16", None, &PRODUCTS[..]),
        ("gemm_f16", Some("chunks"), &MAPPED[..]),
        ("attention_f16", None, &ATTENTION[..]),
        ("attention_bf16", None, &ATTENTION[6..7]),
        // Further types and sizes of the same code, which `make nightly` checks.
        ("gemm_bf16", None, &PRODUCTS[6..]),
        ("gemm_f16", Some("even"), &MAPPED[1..4]),
        ("gemm_bf16", Some("chunks"), &MAPPED[6..]),
        ("attention_bf16", None, &ATTENTION[7..]),
    ];
    let checked = match std::env::var_os("TUNER_KERNELS_SAMPLE") {
        Some(_) => all.len(),
        None => 4,
    };
    for (kernel, problem, configurations) in all.into_iter().take(checked) {
        let mut arguments = vec!["--device", "vgpu:h200"];
        arguments.extend(problem.iter().flat_map(|name| ["--problem", name]));
        arguments.extend(configurations.iter().flat_map(|one| ["--config", one]));
        wrong.extend(failures(kernel, &arguments));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What all faults are shown on.
const SUBJECT: Subject = Subject {
    device: "vgpu:h200",
    space: ("", ""),
};

const UNPUBLISHED: &str =
    "a wgmma reads shared memory that `cp.async` wrote, without `fence.proxy.async`";
const UNFENCED: &str = "a wgmma uses registers that changed after the last `wgmma.fence`";
const UNFINISHED: &str = "reads the accumulators of a wgmma that was not waited for";
const OVERWRITTEN: &str = "a write of shared memory is not ordered with a wgmma";
const UNFILLED: &str = "a read of shared memory is not ordered with an asynchronous copy";
const PUBLISH: &str = "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");";
const FENCE: &str = "asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");";

#[test]
fn a_product_without_a_fence_or_a_wait_is_a_race() {
    // Five steps of 32, so that stages are used again.
    let plain = "CORE=1,BN=64,STAGES=3";
    let pending = "CORE=1,BN=64,STAGES=3,WG_PENDING=1";
    let core = "warpgroup.cuh";
    let waits = "wait_groups<(AHEAD > 0 ? AHEAD - 1 : 0)>();";
    let faults = [
        ("wgmma.cuh", PUBLISH, "", plain, UNPUBLISHED),
        ("wgmma.cuh", FENCE, "", plain, UNFENCED),
        (
            core,
            "if (WG_PENDING) wait_products<0>();",
            "",
            pending,
            UNFINISHED,
        ),
        (
            core,
            "wait_products<WG_PENDING>();\n    }\n",
            "wait_products<1>();\n    }\n",
            plain,
            OVERWRITTEN,
        ),
        (
            core,
            "STAGES - 1 - WG_PENDING;",
            "STAGES - 1;",
            pending,
            OVERWRITTEN,
        ),
        (core, waits, "wait_groups<AHEAD>();", plain, UNFILLED),
    ];
    SUBJECT.assert_races("gemm_f16", "thin", &faults);
}

#[test]
fn copies_by_tensor_maps_without_a_wait_are_a_race() {
    let one = "CORE=2,BN=64,STAGES=2,EPILOGUE=1,PERSISTENT=1";
    let shared = "CORE=2,BN=128,WN=128,STAGES=2,EPILOGUE=1,CLUSTER=2";
    let panels = "CORE=2,BN=192,WN=192,STAGES=2,EPILOGUE=1";
    let core = "tensor_copies.cuh";
    let full = "mbarrier_wait(place.full(), place.parity);";
    let products = "warpgroup.cuh";
    let empty = "mbarrier_wait(place.empty(), place.parity ^ 1);";
    let read = "cp.async.bulk.wait_group.read %0;\" ::\"n\"(PANELS_IN_FLIGHT - 1)";
    let early = "cp.async.bulk.wait_group.read %0;\" ::\"n\"(PANELS_IN_FLIGHT)";
    let address = "(at & 0x3ffff) >> 4";
    let faults = [
        (
            products,
            full,
            "",
            one,
            "a bulk copy that was not waited for",
        ),
        (core, read, early, panels, "is not ordered with"),
        (core, "        publish();\n", "", one, "fence.proxy.async"),
        (
            "wgmma.cuh",
            address,
            "at >> 4",
            shared,
            "of shared memory is not ordered with",
        ),
    ];
    SUBJECT.assert_races("gemm_f16", "even", &faults);
    // A stage that is filled before it is empty ends a phase early: the next one never ends.
    for configuration in [one, shared] {
        let fault: Fault = (core, empty, "", configuration, "");
        let found = SUBJECT.check("gemm_f16", "even", &fault);
        let stopped = found.starts_with("race: ") || found.starts_with("deadlock: ");
        assert!(stopped && found.contains("tensor_copies.cuh"), "{found}");
    }
}

#[test]
fn attention_without_a_fence_or_a_wait_is_a_race() {
    let ring = "CORE=3,BM=64,BN=32,WARPS=4,STAGES_K=2,STAGES_V=2,BARRIERS=1,PIPE_QK=1";
    let handed =
        "CORE=3,BM=64,BN=32,WARPS=4,STAGES_K=2,STAGES_V=2,PRODUCERS=1,HANDOVER=1,PIPE_QK=1";
    let core = "warpgroup.cuh";
    let values = "        wait_products<0>();\n        pin(rows.o[0]);\n        after_values(ring, work, j);\n    }\n    if";
    let late = "        pin(rows.o[0]);\n        after_values(ring, work, j);\n    }\n    if";
    let early = "        after_values(ring, work, j);\n        wait_products<0>();\n        pin(rows.o[0]);\n    }\n    if";
    let copies = "wait_groups<(STAGES_K < STAGES_V ? STAGES_K : STAGES_V) - 2>();";
    let fewer = "wait_groups<(STAGES_K < STAGES_V ? STAGES_K : STAGES_V) - 1>();";
    let faults = [
        ("wgmma.cuh", PUBLISH, "", ring, UNPUBLISHED),
        ("wgmma.cuh", PUBLISH, "", handed, UNPUBLISHED),
        ("wgmma.cuh", FENCE, "", ring, UNFENCED),
        (
            core,
            "wait_products<VALUES ? 1 : 0>();",
            "wait_products<VALUES ? 2 : 1>();",
            ring,
            UNFINISHED,
        ),
        (core, values, late, ring, OVERWRITTEN),
        (core, values, early, handed, OVERWRITTEN),
        ("kernel.cu", copies, fewer, ring, UNFILLED),
    ];
    SUBJECT.assert_races("attention_f16", "longer_keys", &faults);
}
