"""Kernel arguments of a script as NumPy arrays and scalars, and their element types."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Optional, Sequence

import numpy as np

_TYPES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "bool": "bool",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "complex64": "float2", "complex128": "double2",
    # Of the package ml_dtypes.
    "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
}  # fmt: skip
# Types of CUDA that NumPy lacks, with the dtype that holds their bits.
_STORED = {
    "uint16": {"bf16": re.compile(r"\b(__)?nv_bfloat162?\b")},
    "uint8": {"f8e4m3": re.compile(r"\b__nv_fp8(x[24])?_e4m3\b"), "f8e5m2": re.compile(r"\b__nv_fp8(x[24])?_e5m2\b")},
}

# Elements of CUDA's vectors.
_VECTORS = {
    "float16": "half", "float32": "float", "float64": "double", "int8": "char", "uint8": "uchar", "int16": "short",
    "uint16": "ushort", "int32": "int", "uint32": "uint", "int64": "longlong", "uint64": "ulonglong",
}  # fmt: skip

_LAYOUT_HELP = (
    "give the fields in the order of the struct, as numpy.dtype([...], align=True), and padding as a field such as "
    "('_pad', 'u1', 8)"
)

# What the program reads from one file, less the header of `.npy` (`MAX_DATA_BYTES`).
_MOST_BYTES = (4 << 30) - 4096


def element_type(dtype: Any, where: str) -> str:
    """Returns the element type of a NumPy dtype, a struct by its fields; raises TypeError if CUDA has none."""
    dtype = np.dtype(dtype)
    if dtype.fields is not None:
        fields = [f"{name}: {_field_type(dtype[name], f'{name} of {where}')}" for name in dtype.names or ()]
        _check_layout(dtype, where)
        return f"{{ {', '.join(fields)} }}"
    if dtype.kind == "V" and dtype.name not in _TYPES:
        raise TypeError(f"{where} has bytes without fields; give the struct's fields, such as numpy.dtype([('x', 'f4'), ('n', 'i4')])")
    if dtype.name not in _TYPES:
        raise TypeError(
            f"{where} has the dtype {dtype}, which has no type in CUDA; convert it, as with "
            ".astype(numpy.float32)"
        )
    if not dtype.isnative:
        raise TypeError(f"{where} is not in this machine's byte order; convert it with .astype('{dtype.name}')")
    return _TYPES[dtype.name]


def declared_type(dtype: Any, where: str, declared: str) -> str:
    """Returns the element type of an argument for a parameter with this declaration."""
    for name, pattern in _STORED.get(np.dtype(dtype).name, {}).items():
        if pattern.search(declared):
            return name
    vector = _vector_type(np.dtype(dtype))
    return vector if vector and re.search(rf"\b{vector}\b", declared) else element_type(dtype, where)


def _vector_type(dtype: Any) -> Optional[str]:
    """Returns the vector of CUDA whose fields `x`, `y`, `z` and `w` a dtype has, or None."""
    kinds = {dtype[name] for name in dtype.names or ()}
    names = tuple("xyzw"[: len(dtype.names or ())])
    if len(kinds) != 1 or len(names) < 2 or dtype.names != names:
        return None
    base = kinds.pop()
    whole = dtype == np.dtype([(name, base) for name in names])
    return f"{_VECTORS[base.name]}{len(names)}" if whole and base.name in _VECTORS else None


def _check_layout(dtype: Any, where: str) -> None:
    """Raises TypeError if the fields of a struct are not where CUDA places them."""
    end, widest = 0, 1
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]
        base = (field.subdtype or (field, ()))[0]
        lanes = len(base.names or ()) or 1
        # A vector of three is aligned as one of its elements.
        align = min(16, base.itemsize // lanes if lanes == 3 else base.itemsize)
        place = -(-end // align) * align
        if offset != place:
            raise TypeError(f"{where} has `{name}` at byte {offset}, and CUDA places it at byte {place}; {_LAYOUT_HELP}")
        end, widest = place + field.itemsize, max(widest, align)
    size = -(-end // widest) * widest
    if dtype.itemsize != size:
        raise TypeError(f"{where} has structs of {dtype.itemsize} bytes, which CUDA makes {size} bytes large; {_LAYOUT_HELP}")


def _field_type(dtype: Any, where: str) -> str:
    base, shape = dtype.subdtype or (dtype, ())
    count = int(np.prod(shape, dtype=int))
    if base.fields is not None and _vector_type(base) is None:
        raise TypeError(f"{where} is a struct in a struct, and only vectors (x, y, z, w) are supported there; pass its fields in the outer one")
    text = _vector_type(base) or element_type(base, where)
    return f'"{text}[{count}]"' if shape else text


def to_host(arguments: Sequence[Any]) -> List[Any]:
    """Returns arrays and scalars of NumPy for those of a script; raises TypeError or ValueError by place."""
    return [_to_host(value, f"argument {place}") for place, value in enumerate(arguments)]


def named_to_host(values: Mapping[str, Any], what: str) -> List[Any]:
    """Returns arrays and scalars of NumPy for named ones of a script; raises TypeError or ValueError by name.

    :param what: the argument of `tune_kernel` that holds them
    """
    return [_to_host(value, f"{name} in {what}") for name, value in values.items()]


def _to_host(value: Any, where: str) -> Any:
    if value is None:
        return None
    value = _copied_to_host(value)
    if isinstance(value, np.ndarray):
        element_type(value.dtype, where)
        # A subclass may refuse what an array does.
        value = np.asarray(value)
        # An array in Fortran's order is passed as it is in memory.
        if not value.flags.forc:
            raise ValueError(f"{where} is not contiguous; pass numpy.ascontiguousarray(...) of it")
        if value.nbytes > _MOST_BYTES:
            raise ValueError(
                f"{where} has {-(-value.nbytes >> 20)} MiB, and arrays are passed in files of at most 4096 MiB; "
                "use a smaller problem, or a search space whose `fill:` makes the data"
            )
        return value
    if isinstance(value, np.generic):
        element_type(value.dtype, where)
        return value
    raise TypeError(
        f"{where} is of type {type(value).__name__}; pass an array of NumPy, or a scalar such as numpy.int32(...)"
    )


def _copied_to_host(value: Any) -> Any:
    """Returns the array of NumPy for one of PyTorch or CuPy, and any other value as it is."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return value.detach().cpu().numpy()
    if hasattr(value, "__cuda_array_interface__") and callable(getattr(value, "get", None)):
        return value.get()
    return value


