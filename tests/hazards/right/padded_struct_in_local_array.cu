// A struct with padding lives in local memory (dynamic index) and is copied around.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = copy(x)
struct Entry { short n; int w; char tag; };
extern "C" __global__ void kernel(const int* x, int* y) {
    Entry a[8];
    int t = threadIdx.x;
    for (int i = 0; i < 8; ++i) { a[i].n = i; a[i].w = x[t]; a[i].tag = 'x'; }
    for (int i = 0; i < 20; ++i) { Entry e = a[(i * x[t]) & 7]; a[(i + x[t]) & 7] = e; }
    y[t] = a[x[t] & 7].w;
}
