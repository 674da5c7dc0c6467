// Every thread sets the same flag to one with a plain store.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[1] output
extern "C" __global__ void kernel(const int* x, int* y) {
    if (x[threadIdx.x] >= 0) {
        y[0] = 1; // HAZARD
    }
}
