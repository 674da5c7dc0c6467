// Two of the four warps of a warpgroup execute `setmaxnreg`.
//@ verdict barrier_divergence
//@ arch sm_90a
//@ launch kernel grid 1 block 256 registers 240
//@ arg x i32[128] input arange
//@ arg y i32[128] output
extern "C" __global__ void __launch_bounds__(256, 1) kernel(const int* x, int* y) {
    __shared__ int s[128];
    int t = threadIdx.x & 127;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x < 128) {
        if (t < 64) { // warps 0 and 1 of the warpgroup
            asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"); // HAZARD
        }
        s[t] = x[t];
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
        asm volatile("bar.arrive 1, 256;" ::: "memory");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        asm volatile("bar.sync 1, 256;" ::: "memory");
        y[t] = s[t];
    }
}
