// Without a bound of its registers a kernel's `setmaxnreg` has no effect, and waits for nothing.
//@ arch sm_90a
//@ launch kernel grid 1 block 256
//@ arg x f32[256] input arange
//@ arg y f32[256] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const float* x, float* y) {
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    }
    y[threadIdx.x] = x[threadIdx.x];
}
