"""Runtime of an exported kernel: choice of a variant, its machine code or a compilation with NVRTC, launch.

Written by `tuner export --torch`; needs PyTorch 2.4 or newer, and `cuda.bindings` where it compiles.
"""

from __future__ import annotations

import ast
import ctypes
import glob
import importlib.util
import math
import os
import pathlib
from typing import Any, Callable

import torch

DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "bool": torch.bool, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "u16": torch.uint16,
    "i32": torch.int32, "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64,
    "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
}  # fmt: skip
SCALARS = {
    "f32": ctypes.c_float, "f64": ctypes.c_double, "bool": ctypes.c_bool, "i8": ctypes.c_int8,
    "u8": ctypes.c_uint8, "i16": ctypes.c_int16, "u16": ctypes.c_uint16, "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32, "i64": ctypes.c_int64, "u64": ctypes.c_uint64,
}  # fmt: skip
# Scalars whose bits PyTorch computes.
HALVES = ("f16", "bf16")
MAX_EXTENT = 2**31 - 1
MAX_GRID = (2**31 - 1, 65535, 65535)
# Blocks of the largest cluster that some device can run.
MAX_CLUSTER = 16
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "bool": bool, "ceil": math.ceil, "ceil_div": lambda a, b: -(-a // b), "float": float,
    "floor": math.floor, "int": int, "len": len, "log2": math.log2, "max": max, "min": min, "pow": pow,
    "round": round, "sqrt": math.sqrt,
}  # fmt: skip
# Errors of an expression that has no value for some sizes: a division by zero, a root of -1, a name without value.
NO_VALUE = (ArithmeticError, ValueError, TypeError, NameError)
# An expression has numbers, names, arithmetic, comparisons and the functions above, nothing else.
NODES = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.List, ast.Tuple, ast.Call, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


