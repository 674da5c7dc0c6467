// A thread reads the very words it copies, before it waits for them.
//@ verdict race
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg y f32[32] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[32];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + t) : "memory"); // CONFLICT
    float v = *(volatile float*)&s[t]; // HAZARD
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[t] = v;
}
