// Block 0 clears the counter with a plain store and adds to it; the others add without waiting.
//@ verdict race
//@ launch kernel grid 3 block 1
//@ arg count i32[1] inout zeros
extern "C" __global__ void kernel(int* count) {
    if (blockIdx.x == 0) {
        count[0] = 0; // HAZARD
        atomicAdd(count, 1);
    } else {
        atomicAdd(count, 1); // HAZARD
    }
}
