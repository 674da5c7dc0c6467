// A thread arrives at an mbarrier that nobody initialised.
//@ verdict uninitialized|crashed
//@ launch kernel grid 1 block 32
//@ arg y i32[32] output
extern "C" __global__ void kernel(int* y) {
    __shared__ __align__(8) unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(b) : "memory"); // HAZARD
    y[threadIdx.x] = 1;
}
