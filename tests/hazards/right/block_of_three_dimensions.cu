// Grid and block of three dimensions.
//@ launch kernel grid 2,3,2 block 4,3,5
//@ arg y i32[720] output
//@ expect y = iota()
extern "C" __global__ void kernel(int* y) {
    int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int i = b * 60 + t;
    y[i] = i;
}
