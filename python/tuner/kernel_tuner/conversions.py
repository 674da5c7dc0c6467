"""Arguments as the kernel's parameters take them: Kernel Tuner passes the bytes of other types of the same
size, and warns at most."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional

import numpy as np

from .notices import warn
from .signature import Parameter

_QUALIFIERS = {"const", "volatile", "register", "__restrict__", "restrict", "static", "struct", "__grid_constant__"}
_SPELLINGS = {
    "float32": ["float"],
    "float64": ["double"],
    "float16": ["half", "__half"],
    "bool": ["bool"],
    "int8": ["char", "signed char", "int8_t"],
    "uint8": ["unsigned char", "uchar", "uint8_t"],
    "int16": ["short", "short int", "signed short", "int16_t"],
    "uint16": ["unsigned short", "unsigned short int", "ushort", "uint16_t"],
    "int32": ["int", "signed", "signed int", "int32_t"],
    "uint32": ["unsigned", "unsigned int", "uint", "uint32_t"],
    "int64": ["long", "long int", "signed long", "long long", "long long int", "int64_t", "ptrdiff_t", "ssize_t"],
    "uint64": ["unsigned long", "unsigned long int", "ulong", "unsigned long long", "unsigned long long int", "uint64_t", "size_t"],
}
_DTYPES: Dict[str, str] = {text: dtype for dtype, texts in _SPELLINGS.items() for text in texts}


class ConvertedArgumentWarning(UserWarning):
    """An argument that has another type than the kernel's parameter."""


def declared_dtype(parameter: Parameter) -> Optional[np.dtype[Any]]:
    """Returns the dtype of a parameter's elements, or None if its type is not one of C."""
    text = re.split(r"[*\[&]", parameter.text.replace("std::", ""))[0]
    words = [word for word in re.findall(r"\w+|\S", text) if word not in _QUALIFIERS]
    for count in (len(words), len(words) - 1):
        name = _DTYPES.get(" ".join(words[:count]))
        # The last word is the parameter's name, where no pointer precedes it.
        if name is not None and (count == len(words) or words[-1] == parameter.name):
            return np.dtype(name)
    return None


def type_key(value: Any) -> Any:
    """Returns the same value for the texts that spell one type."""
    return _DTYPES.get(" ".join(value.split()), value) if isinstance(value, str) else value


def convert_argument(place: int, parameter: Parameter, argument: Any) -> Any:
    """Returns an argument as its parameter takes it: arrays of the same size as they are in memory, scalars by
    value. Raises ValueError if the value does not fit, TypeError if the size of an array's elements does not."""
    wanted = declared_dtype(parameter)
    if wanted is None or wanted == argument.dtype:
        return argument
    if isinstance(argument, np.ndarray):
        # A pointer to bytes takes any array.
        if not parameter.pointer or argument.dtype.kind not in "iubf" or wanted.itemsize == 1 < argument.dtype.itemsize:
            return argument
        if wanted.itemsize != argument.dtype.itemsize:
            raise TypeError(
                f"argument {place} has the dtype {argument.dtype} and the parameter is `{parameter.text}`; pass "
                f"array.astype(numpy.{wanted.name}), or array.view(numpy.{wanted.name}) for its bytes"
            )
        whole = all(dtype.kind in "iub" for dtype in (wanted, argument.dtype))
        # Other numbers stay what they are: they are compared as such.
        converted: Any = argument.view(wanted) if whole else argument
    else:
        if parameter.pointer or argument.dtype.kind not in "iubf":
            return argument
        with np.errstate(over="ignore", invalid="ignore"):
            converted = argument.astype(wanted)
        changed = wanted.kind != "f" and not (wanted.kind == "b" or converted == argument or _same_bits(converted, argument))
        if changed:
            raise ValueError(f"argument {place} is {argument} and `{parameter.text}` cannot hold it; pass numpy.{wanted.name}(...)")
    warn(
        ConvertedArgumentWarning,
        f"argument {place} has the dtype {argument.dtype} and the parameter is `{parameter.text}`: it is passed as "
        f"{wanted.name}",
    )
    return converted


def _same_bits(one: Any, other: Any) -> bool:
    """Reports whether two whole numbers differ by their signedness alone."""
    return bool(one.dtype.itemsize == other.dtype.itemsize and other.dtype.kind in "iu")


def convert_arguments(parameters: List[Parameter], arguments: List[Any]) -> List[Any]:
    """Returns the arguments as the parameters take them."""
    return [convert_argument(place, *pair) for place, pair in enumerate(zip(parameters, arguments))]
