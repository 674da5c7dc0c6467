// Every lane takes its own number of trips around a loop with a break and a continue.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = mapped(x, collatz)
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[threadIdx.x] + 1, steps = 0;
    while (true) {
        if (v == 1) break;
        ++steps;
        if (v & 1) {
            v = 3 * v + 1;
            continue;
        }
        v /= 2;
    }
    y[threadIdx.x] = steps;
}
