// An offset that an asm statement shifts before anyone set it becomes part of an address.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    unsigned at = threadIdx.x;
    asm volatile("shl.b32 %0, %0, 1;" : "=r"(at)); // CONFLICT
    y[threadIdx.x] = x[at & 31]; // HAZARD
}
