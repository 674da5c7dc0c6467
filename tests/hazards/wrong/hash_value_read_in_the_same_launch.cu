// The key of a hash slot is set atomically, but its value is read by others without any order.
//@ verdict race
//@ also uninitialized
//@ launch kernel grid 2 block 32
//@ arg keys i32[8] inout constant -1
//@ arg values i32[8] inout zeros
//@ arg y i32[64] output
extern "C" __global__ void kernel(int* keys, int* values, int* y) {
    int i = blockIdx.x * 32 + threadIdx.x, key = i % 8;
    if (atomicCAS(&keys[key], -1, key) == -1) values[key] = key + 1; // HAZARD
    y[i] = values[key] >= 0; // HAZARD
}
