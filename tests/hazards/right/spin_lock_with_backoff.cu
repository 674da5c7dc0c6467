// A lock taken by compare-and-swap and given back by a releasing store, with a pause between tries.
//@ launch kernel grid 4 block 32
//@ arg lock i32[1] inout zeros
//@ arg y i32[1] inout zeros
//@ expect y = constant(4)
extern "C" __global__ void kernel(int* lock, int* y) {
    if (threadIdx.x == 0) {
        int old = 1;
        while (old != 0) {
            asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(lock) : "memory");
            if (old != 0) __nanosleep(20);
        }
        y[0] += 1;
        asm volatile("st.release.gpu.global.s32 [%0], 0;" ::"l"(lock) : "memory");
    }
}
