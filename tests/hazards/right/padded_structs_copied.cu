// Structs with padding inside are filled member by member and copied whole.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input mod 100
//@ arg y i32[32] output
//@ expect y = scale(x, 2)
struct Odd {
    char c;
    int v;
    short s;
};
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ Odd s[32];
    int t = threadIdx.x;
    Odd mine;
    mine.c = (char)x[t];
    mine.v = x[t];
    mine.s = 3;
    s[31 - t] = mine;
    __syncthreads();
    Odd other = s[31 - t];
    y[t] = other.c + other.v;
}
