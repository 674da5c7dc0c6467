"""Vector addition with the bindings of the driver and of NVRTC."""
import ctypes

import numpy as np
from cuda.bindings import driver, nvrtc

def check(result):
    code, *values = result
    assert code.value == 0, code
    return values[0] if len(values) == 1 else values

SOURCE = rb"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = a[i] + b[i];
}"""
check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
context = check(driver.cuDevicePrimaryCtxRetain(device))
check(driver.cuCtxSetCurrent(context))
print(check(driver.cuDeviceGetName(64, device)).rstrip(b"\0").decode())
program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"add.cu", 0, [], []))
check(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"]))
ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
check(nvrtc.nvrtcGetPTX(program, ptx))
module = check(driver.cuModuleLoadData(ptx))
kernel = check(driver.cuModuleGetFunction(module, b"add"))
count = 1000
a, b = np.arange(count, dtype=np.float32), np.full(count, 0.5, dtype=np.float32)
c = np.empty_like(a)
pa, pb, pc = (check(driver.cuMemAlloc(a.nbytes)) for _ in range(3))
check(driver.cuMemcpyHtoD(pa, a.ctypes.data, a.nbytes))
check(driver.cuMemcpyHtoD(pb, b.ctypes.data, b.nbytes))
stream = check(driver.cuStreamCreate(0))
values = (pa, pb, pc, count)
types = (None, None, None, ctypes.c_int)
start, end = check(driver.cuEventCreate(0)), check(driver.cuEventCreate(0))
check(driver.cuEventRecord(start, stream))
check(driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, stream, (values, types), 0))
check(driver.cuEventRecord(end, stream))
check(driver.cuStreamSynchronize(stream))
assert check(driver.cuEventElapsedTime(start, end)) > 0
check(driver.cuMemcpyDtoH(c.ctypes.data, pc, c.nbytes))
assert (c == a + b).all()
for p in (pa, pb, pc): check(driver.cuMemFree(p))
check(driver.cuModuleUnload(module))
check(driver.cuDevicePrimaryCtxRelease(device))
print("cuda.bindings: right")
