// More dynamic shared memory than any block can have.
//@ verdict launch_failed
//@ launch kernel grid 1 block 32 shared 240000
//@ arg y i32[32] output
extern "C" __global__ void kernel(int* y) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = s[threadIdx.x];
}
