// Structs with padding and bit fields are sorted by swaps in shared memory.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = scale(x, 2)
struct Entry { unsigned key : 12; unsigned flag : 1; short w; char tag; };
struct Big { double d; char c; float f; char e; };
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ Entry s[32];
    __shared__ Big b[32];
    int t = threadIdx.x;
    s[t].key = 31 - x[t];
    s[t].flag = t & 1;
    s[t].w = t;
    s[t].tag = 1;
    b[t].d = 31 - x[t];
    b[t].c = 1;
    b[t].f = 2;
    b[t].e = 3;
    for (int k = 0; k < 32; ++k) {
        __syncthreads();
        int i = 2 * t + (k & 1);
        if (i + 1 < 32) {
            if (s[i].key > s[i + 1].key) {
                Entry e = s[i];
                s[i] = s[i + 1];
                s[i + 1] = e;
            }
            if (b[i].d > b[i + 1].d) {
                Big e = b[i];
                b[i] = b[i + 1];
                b[i + 1] = e;
            }
        }
    }
    __syncthreads();
    y[t] = s[t].key + (int)b[t].d;
}
