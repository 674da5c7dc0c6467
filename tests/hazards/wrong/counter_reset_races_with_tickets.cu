// The counter is reset by block 0 with a plain store while other blocks still take tickets.
//@ verdict race
//@ launch kernel grid 4 block 32
//@ arg count i32[1] inout zeros
//@ arg y i32[4] output
extern "C" __global__ void kernel(int* count, int* y) {
    if (threadIdx.x == 0) {
        int ticket = atomicAdd(count, 1); // HAZARD
        if (ticket == 0) *count = 0; // HAZARD
        y[blockIdx.x] = 1;
    }
}
