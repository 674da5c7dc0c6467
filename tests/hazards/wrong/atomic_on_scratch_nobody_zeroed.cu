// A ticket counter in scratch memory that no launch set to zero.
//@ verdict uninitialized
//@ launch kernel grid 2 block 32
//@ arg count i32[1] scratch
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* count, int* y) {
    int ticket = 0;
    if (threadIdx.x == 0) {
        ticket = atomicAdd(count, 1); // HAZARD
        y[blockIdx.x] = ticket;
    }
}