class PlainNames(ast.NodeTransformer):
    """Writes `math.ceil` as `ceil`: the functions have both names."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        plain = isinstance(node.value, ast.Name) and node.value.id == "math" and node.attr in FUNCTIONS
        return ast.copy_location(ast.Name(node.attr, ast.Load()), node) if plain else node


class Expression:
    """An expression of the search space, compiled once."""

    def __init__(self, text: str):
        self.text = text
        tree = PlainNames().visit(ast.parse(text.strip(), mode="eval"))
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            known = called is None or (isinstance(called, ast.Name) and called.id in FUNCTIONS)
            if not isinstance(node, NODES) or not known:
                raise ValueError(f"`{text}` is not an expression of a search space")
        self.code = compile(tree, "<expression>", "eval")
        self.names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}

    def __call__(self, names: dict[str, Any]) -> Any:
        return eval(self.code, {"__builtins__": {}, **FUNCTIONS}, names)


def with_values(names: dict[str, Any], derived: list[tuple[str, Expression]]) -> dict[str, Any]:
    """Adds the derived values that these names define."""
    for name, expression in derived:
        try:
            names[name] = expression(names)
        except NO_VALUE:
            pass
    return names


class Variant:
    """A tuned configuration with the sizes and the device that it was tuned for."""

    def __init__(self, entry: dict[str, Any], constants: dict[str, Any]):
        self.device: str = entry["device"]
        self.cc: int | None = entry["cc"]
        self.sizes: dict[str, Any] = entry["sizes"]
        self.config: dict[str, Any] = entry["config"]
        self.constants = constants

    def distance(self, sizes: dict[str, Any], exact: list[str]) -> float:
        """Distance of sizes: the sum of |log2 ratio|; infinite where a flag differs or a size is below 1."""
        total = 0.0
        for name, own in self.sizes.items():
            asked = sizes[name]
            if name in exact:
                total += 0.0 if own == asked else math.inf
            else:
                total += abs(math.log2(asked / own)) if asked >= 1 else math.inf
        return total


class Kernel:
    """A kernel with its variants, from the package's data."""

    def __init__(self, data: dict[str, Any]):
        kernel = data["torch"]
        self.name: str = data["kernel"]
        self.source: str = kernel["source"]["text"]
        self.headers: list[tuple[str, str]] = [tuple(one) for one in kernel["source"]["headers"]]
        self.options: list[str] = kernel["options"]
        # Suffix of the compile target, and the first compute capability that has it.
        self.features: tuple[str, int] = tuple(kernel["features"])
        self.arguments: list[dict[str, Any]] = kernel["arguments"]
        self.size_names: list[str] = kernel["sizes"]
        self.macro_sizes: list[str] = kernel["macro_sizes"]
        self.exact: list[str] = kernel["exact_sizes"]
        self.free: dict[str, int] = kernel["free_sizes"]
        self.derived = [(name, Expression(text)) for name, text in kernel["derived"]]
        self.constraints = [Expression(text) for text in kernel["constraints"]]
        self.launches = kernel["launches"]
        self.images: list[dict[str, Any]] = kernel["images"]
        self.fallback_text: str | None = kernel["fallback"]
        self.variants = [Variant(entry, entry["constants"]) for entry in data["entries"]]
        self.expressions: dict[str, Expression] = {}
        self.compiled: dict[Any, Any] = {}
        self.drivers: dict[int, Any] = {}
        self.inputs = [one for one in self.arguments if one["role"] in ("input", "inout")]
        self.outputs = [one for one in self.arguments if one["role"] in ("output", "inout")]
        self.scalars = [one for one in self.arguments if one["free"]]
        self.maps = [one for one in self.arguments if one["map"] is not None]
        # Derived values that shapes need.
        needed = {name for one in (*self.inputs, *self.outputs) for text in one["shape"] for name in Expression(text).names}
        for name, expression in reversed(self.derived):
            needed |= expression.names if name in needed else set()
        self.shape_derived = [one for one in self.derived if one[0] in needed]
        self.fallback_code = None
        if self.fallback_text is not None:
            self.fallback_code = compile(self.fallback_text, "<fallback>", "eval")

    def value(self, text: str, names: dict[str, Any]) -> Any:
        if text not in self.expressions:
            self.expressions[text] = Expression(text)
        try:
            return self.expressions[text](names)
        except NO_VALUE as error:
            raise ValueError(f"{self.name}: `{text}` has no value for these sizes: {error}") from None

    # Arguments

    def schema(self) -> str:
        """Schema of the custom op: inputs, free scalars, sizes that no shape shows."""
        texts = [f"Tensor {one['python']}" for one in self.inputs]
        texts += [f"{one['schema']} {one['python']}" for one in self.scalars]
        texts += [f"int {name}={default}" for name, default in self.free.items()]
        returned = ", ".join(["Tensor"] * len(self.outputs))
        returned = returned if len(self.outputs) == 1 else f"({returned})"
        return f"({', '.join(texts)}) -> {returned}"

    def sizes(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """Checks tensors and returns the sizes."""
        tensors = arguments[: len(self.inputs)]
        known: dict[str, Any] = {}
        rest = arguments[len(self.inputs) + len(self.scalars) :]
        for name, default in zip(self.free, [*rest, *list(self.free.values())[len(rest) :]]):
            known[name] = default
        for one, tensor in zip(self.inputs, tensors):
            label = f"{self.name}: `{one['python']}`"
            if tensor.dtype != DTYPES[one["type"]]:
                raise TypeError(f"{label} is {tensor.dtype}; {DTYPES[one['type']]} is needed")
            if tensor.device != tensors[0].device:
                raise ValueError(f"{label} is on {tensor.device}, and `{self.inputs[0]['python']}` on {tensors[0].device}")
            if tensor.dim() != len(one["shape"]):
                raise ValueError(f"{label} has {tensor.dim()} dimensions; {one['shape']} is needed")
            for axis, text in enumerate(one["shape"]):
                if text in self.size_names and text not in known:
                    known[text] = tensor.shape[axis]
        with_values(known, self.shape_derived)
        for one, tensor in zip(self.inputs, tensors):
            for axis, text in enumerate(one["shape"]):
                needed = self.value(text, known)
                if tensor.shape[axis] != needed:
                    raise ValueError(
                        f"{self.name}: `{one['python']}` has {tensor.shape[axis]} in dimension {axis}; "
                        f"{text} = {needed} is needed"
                    )
        return known

    def check_launchable(self, sizes: dict[str, Any], arguments: tuple[Any, ...]) -> None:
        """Refuses what only matters for a launch: strides, alignment and extents."""
        for name in self.size_names:
            size = sizes[name]
            if name not in self.exact and not 1 <= size <= MAX_EXTENT:
                raise ValueError(f"{self.name}: {name}={size} is not from 1 to {MAX_EXTENT}")
        for one, tensor in zip(self.inputs, arguments):
            label = f"{self.name}: `{one['python']}`"
            if not tensor.is_contiguous():
                raise ValueError(f"{label} is not contiguous; call .contiguous()")
            if tensor.numel() > MAX_EXTENT:
                raise ValueError(f"{label} has more than {MAX_EXTENT} elements")
            if tensor.data_ptr() % 16:
                raise ValueError(f"{label} is not aligned to 16 bytes")

    def empty_outputs(self, sizes: dict[str, Any], arguments: tuple[Any, ...]) -> Any:
        tensors = dict(zip((one["python"] for one in self.inputs), arguments))
        made = []
        for one in self.outputs:
            if one["role"] == "inout":
                made.append(torch.empty_like(tensors[one["python"]]))
                continue
            shape = [self.value(text, sizes) for text in one["shape"]]
            made.append(torch.empty(shape, dtype=DTYPES[one["type"]], device=arguments[0].device))
        return made[0] if len(made) == 1 else tuple(made)

    def fake(self, *arguments: Any) -> Any:
        return self.empty_outputs(self.sizes(arguments), arguments)

    # Choice

    def names(self, variant: Variant, sizes: dict[str, int]) -> dict[str, Any] | None:
        """Values of all names for a variant; None where a rule does not hold."""
        names = with_values({**variant.constants, **sizes, **variant.config}, self.derived)
        try:
            return names if all(expression(names) for expression in self.constraints) else None
        except NO_VALUE:
            return None

    def choose(self, device: str, cc: int, sizes: dict[str, int]) -> tuple[Variant, dict[str, Any]] | None:
        """Chooses the nearest valid variant of the device, else of its compute capability."""
        same = [one for one in self.variants if one.device == device]
        same = same or [one for one in self.variants if one.cc == cc]
        near = sorted(same, key=lambda one: one.distance(sizes, self.exact))
        for variant in near:
            if math.isinf(variant.distance(sizes, self.exact)):
                break
            names = self.names(variant, sizes)
            if names is not None:
                return variant, names
        return None

    def plan(self, names: dict[str, Any]) -> list[dict[str, Any]]:
        """Launches with their extents; refuses what CUDA refuses."""
        plan = []
        for launch in self.launches:
            if launch["when"] is not None and not self.value(launch["when"], names):
                continue
            grid = tuple(int(self.value(text, names)) for text in launch["grid"])
            block = tuple(int(self.value(text, names)) for text in launch["block"])
            shared = int(self.value(launch["shared"], names))
            extents = all(1 <= one <= most for one, most in zip(grid, MAX_GRID))
            if not extents or min(block) < 1 or math.prod(block) > 1024:
                raise ValueError(f"{self.name}: CUDA refuses grid {grid} with block {block}")
            cluster = tuple(int(self.value(text, names)) for text in launch["cluster"] or ("1", "1", "1"))
            whole = min(cluster) >= 1 and not any(many % by for many, by in zip(grid, cluster))
            if not whole or math.prod(cluster) > MAX_CLUSTER:
                raise ValueError(f"{self.name}: CUDA refuses clusters {cluster} of grid {grid}")
            plan.append({**launch, "grid": grid, "block": block, "shared": shared, "cluster": cluster})
        return plan

    def encodable(self, one: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
        """Values of a tensor map's expressions."""
        number = lambda text: int(self.value(text, names))
        made = {**one["map"]}
        for key in ("shape", "strides", "box", "steps", "lower", "upper"):
            made[key] = [number(text) for text in made[key]]
        for key in ("swizzle", "swizzle_atom", "interleave", "l2_promotion", "nan_fill"):
            made[key] = number(made[key])
        return made

    def rendered(self, names: dict[str, Any], variant: Variant) -> str:
        """Source with its macros in front."""
        macros = [*variant.config, *(name for name, _ in self.derived), *self.macro_sizes]
        defined = [name for name in macros if name in names]
        return "".join(f"#define {name} {shown(names[name])}\n" for name in defined) + self.source

    def image(self, variant: Variant, names: dict[str, Any], arch: str) -> dict[str, Any] | None:
        """Machine code of the package that runs on the architecture and was compiled with these values."""
        entry = self.variants.index(variant)
        fits = [one for one in self.images if one["entry"] == entry and runs_on(one["arch"], arch)]
        same = lambda macro: macro[0] in names and shown(names[macro[0]]) == macro[1]
        fits = [one for one in fits if all(map(same, one["macros"]))]
        launched = {one["entry"] for one in self.plan(names)}
        fits = [one for one in fits if launched <= set(one["symbols"])]
        return max(fits, key=lambda one: one["arch"], default=None)

    def target(self, arch: str) -> str:
        """Compile target for an architecture such as `90`, as the tuner chose it."""
        suffix, first = self.features
        return f"sm_{arch}{suffix if int(arch) >= first else ''}"

    # Calls

    def fallback(self, *arguments: Any) -> Any:
        """Computes with PyTorch by the search space's `torch: { fallback: … }`."""
        if self.fallback_code is None:
            raise NotImplementedError(f"{self.name}: no variant fits, and the search space names no fallback")
        names = self.sizes(arguments)
        for one, tensor in zip(self.inputs, arguments):
            # An expression may change it in place, and the op does not.
            names[one["python"]] = tensor.clone() if one["role"] == "inout" else tensor
        names.update(zip((one["python"] for one in self.scalars), arguments[len(self.inputs) :]))
        made = eval(self.fallback_code, {"torch": torch}, names)
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(results) != len(self.outputs):
            raise ValueError(f"{self.name}: the fallback computes {len(results)} tensors; {len(self.outputs)} are needed")
        sizes = self.sizes(arguments)
        given = [one for one in arguments if isinstance(one, torch.Tensor)]
        results = [self.conforming(one, result, sizes, given) for one, result in zip(self.outputs, results)]
        return results[0] if len(results) == 1 else tuple(results)

    def conforming(self, one: dict[str, Any], result: torch.Tensor, sizes: dict[str, Any], given: list[torch.Tensor]) -> torch.Tensor:
        """Returns a result of the fallback as the op declares it: type, shape, contiguous, no view of an input."""
        shape = [self.value(text, sizes) for text in one["shape"]]
        if list(result.shape) != shape:
            raise ValueError(f"{self.name}: the fallback computes `{one['python']}` of {list(result.shape)}; {shape} is needed")
        result = result.to(DTYPES[one["type"]]).contiguous()
        return result.clone() if any(result._is_view() or result is tensor for tensor in given) else result

    def passed(self, one: dict[str, Any], value: Any) -> Any:
        """Value of a scalar argument for ctypes; refuses a whole number that its type cannot hold."""
        if one["type"] in HALVES:
            bits = torch.tensor(float(value), dtype=DTYPES[one["type"]]).view(torch.int16).item()
            return ctypes.c_uint16(bits & 0xFFFF)
        made = SCALARS[one["type"]]
        if one["type"] in ("bool", "f32", "f64"):
            return made(value)
        if value != int(value) or made(int(value)).value != value:
            raise ValueError(f"{self.name}: `{one['python']}` is {value}, which {one['type']} cannot hold")
        return made(int(value))

    def launch(self, *arguments: Any) -> Any:
        """Launches the kernel on the current stream of the tensors' GPU."""
        sizes = self.sizes(arguments)
        device = arguments[0].device
        facts = torch.cuda.get_device_properties(device)
        chosen = self.choose(facts.name, 10 * facts.major + facts.minor, sizes)
        if chosen is None:
            return self.fallback(*arguments)
        variant, names = chosen
        self.check_launchable(sizes, arguments)
        made = self.empty_outputs(sizes, arguments)
        outputs = dict(zip((one["name"] for one in self.outputs), made if isinstance(made, tuple) else (made,)))
        inputs = dict(zip((one["name"] for one in self.inputs), arguments))
        scalars = dict(zip((one["name"] for one in self.scalars), arguments[len(self.inputs) :]))
        for one in self.outputs:
            if one["role"] == "inout":
                outputs[one["name"]].copy_(inputs[one["name"]])
        values: dict[str, Any] = {}
        kept = []
        for one in self.arguments:
            name = one["name"]
            if one["map"] is not None:
                continue
            if one["role"] == "scalar":
                value = scalars[name] if one["free"] else self.value(one["value"], names)
                values[name] = self.passed(one, value)
                continue
            tensor = outputs.get(name, inputs.get(name))
            if one["role"] == "scratch":
                shape = [int(self.value(text, names)) for text in one["shape"]]
                tensor = torch.empty(shape, dtype=DTYPES[one["type"]], device=device)
                kept.append(tensor)
            values[name] = ctypes.c_void_p(tensor.data_ptr())
        run_launches(self, variant, names, values, device, f"{facts.major}{facts.minor}")
        return made


def shown(value: Any) -> str:
    """Text of a macro."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def runs_on(target: str, arch: str) -> bool:
    """Whether code for a target such as `sm_90a` runs on an architecture such as `90`.

    Code runs on its own and on later minor versions; with `a` on its own alone (CUDA C++ Programming
    Guide, "Binary compatibility").
    """
    number = target.removeprefix("sm_")
    plain = number.rstrip("af")
    if number.endswith("a"):
        return plain == arch
    # Code of a family, too, runs on later minor versions.
    return plain[:-1] == arch[:-1] and int(plain[-1]) <= int(arch[-1])


def run_launches(
    kernel: Kernel, variant: Variant, names: dict[str, Any], values: dict[str, Any], device: Any, arch: str
) -> None:
    """Takes the package's machine code or compiles at first use, and launches."""
    from ._driver import Driver

    plan = kernel.plan(names)
    source = kernel.rendered(names, variant)
    # A template may lack the kernels of launches that a variant does not make.
    entries = sorted({one["entry"] for one in plan})
    if device.index not in kernel.drivers:
        kernel.drivers[device.index] = Driver(device.index)
    with kernel.drivers[device.index] as driver:
        key = (device.index, source, kernel.variants.index(variant), *entries)
        if key not in kernel.compiled:
            image = kernel.image(variant, names, arch)
            if image is not None:
                code, symbols = pathlib.Path(__file__).with_name(image["file"]).read_bytes(), image["symbols"]
            else:
                own = compile_options(kernel, variant.config)
                compiled = lambda target: compile_cubin(kernel, source, target, entries, own)
                code, symbols = compiled_for(kernel.target(arch), compiled)
            kernel.compiled[key] = driver.functions(code, symbols)
        # Sizes may have no map where no launch takes it.
        taken = {name for one in plan for name in one["args"]}
        for one in kernel.maps:
            if one["name"] in taken:
                values[one["name"]] = driver.tensor_map(kernel.encodable(one, names), values[one["map"]["of"]].value)
        stream = torch.cuda.current_stream(device).cuda_stream
        for one in plan:
            passed = [values[name] for name in one["args"]]
            driver.launch(kernel.compiled[key][one["entry"]], one, passed, stream)


def compile_cubin(
    kernel: Kernel, source: str, target: str, entries: list[str], own: list[str]
) -> tuple[bytes, dict[str, str]]:
    """Compiles by NVRTC with the search space's options; returns the code and the symbol of each entry.

    The kernel's own include files are passed from memory under the names of their directives, as
    `tuner` itself does.
    """
    from cuda.bindings import nvrtc

    def checked(result: tuple[Any, ...]) -> Any:
        error, *returned = result
        if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"{kernel.name}: {error}{log()}")
        return returned[0] if returned else None

    program = None

    def log() -> str:
        if program is None:
            return ""
        error, size = nvrtc.nvrtcGetProgramLogSize(program)
        text = bytearray(size)
        nvrtc.nvrtcGetProgramLog(program, text)
        return "\n" + text.rstrip(b"\0").decode("utf-8", "replace")

    names = [name.encode() for name, _ in kernel.headers]
    texts = [text.encode() for _, text in kernel.headers]
    title = f"{kernel.name}.cu".encode()
    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), title, len(names), texts, names))
    try:
        for entry in entries:
            checked(nvrtc.nvrtcAddNameExpression(program, entry.encode()))
        options = [f"--gpu-architecture={target}", *own]
        options += [f"-I{folder}" for folder in cuda_headers()]
        checked(nvrtc.nvrtcCompileProgram(program, len(options), [one.encode() for one in options]))
        cubin = bytearray(checked(nvrtc.nvrtcGetCUBINSize(program)))
        checked(nvrtc.nvrtcGetCUBIN(program, cubin))
        return bytes(cubin), {entry: checked(nvrtc.nvrtcGetLoweredName(program, entry.encode())).decode() for entry in entries}
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def cuda_headers() -> list[str]:
    """Folders of CUDA's own headers: of the toolkit, and of NVIDIA's wheels."""
    roots = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        roots += sorted(glob.glob(os.path.join(folder, "cu[0-9]*")), reverse=True)
        roots += [os.path.join(folder, name) for name in ("cuda_runtime", "cuda_cccl")]
    folders = [os.path.join(root, "include") for root in [*roots, "/usr/local/cuda"]]
    folders += [os.path.join(folder, "cccl") for folder in folders]
    return [folder for folder in folders if os.path.isdir(folder)]


def compiled_for(target: str, compiled: Callable[[str], Any]) -> Any:
    """Compiles for a target, or for its architecture alone if the code has instructions such as wgmma."""
    try:
        return compiled(target)
    except Exception as error:
        if "not supported on .target" not in str(error) or not target[-1].isdigit():
            raise
    return compiled(target + "a")


def compile_options(kernel: Kernel, names: dict[str, Any]) -> list[str]:
    """Compiler options of the search space, its parameters substituted."""
    options = list(kernel.options)
    for name, value in names.items():
        options = [option.replace("{" + name + "}", shown(value)) for option in options]
    named = any(option.startswith(("-std", "--std")) for option in options)
    return options if named else ["--std=c++17", *options]
