// A block asks for its cluster, and both blocks have the answer.
//@ arch sm_100a
//@ launch kernel grid 2 block 128 cluster 2
//@ arg a f16[8] input mod 7
//@ arg b f16[8] input mod 5
//@ arg c f32[256] output
//@ expect c = constant(43)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    __shared__ __align__(16) uint4 answer;
    BARRIER(bar);
    if (threadIdx.x == 0) EXPECT(bar, 16);
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0 && blockIdx.x == 0)
        asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all"
                     ".b128 [%0], [%1];" ::"r"(ADDRESS(&answer)), "r"(ADDRESS(&bar)) : "memory");
    WAIT(bar, 0);
    u32 more, x;
    asm volatile("{\n .reg .b128 answer;\n .reg .pred p;\n ld.shared.b128 answer, [%2];\n"
                 " clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;\n selp.u32 %0, 1, 0, p;\n"
                 " clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, answer;\n}"
                 : "=r"(more), "=r"(x) : "r"(ADDRESS(&answer)) : "memory");
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    c[blockIdx.x * 128 + threadIdx.x] = more ? (float)x + a[0] + b[0] : 43.0f;
}