def to_origin(value: Any, origin: Any) -> Any:
    """Returns the contents of an argument after a run as a new array of the kind that the script gave: of PyTorch, of
    CuPy, or of NumPy."""
    if hasattr(origin, "new_tensor"):
        return origin.new_tensor(value)
    if isinstance(origin, np.ndarray) or not callable(getattr(origin, "set", None)):
        return value.copy(order="K") if isinstance(value, np.ndarray) else value
    copied = origin.copy()
    copied.set(value)
    return copied


def scalars_at(arguments: Sequence[Any], pointers: Sequence[bool]) -> List[Any]:
    """Returns the arguments with scalars for arrays without dimensions where no pointer is expected."""
    return [
        value[()] if isinstance(value, np.ndarray) and value.ndim == 0 and not pointer else value
        for value, pointer in zip(arguments, pointers)
    ]


def check_answer(
    answer: Optional[Sequence[Any]], arguments: Sequence[Any], with_verify: bool, constant: Sequence[bool]
) -> List[Any]:
    """Returns the expected contents of each argument, None where there is none; raises ValueError or
    TypeError if they do not fit. A `verify` function may take others.

    :param constant: arguments that the kernel cannot write, whose contents stay what they are
    """
    if answer is None or isinstance(answer, (list, tuple)) and not answer:
        return [None] * len(arguments)
    if len(answer) != len(arguments):
        raise TypeError(
            f"answer has {len(answer)} elements and there are {len(arguments)} arguments; give one for each, "
            "None for inputs"
        )
    if with_verify:
        return list(answer)
    if isinstance(answer, np.ndarray):
        raise TypeError("answer is one array; give a list with an array for each output and None for inputs")
    expected: List[Any] = []
    for place, (value, argument) in enumerate(zip(answer, arguments)):
        where = f"element {place} of answer"
        found = None if value is None else _expected(value, np.asarray(argument), where)
        if found is not None and (constant[place] or not isinstance(argument, np.ndarray)):
            if not np.array_equal(np.ravel(found), np.ravel(argument), equal_nan=found.dtype.kind in "fc"):
                raise ValueError(f"{where} differs from the argument, which is an input that the kernel cannot write; give None")
            found = None
        expected.append(found)
    return expected


def _expected(value: Any, argument: Any, where: str) -> Any:
    """Returns the expected contents of an argument in its dtype and order; raises TypeError or ValueError if the
    values do not fit."""
    if isinstance(value, (str, bytes, dict, set)) or callable(value):
        raise TypeError(f"{where} is of type {type(value).__name__}; give an array as large as the argument")
    try:
        value = np.asarray(_copied_to_host(value))
    except ValueError:
        value = np.array(None)
    if value.dtype.kind == "O":
        raise TypeError(f"{where} is no array of numbers; give an array as large as the argument")
    if value.size != argument.size:
        raise TypeError(
            f"{where} has {value.size} elements and the argument has {argument.size}; give an array as large "
            "as the argument"
        )
    if not np.can_cast(argument.dtype, value.dtype):
        raise TypeError(f"{where} has the dtype {value.dtype} and the argument {argument.dtype}; convert it")
    converted = value
    if value.dtype != argument.dtype:
        with np.errstate(over="ignore", invalid="ignore"):
            converted = value.astype(argument.dtype)
        if _loses_values(value, converted):
            raise ValueError(
                f"{where} has values that the argument's dtype {argument.dtype} cannot hold; give an array of this dtype"
            )
    if value.shape == argument.shape and not argument.flags.c_contiguous:
        return np.asfortranarray(converted)
    return np.ascontiguousarray(converted)


def _loses_values(value: Any, converted: Any) -> bool:
    """Reports whether whole numbers have changed by a conversion, or numbers have become infinite."""
    if converted.dtype.kind in "iub":
        return not np.array_equal(value, converted)
    return converted.dtype.kind in "fc" and not np.array_equal(np.isinf(value), np.isinf(converted))


def from_bytes(data: bytes, like: Any) -> Any:
    """Returns an array of the dtype and shape of an argument."""
    flat = np.frombuffer(data, dtype=like.dtype)[: like.size]
    if like.flags.c_contiguous:
        return flat.reshape(like.shape).copy()
    return flat.reshape(like.shape, order="F").copy(order="F")
