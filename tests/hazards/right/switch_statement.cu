// A dense switch, which may become an indexed branch.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 9
//@ arg y i32[64] output
//@ expect y = mapped(x, switch_table)
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[threadIdx.x], r = v;
    switch (v) {
        case 0: r = v * 3 + 7; break;
        case 1: r = v ^ 21; break;
        case 2: r = (v << 4) - 5; break;
        case 3: for (int i = 0; i < v; ++i) r += i * r; break;
        case 4: r = 1000 / v; break;
        case 5: r = v % 3; break;
        case 6: r = -v; break;
        case 7: r = __popc(v) + 100; break;
        default: r = 99; break;
    }
    y[threadIdx.x] = r;
}
