// The consumer's flag is neither volatile nor atomic: it is read once, and then for ever.
//@ verdict timeout|deadlock|race
//@ launch kernel grid 1 block 64
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* y) {
    __shared__ int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0; // CONFLICT
    __syncthreads();
    if (t == 0) {
        ready = 1; // CONFLICT
    } else if (t == 32) {
        while (ready == 0) { // HAZARD
            __nanosleep(1); // HAZARD
        }
        y[0] = 1;
    }
}
