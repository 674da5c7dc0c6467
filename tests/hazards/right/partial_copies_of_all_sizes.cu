// cp.async copies the first bytes of 16 and fills the others with zeros.
//@ launch kernel grid 1 block 16
//@ arg x u8[256] input constant 7
//@ arg z i32[16] output
//@ expect z = constant(1, 16)
extern "C" __global__ void kernel(const unsigned char* x, int* z) {
    __shared__ __align__(16) unsigned char s[256];
    int t = threadIdx.x, same = 1;
    unsigned to = (unsigned)__cvta_generic_to_shared(s + 16 * t);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(x + 16 * t), "r"(t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 16; ++i) same &= s[16 * t + i] == (i < t ? 7 : 0);
    z[t] = same;
}
