// One warp counts with atomics while another resets the counter with a plain store.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* y) {
    __shared__ int count;
    int t = threadIdx.x;
    if (t == 32) count = 0; // HAZARD
    if (t < 32) atomicAdd(&count, 1); // HAZARD
    __syncthreads();
    if (t == 0) y[0] = count;
}
