// The clock's lowest bits decide the result.
//@ verdict nondeterministic|incorrect
//@ launch kernel grid 1 block 32
//@ arg y i32[32] output
extern "C" __global__ void kernel(int* y) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
    y[threadIdx.x] = (int)(now & 0xff);
}
