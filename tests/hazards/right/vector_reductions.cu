// Vectors of float and half added to global memory: atomic element by element, also towards scalar atomics.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg z f32[4] inout zeros
//@ arg h u32[4] inout zeros
//@ arg y i32[4] output
//@ launch finish grid 1 block 1
//@ expect y = constant(1)
#include <cuda_fp16.h>
extern "C" __global__ void kernel(float4* z, unsigned* h, int* y) {
    int t = threadIdx.x;
    float4 old = atomicAdd(z, make_float4(1.0f, 2.0f, 0.0f, -1.0f));
    if (old.w > 0.0f) atomicAdd(&z->x, 100.0f);
    if (t < 16) atomicAdd(&z->z, 0.5f);
    atomicAdd((float2*)z + 1, make_float2(0.25f, 0.0f));
    asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %1, %2, %2};" ::"l"(h), "r"(0x3c003c00u), "r"(0xb8003800u)
                 : "memory");
}
extern "C" __global__ void finish(float4* z, unsigned* h, int* y) {
    y[0] = z->x == 128.0f && z->y == 256.0f;
    y[1] = z->z == 48.0f && z->w == -128.0f;
    y[2] = h[0] == 0x58005800u && h[1] == h[0];
    y[3] = h[2] == 0xd4005400u && h[3] == h[2];
}
