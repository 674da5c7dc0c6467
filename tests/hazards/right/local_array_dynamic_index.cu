// A private array filled by a loop and read in an order the compiler cannot know.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 16
//@ arg y i32[64] output
//@ expect y = mapped(x, square_plus_one)
extern "C" __global__ void kernel(const int* x, int* y) {
    int table[16];
    for (int i = 0; i < 16; ++i) table[(i * 5) % 16] = ((i * 5) % 16) * ((i * 5) % 16) + 1;
    int t = threadIdx.x;
    y[t] = table[x[t]];
}
