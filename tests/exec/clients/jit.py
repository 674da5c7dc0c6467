"""Kernels of numba, linked by the driver: nvJitLink would make machine code, which is not executed."""
from cuda import pathfinder

found = pathfinder.load_nvidia_dynamic_lib


def load(name):
    if name == "nvJitLink":
        raise pathfinder.DynamicLibNotFoundError(name)
    return found(name)


pathfinder.load_nvidia_dynamic_lib = load

import numpy as np
from numba import cuda

@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]

@cuda.jit
def reduce(values, total):
    part = cuda.shared.array(128, dtype=np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = values[i] if i < values.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(total, 0, part[0])

a = np.arange(1000, dtype=np.float32)
b = np.full(1000, 0.5, dtype=np.float32)
c = cuda.device_array_like(a)
add[8, 128](cuda.to_device(a), cuda.to_device(b), c)
assert (c.copy_to_host() == a + b).all()
total = np.zeros(1, dtype=np.float32)
reduce[8, 128](a, total)
assert total[0] == a.sum(), total
print("numba: right")
