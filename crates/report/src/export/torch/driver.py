"""Calls of the CUDA driver: loads machine code, encodes tensor maps, launches.

Written by `tuner export --torch`. The library is the driver's own, so that a launch needs no other package.
"""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any, Sequence

# Dynamic shared memory that a kernel may have without being asked for it.
PLAIN_SHARED_BYTES = 48 * 1024
# Blocks of the largest cluster that every GPU with clusters can run.
PORTABLE_CLUSTER = 8
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
COOPERATIVE = 2
CLUSTER_DIMENSION = 4
MAP_BYTES = 128
MAP_ALIGNMENT = 64


class Attribute(ctypes.Structure):
    """`CUlaunchAttribute`: a number, and 64 bytes for its value."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint),
    ]  # fmt: skip


class Driver:
    """The driver with the primary context of a device."""

    def __init__(self, device: int):
        self.library = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        self.call("cuInit", ctypes.c_uint(0))
        number = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(number), ctypes.c_int(device))
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), number)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function; its error is an exception with the driver's text."""
        function = getattr(self.library, name, None)
        if function is None:
            raise RuntimeError(f"the CUDA driver is too old: it has no {name}")
        error = function(*arguments)
        if error:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(error, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()} ({error})")

    def __enter__(self) -> Driver:
        self.call("cuCtxPushCurrent_v2", self.context)
        return self

    def __exit__(self, *_: Any) -> None:
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def functions(self, code: bytes, symbols: dict[str, str]) -> dict[str, ctypes.c_void_p]:
        """Loads machine code; returns the function of each entry."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code))
        found = {}
        for entry, symbol in symbols.items():
            function = found[entry] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        return found

    def tensor_map(self, one: dict[str, Any], address: int) -> Any:
        """Encodes the map of a tensor at an address; lists begin with the outermost dimension."""
        room = (ctypes.c_ubyte * (MAP_BYTES + MAP_ALIGNMENT))()
        begin = -ctypes.addressof(room) % MAP_ALIGNMENT
        encoded = (ctypes.c_ubyte * MAP_BYTES).from_buffer(room, begin)
        shape, rank = one["shape"], len(one["shape"])
        strides = [each * one["bytes"] for each in one["strides"]]
        strides = strides or [math.prod(shape[axis:]) * one["bytes"] for axis in range(1, rank)]
        steps = one["steps"] or [1] * rank
        wide = lambda values: (ctypes.c_uint64 * max(len(values), 1))(*reversed(values))
        narrow = lambda values: (ctypes.c_uint * len(values))(*reversed(values))
        ints = lambda values: (ctypes.c_int * len(values))(*reversed(values))
        # Atoms of 32 and 64 bytes have numbers of their own.
        swizzle = {32: 4, 64: 6}.get(one["swizzle_atom"], (0, 32, 64, 128).index(one["swizzle"]))
        box: tuple[Any, ...] = (narrow(one["box"]),)
        if one["lower"]:
            pixels, channels = one["box"]
            box = (ints(one["lower"]), ints(one["upper"]), ctypes.c_uint(channels), ctypes.c_uint(pixels))
        self.call(
            "cuTensorMapEncodeIm2col" if one["lower"] else "cuTensorMapEncodeTiled",
            encoded, ctypes.c_int(one["element"]), ctypes.c_uint(rank), ctypes.c_void_p(address),
            wide(shape), wide(strides), *box, narrow(steps),
            ctypes.c_int((0, 16, 32).index(one["interleave"])), ctypes.c_int(swizzle),
            ctypes.c_int((0, 64, 128, 256).index(one["l2_promotion"])), ctypes.c_int(one["nan_fill"]),
        )  # fmt: skip
        return encoded

    def launch(self, function: ctypes.c_void_p, one: dict[str, Any], values: Sequence[Any], stream: int) -> None:
        """Makes a launch; a cluster of one block is none."""
        if one["shared"] > PLAIN_SHARED_BYTES:
            self.call("cuFuncSetAttribute", function, ctypes.c_int(MAX_DYNAMIC_SHARED_SIZE_BYTES), ctypes.c_int(one["shared"]))
        attributes = (Attribute * 2)()
        count = 0
        blocks = math.prod(one["cluster"])
        if blocks > 1:
            attributes[count].id = CLUSTER_DIMENSION
            attributes[count].value[:3] = one["cluster"]
            count += 1
        if blocks > PORTABLE_CLUSTER:
            self.call("cuFuncSetAttribute", function, ctypes.c_int(NON_PORTABLE_CLUSTER_SIZE_ALLOWED), ctypes.c_int(1))
        if one["cooperative"]:
            attributes[count].id = COOPERATIVE
            attributes[count].value[0] = 1
            count += 1
        places = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        if count == 0:
            extents = [ctypes.c_uint(extent) for extent in (*one["grid"], *one["block"], one["shared"])]
            self.call("cuLaunchKernel", function, *extents, ctypes.c_void_p(stream), places, None)
            return
        config = Config(one["grid"], one["block"], one["shared"], stream, attributes, count)
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, places, None)
