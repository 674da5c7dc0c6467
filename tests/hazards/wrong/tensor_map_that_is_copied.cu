// Without `__grid_constant__` the compiler copies the map to local memory, where no copy finds it.
//@ verdict crashed
//@ arch sm_90
//@ launch kernel grid 1 block 128
//@ arg x f32[1024] input arange
//@ arg y f32[1024] output
//@ map mx x 32,32 box 32,32
#include "../bulk.cuh"
struct alignas(64) Copied {
    unsigned long long opaque[16];
};
extern "C" __global__ void kernel(const float* x, float* y, Copied mx) {
    __shared__ __align__(128) float s[1024];
    volatile unsigned long long* own = (volatile unsigned long long*)&mx;
    own[0] = own[0];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 4096);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(ADDRESS(s)), "l"(&mx), "r"(0), "r"(0), "r"(ADDRESS(&bar)) : "memory"); // HAZARD
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 1024; i += 128) y[i] = s[i];
}
