// A traversal with a stack of structs in local memory; pushes and pops differ by lane.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = mapped(x, fibonacci_mod_10)
struct Frame { short n; int weight; char tag; };
extern "C" __global__ void kernel(const int* x, int* y) {
    Frame stack[24];
    int top = 0, sum = 0;
    stack[top++] = {(short)(x[threadIdx.x] % 10), 1, 'a'};
    while (top > 0) {
        Frame f = stack[--top];
        if (f.n < 2) { sum += f.n * f.weight; continue; }
        stack[top++] = {(short)(f.n - 1), f.weight, 'b'};
        stack[top++] = {(short)(f.n - 2), f.weight, f.tag};
    }
    y[threadIdx.x] = sum;
}
