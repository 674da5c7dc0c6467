// Open addressing: a slot belongs to whom its compare-and-swap lets in; only that thread stores the value.
//@ launch kernel grid 2 block 32
//@ launch look_up grid 1 block 64
//@ arg x i32[64] input arange
//@ arg keys i32[128] inout constant -1
//@ arg values i32[128] scratch
//@ arg y i32[64] output
//@ expect y = mapped(x, three_x_plus_one)
__device__ unsigned start(int key) { return (unsigned)key * 2654435761u >> 26; }
extern "C" __global__ void kernel(const int* x, int* keys, int* values, int* y) {
    int key = x[blockIdx.x * 32 + threadIdx.x];
    for (unsigned slot = start(key);; slot = (slot + 1) % 128) {
        if (atomicCAS(&keys[slot], -1, key) == -1) {
            values[slot] = 3 * key + 1;
            break;
        }
    }
}
extern "C" __global__ void look_up(const int* x, int* keys, int* values, int* y) {
    int key = x[threadIdx.x];
    unsigned slot = start(key);
    while (keys[slot] != key) slot = (slot + 1) % 128;
    y[threadIdx.x] = values[slot];
}
