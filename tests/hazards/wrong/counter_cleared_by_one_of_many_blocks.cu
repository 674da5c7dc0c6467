// Sixteen blocks count; one of them, whichever runs beside which, clears the counter first.
//@ verdict race
//@ launch kernel grid 16 block 32
//@ arg count i32[1] inout zeros
extern "C" __global__ void kernel(int* count) {
    if (blockIdx.x == 9 && threadIdx.x == 0) count[0] = 0; // HAZARD
    atomicAdd(count, 1); // HAZARD
}
