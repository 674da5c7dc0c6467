// Only the lower half of a packed register is set, and only that is used.
//@ launch kernel grid 1 block 32
//@ arg x u16[32] input arange
//@ arg y u16[32] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const unsigned short* x, unsigned short* y) {
    unsigned short low;
    asm volatile("{\n.reg .b16 unset, high;\n.reg .b32 both;\nmov.b32 both, {%1, unset};\nmov.b32 {%0, high}, both;\n}" : "=h"(low) : "h"(x[threadIdx.x]));
    y[threadIdx.x] = low;
}
