// A key equal to the number of bins.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 9
//@ arg y i32[8] inout zeros
extern "C" __global__ void kernel(const int* x, int* y) {
    atomicAdd(&y[x[threadIdx.x]], 1); // HAZARD
}
