// A struct of arrays passed by value and indexed with a value the compiler cannot know.
//@ launch kernel grid 1 block 32
//@ arg table u64 4294967298
//@ arg x i32[32] input mod 2
//@ arg y i32[32] output
//@ expect y = mapped(x, two_minus_x)
struct Table {
    int values[2];
};
extern "C" __global__ void kernel(Table table, const int* x, int* y) {
    y[threadIdx.x] = table.values[x[threadIdx.x]];
}
