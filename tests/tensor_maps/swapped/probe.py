"""Launches a package's kernel by its runtime, with as much of PyTorch as that calls."""
import ctypes, importlib, json, pathlib, sys, types

cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    assert getattr(cuda, name)(*arguments) == 0, name
context = ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)

class Tensor:
    def __init__(self, shape, dtype=None, device=None):
        self.shape, self.dtype, self.device, self.address = tuple(shape), dtype, device, ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(4 * self.numel()))
    def numel(self):
        return self.shape[0] * self.shape[1]
    dim = lambda self: len(self.shape)
    is_contiguous = lambda self: True
    data_ptr = lambda self: self.address.value

class Stub(types.ModuleType):
    def __getattr__(self, name):
        return name
torch = sys.modules["torch"] = Stub("torch")
torch.empty = Tensor
torch.cuda = types.SimpleNamespace(
    get_device_properties=lambda device: types.SimpleNamespace(name="vgpu:h100", major=9, minor=0),
    current_stream=lambda device: types.SimpleNamespace(cuda_stream=0),
)
package = types.ModuleType("package")
package.__path__ = [sys.argv[1]]
sys.modules["package"] = package
kernel = importlib.import_module("package._runtime").Kernel(json.loads(pathlib.Path(sys.argv[1], "kernel.json").read_text()))
print(kernel.schema())
for rows, columns in [(3500, 32), (890, 32), (100, 32), (999, 7)]:
    x = Tensor((rows, columns), "float32", types.SimpleNamespace(index=0))
    values = (ctypes.c_float * x.numel())(*range(x.numel()))
    call("cuMemcpyHtoD_v2", x.address, values, ctypes.c_size_t(4 * x.numel()))
    y = kernel.launch(x)
    call("cuMemcpyDtoH_v2", values, y.address, ctypes.c_size_t(4 * x.numel()))
    wrong = sum(value != 2 * at for at, value in enumerate(values))
    variant, names = kernel.choose("vgpu:h100", 90, {"R": rows, "C": columns})
    [made] = kernel.plan(names)
    print(f"{wrong} wrong, {made['entry']}, cluster {made['cluster'][0]}")
try:
    kernel.launch(Tensor((900, 32), "float32", types.SimpleNamespace(index=0)))
except ValueError as error:
    print(error)
