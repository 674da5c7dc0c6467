// Lane 0 clears a counter and adds to it; the other lanes of the warp add without a barrier.
//@ verdict race
//@ launch kernel grid 1 block 32
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) {
        sum = 0; // HAZARD
        atomicAdd(&sum, 1);
    }
    if (t != 0) atomicAdd(&sum, t); // HAZARD
    __syncthreads();
    if (t == 0) y[0] = sum;
}
