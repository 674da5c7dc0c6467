"""Scalars whose type a tunable parameter chooses: the kernel takes them in the type of their argument, and converts
them first."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Optional, Tuple

import numpy as np

from .signature import COMMENT, Parameter, base_name, split_list

# Types of C by dtype.
_TYPES = {
    "float32": "float", "float64": "double", "bool": "bool", "int8": "signed char", "uint8": "unsigned char",
    "int16": "short", "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int", "int64": "long long",
    "uint64": "unsigned long long",
}  # fmt: skip


def passed_type(place: int, parameter: Parameter, argument: Any) -> str:
    """Returns the type of C in which a scalar is passed; raises TypeError if there is none."""
    name = np.dtype(argument.dtype).name
    if name not in _TYPES:
        raise TypeError(
            f"argument {place} has the dtype {name}, and a tunable parameter chooses the type of `{parameter.text}`: only "
            "numbers such as numpy.float32 and numpy.int32 are converted; pass one, or give the parameter a fixed type"
        )
    return _TYPES[name]


def converting(source: str, kernel_name: str, types: Mapping[int, str]) -> Optional[str]:
    """Returns a source whose kernel converts parameters, or None if it does not define the kernel.

    :param types: types of C in which parameters are passed, by place
    """
    # Comments become blanks, so that places stay.
    text = COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    edits: List[Tuple[int, int, str]] = []
    defined = False
    for at in re.finditer(r"__global__", text):
        head = re.compile(rf"[^;{{]*?\b{re.escape(base_name(kernel_name))}\s*\(").match(text, at.end())
        if head is None:
            continue
        parts = split_list(text, head.end())
        end = head.end() + sum(map(len, parts)) + len(parts)
        copies = []
        for place, kind in types.items():
            start = head.end() + sum(len(part) + 1 for part in parts[:place])
            declared = " ".join(parts[place].split("=")[0].replace("__grid_constant__", "").split())
            name = re.findall(r"\w+", declared)[-1]
            edits.append((start, start + len(parts[place]), f"{kind} KT_given_{name}"))
            copies.append(f" {declared} = KT_given_{name};")
        after = re.compile(r"[^;{]*\{").match(text, end)
        # A declaration has no body.
        if after is not None:
            edits.append((after.end(), after.end(), "".join(copies)))
            defined = True
    for start, stop, new in sorted(edits, reverse=True):
        source = source[:start] + new + source[stop:]
    return source if defined else None
