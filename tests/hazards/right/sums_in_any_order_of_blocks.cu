// Whole numbers added up by all blocks: the same in every order.
//@ launch kernel grid 16 block 64
//@ arg x i32[1024] input mod 19
//@ arg y i32[1] inout zeros
//@ expect y = sum(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    atomicAdd(y, x[blockIdx.x * 64 + threadIdx.x]);
}
