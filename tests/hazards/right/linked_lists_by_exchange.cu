// Threads push nodes on lists by atomicExch; the next launch walks them.
//@ launch kernel grid 4 block 32
//@ launch walk grid 1 block 8
//@ arg head i32[8] inout constant -1
//@ arg next i32[128] scratch
//@ arg y i32[8] output
//@ expect y = constant(16)
extern "C" __global__ void kernel(int* head, int* next, int* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    next[i] = atomicExch(&head[i % 8], i);
}
extern "C" __global__ void walk(int* head, int* next, int* y) {
    int n = 0;
    for (int i = head[threadIdx.x]; i >= 0; i = next[i]) ++n;
    y[threadIdx.x] = n;
}
