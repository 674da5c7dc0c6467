"""Scalars whose type a tunable parameter chooses: the kernel takes them in the type of their argument, and converts
them first."""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .signature import COMMENT, Parameter, base_name, closed_list, split_top

# Types of C by dtype.
_TYPES = {
    "float32": "float", "float64": "double", "bool": "bool", "int8": "signed char", "uint8": "unsigned char",
    "int16": "short", "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int", "int64": "long long",
    "uint64": "unsigned long long",
}  # fmt: skip


# A directive with the lines that continue it.
_DIRECTIVE = re.compile(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*")
_QUALIFIERS = {"const", "volatile", "__grid_constant__"}


class NoFittingList(Exception):
    """A kernel whose parameters or instantiations are not written as they are known."""


class Conversion(NamedTuple):
    """A source with converted scalars."""

    text: str
    #: It has the definition of the kernel.
    defined: bool


class _Head(NamedTuple):
    """A declaration, definition or instantiation of a kernel."""

    #: Places where it begins, and where its parameters begin and end.
    start: int
    inside: int
    end: int
    parts: List[str]
    #: It instantiates a template.
    instantiates: bool
    #: It is for certain template arguments; whether they are written.
    special: bool
    with_arguments: bool


def is_converted(argument: Any) -> bool:
    """Reports whether a scalar has a type of C that converts to others."""
    return np.dtype(argument.dtype).name in _TYPES


def passed_type(place: int, parameter: Parameter, argument: Any) -> str:
    """Returns the type of C in which a scalar is passed; raises TypeError if there is none."""
    name = np.dtype(argument.dtype).name
    if name not in _TYPES:
        raise TypeError(
            f"argument {place} has the dtype {name}, and a tunable parameter chooses the type of `{parameter.text}`: only "
            "numbers such as numpy.float32 and numpy.int32 are converted; pass one, or give the parameter a fixed type"
        )
    return _TYPES[name]


def head_macros(source: str) -> List[str]:
    """Returns the macros that stand for `__global__`."""
    lines = COMMENT.sub(" ", source).replace("\\\n", " ")
    return re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?[ \t].*__global__", lines)


def converting(
    source: str, kernel_name: str, types: Mapping[int, str], parameters: Sequence[Parameter], macros: Sequence[str] = ()
) -> Conversion:
    """Returns a source whose kernel converts parameters; raises NoFittingList if it defines the kernel otherwise.

    :param types: types of C in which parameters are passed, by place
    :param parameters: those of the kernel
    :param macros: those that stand for `__global__`
    """
    # Comments and directives become blanks, so that places stay.
    code = COMMENT.sub(_blank, source)
    base = base_name(kernel_name)
    by_macro = re.compile(rf"\btemplate\b(?!\s*<)[^;]*\b{re.escape(base)}\b")
    if any(by_macro.search(each) for each in _DIRECTIVE.findall(code)):
        raise NoFittingList
    code = _DIRECTIVE.sub(_blank, code)
    edits: List[Tuple[int, int, str]] = []
    definitions = fitting = 0
    for head in _heads(code, base, ("__global__", *macros)):
        if head.instantiates:
            # The program instantiates what it launches. Without its arguments this one names no template any more.
            end = code.find(";", head.end) + 1 or len(code)
            edits.append((head.start, end, "\n" * code.count("\n", head.start, end)))
            continue
        body = re.compile(r"[^;{]*\{").match(code, head.end)
        definitions += body is not None and not head.special
        if head.special and not head.with_arguments:
            raise NoFittingList
        found = _converted_list(head, types, parameters)
        if found is None:
            continue
        edits += found[0]
        # A declaration has no body.
        if body is not None:
            edits.append((body.end(), body.end(), found[1]))
            fitting += not head.special
    if definitions and not fitting:
        raise NoFittingList
    for start, stop, new in sorted(edits, reverse=True):
        source = source[:start] + new + source[stop:]
    return Conversion(source, fitting > 0)


def _blank(found: "re.Match[str]") -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _heads(code: str, base: str, words: Sequence[str]) -> Iterator[_Head]:
    """Yields the declarations, definitions and instantiations of a kernel."""
    marks = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")
    for at in re.finditer(rf"\b{re.escape(base)}\s*(<[^;{{}}()]*>)?\s*\(", code):
        start = max(code.rfind(mark, 0, at.start()) for mark in ";{}") + 1
        before = code[start : at.start()]
        inside = closed_list(code, at.end() - 1)
        if marks.search(before) is None or inside is None:
            continue
        instantiates = re.match(r"\s*(extern\s+)?template\b(?!\s*<)", before) is not None
        special = at[1] is not None or re.search(r"\btemplate\s*<\s*>", before) is not None
        end = at.end() + len(inside) + 1
        start += len(before) - len(before.lstrip())
        yield _Head(start, at.end(), end, split_top(inside), instantiates, special, at[1] is not None)


def _converted_list(
    head: _Head, types: Mapping[int, str], parameters: Sequence[Parameter]
) -> Optional[Tuple[List[Tuple[int, int, str]], str]]:
    """Returns the edits of a list of parameters and the conversions, or None if it is that of another function."""
    if len(head.parts) != len(parameters):
        return None
    edits, copies = [], ""
    for place, kind in types.items():
        declared = " ".join(head.parts[place].split("=")[0].replace("__grid_constant__", "").split())
        wanted = _words(parameters[place].text)[:-1]
        words = _words(declared)
        if not head.special and (words[: len(wanted)] != wanted or len(words) > len(wanted) + 1):
            return None
        # Declarations may omit names.
        named = len(words) > (1 if head.special else len(wanted))
        end = head.inside + sum(len(part) + 1 for part in head.parts[:place]) + len(head.parts[place])
        edits.append((end - len(head.parts[place].lstrip()), end, f"{kind} KT_given_{words[-1]}" if named else kind))
        copies += f" {declared} = KT_given_{words[-1]};" if named else ""
    return edits, copies


def _words(text: str) -> List[str]:
    """Returns the words of a declaration that tell its type, and its name."""
    return [word for word in re.findall(r"\w+|[^\w\s]", text) if word not in _QUALIFIERS]
