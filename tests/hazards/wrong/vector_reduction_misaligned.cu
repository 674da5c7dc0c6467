// A float4 added at an address that is a multiple of 4 bytes only.
//@ verdict misaligned
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg y f32[8] inout zeros
extern "C" __global__ void kernel(float* y) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(y + 1), "f"(1.0f) : "memory");  // HAZARD
}
