// Each of two blocks waits for the other's flag before it sets its own.
//@ verdict deadlock
//@ launch kernel grid 2 block 32
//@ arg flags i32[2] inout zeros
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* flags, int* y) {
    if (threadIdx.x == 0) {
        while (atomicAdd(&flags[1 - blockIdx.x], 0) == 0) { // HAZARD
        }
        atomicExch(&flags[blockIdx.x], 1);
        y[blockIdx.x] = 1;
    }
}
