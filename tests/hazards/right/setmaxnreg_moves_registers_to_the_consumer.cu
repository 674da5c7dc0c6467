// The producer warpgroup gives registers up, the consumer takes them.
//@ arch sm_90a
//@ launch kernel grid 1 block 256 registers 168
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = copy(x)
extern "C" __global__ void __launch_bounds__(256, 1) kernel(const int* x, int* y) {
    __shared__ int s[128];
    int t = threadIdx.x & 127;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        s[t] = x[t];
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
        asm volatile("bar.arrive 1, 256;" ::: "memory");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        asm volatile("bar.sync 1, 256;" ::: "memory");
        y[t] = s[t];
    }
}
