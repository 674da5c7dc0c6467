// An atomic of 64 bits at an address that is a multiple of 4 only.
//@ verdict misaligned
//@ launch kernel grid 1 block 32
//@ arg y u32[8] inout zeros
extern "C" __global__ void kernel(unsigned* y) {
    atomicAdd(reinterpret_cast<unsigned long long*>(y + 1), 1ull); // HAZARD
}
