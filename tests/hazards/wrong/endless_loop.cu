// The loop counter steps over its end.
//@ verdict timeout
//@ launch kernel grid 1 block 32
//@ arg y i32[32] output
//@ arg n i32 33
//@ arg step i32 2
extern "C" __global__ void kernel(int* y, int n, int step) {
    unsigned v = threadIdx.x;
    for (int i = 0; i != n; i += step) { // HAZARD
        v = v * 1664525u + 1013904223u; // HAZARD
    }
    y[threadIdx.x] = v;
}
