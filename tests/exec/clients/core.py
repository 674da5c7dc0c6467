"""A kernel template with cuda.core, which loads libraries instead of modules."""
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
template <typename T>
__global__ void scale(T *data, T factor, size_t count) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        data[i] *= factor;
}"""
device = Device()
device.set_current()
print(device.name, device.compute_capability)
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch="sm_%d%d" % device.compute_capability)
module = Program(SOURCE, code_type="c++", options=options).compile("ptx", name_expressions=("scale<float>",))
kernel = module.get_kernel("scale<float>")
count = 1000
host = np.arange(count, dtype=np.float32)
buffer = device.allocate(host.nbytes, stream=stream)
assert driver.cuMemcpyHtoDAsync(int(buffer.handle), host.ctypes.data, host.nbytes, int(stream.handle))[0] == 0
launch(stream, LaunchConfig(grid=4, block=128), kernel, buffer, np.float32(3), np.uint64(count))
result = np.empty_like(host)
assert driver.cuMemcpyDtoHAsync(result.ctypes.data, int(buffer.handle), host.nbytes, int(stream.handle))[0] == 0
stream.sync()
assert (result == 3 * host).all()
print(kernel.attributes.num_regs, kernel.attributes.max_threads_per_block)
buffer.close(stream)
print("cuda.core: right")
