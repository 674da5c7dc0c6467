"""A stand-in for `cuda.bindings.nvrtc` over the library of the variable NVRTC_LIBRARY, for tests of exported
packages: the same functions with the same arguments and results.
"""

import ctypes
import enum
import os

if os.environ.get("NVRTC_BUILTINS"):
    # NVRTC looks for it by its name alone.
    ctypes.CDLL(os.environ["NVRTC_BUILTINS"], mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(os.environ["NVRTC_LIBRARY"])


class nvrtcResult(enum.IntEnum):
    NVRTC_SUCCESS = 0
    NVRTC_ERROR_COMPILATION = 6


def call(name, *arguments):
    code = getattr(library, name)(*arguments)
    return nvrtcResult(code) if code in (0, 6) else code


def strings(values):
    return (ctypes.c_char_p * len(values))(*values)


def nvrtcCreateProgram(source, name, count, headers, names):
    assert count == len(headers) == len(names)
    program = ctypes.c_void_p()
    error = call("nvrtcCreateProgram", ctypes.byref(program), source, name, count, strings(headers), strings(names))
    return error, program


def nvrtcDestroyProgram(program):
    return (call("nvrtcDestroyProgram", ctypes.byref(program)),)


def nvrtcAddNameExpression(program, expression):
    return (call("nvrtcAddNameExpression", program, expression),)


def nvrtcCompileProgram(program, count, options):
    assert count == len(options)
    return (call("nvrtcCompileProgram", program, count, strings(options)),)


def nvrtcGetLoweredName(program, expression):
    lowered = ctypes.c_char_p()
    error = call("nvrtcGetLoweredName", program, expression, ctypes.byref(lowered))
    return error, lowered.value


def size(name, program):
    count = ctypes.c_size_t()
    error = call(name, program, ctypes.byref(count))
    return error, count.value


def fill(name, program, buffer):
    return (call(name, program, (ctypes.c_char * len(buffer)).from_buffer(buffer)),)


def nvrtcGetProgramLogSize(program):
    return size("nvrtcGetProgramLogSize", program)


def nvrtcGetProgramLog(program, buffer):
    return fill("nvrtcGetProgramLog", program, buffer)


def nvrtcGetCUBINSize(program):
    return size("nvrtcGetCUBINSize", program)


def nvrtcGetCUBIN(program, buffer):
    return fill("nvrtcGetCUBIN", program, buffer)
