"""Values, compiler options and arrays as a search space spells them."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import expressions
from .._text import escaped
from .notices import tell_once


class DroppedOptionWarning(UserWarning):
    """A compiler option that NVRTC does not take."""


# Options of nvcc and NVRTC with a value, which may be another word, and their short spellings.
_WITH_VALUE = {
    "-I": "-I", "--include-path": "-I", "-isystem": "-I", "--system-include": "-I", "-D": "-D", "--define-macro": "-D",
    "-U": "-U", "--undefine-macro": "-U", "-maxrregcount": "--maxrregcount=", "--maxrregcount": "--maxrregcount=",
    "-std": "--std=", "--std": "--std=", "-fmad": "--fmad=", "--fmad": "--fmad=", "-ftz": "--ftz=", "--ftz": "--ftz=",
    "-prec-div": "--prec-div=", "--prec-div": "--prec-div=", "-prec-sqrt": "--prec-sqrt=", "--prec-sqrt": "--prec-sqrt=",
}  # fmt: skip
_DROPPED_WITH_VALUE = {
    "-Xcompiler", "--compiler-options", "-Xptxas", "--ptxas-options", "-Xlinker", "--linker-options", "-Xnvlink",
    "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "-ccbin", "--compiler-bindir",
}  # fmt: skip


def option_words(options: Sequence[str]) -> Iterator[str]:
    """Returns compiler options as one word each: `-I dir`, `-I`, `dir` and `--include-path=dir` are `-Idir`."""
    words = iter(word.strip() for word in options)
    for word in words:
        name, _, value = word.partition("=")
        apart = word.split(None, 1)
        if apart and (apart[0] in _WITH_VALUE or apart[0] in _DROPPED_WITH_VALUE):
            name, value = apart[0], apart[1] if len(apart) > 1 else next(words, "")
        if name in _WITH_VALUE:
            yield _WITH_VALUE[name] + value
        elif name in _DROPPED_WITH_VALUE:
            yield f"{name}={value}"
        elif word:
            yield word


def compile_options(
    options: Sequence[str], names: Mapping[str, str], tune_params: Mapping[str, Sequence[Any]]
) -> Tuple[List[str], List[str]]:
    """Returns the options that NVRTC takes, and the folders of included files.

    :param names: names of the parameters in the search space
    :param tune_params: values of the parameters
    """
    kept: List[str] = []
    include: List[str] = []
    dropped: List[str] = []
    braced = {name: f"{{{text}}}" for name, text in names.items()}
    for word in option_words(options):
        if word.startswith("-I"):
            include.append(str(Path(word[2:]).resolve()))
            continue
        chosen = [name for name in tune_params if name in expressions.words_of(word)]
        combinations = itertools.product(*(tune_params[name] for name in chosen))
        spelled = [_taken(expressions.replace_params(word, dict(zip(chosen, values)))) for values in combinations]
        if None in spelled:
            dropped.append(word)
        else:
            kept += [expressions.replace_params(word, braced)] if chosen else [text for text in spelled if text]
    if dropped:
        tell_once(
            DroppedOptionWarning,
            f"compiler options left out: {' '.join(dropped)}; the target is that of the device, and host options "
            "have no use",
        )
    return kept, include


def _taken(word: str) -> Optional[str]:
    """Returns the spelling in which NVRTC takes an option, an empty one where the option has no effect; None where
    NVRTC does not take it."""
    if word.startswith(("-D", "-U", "-default-device", "--device-as-default")):
        return word
    if re.fullmatch(r"--?(use_fast_math|fmad=\w+|ftz=\w+|prec-div=\w+|prec-sqrt=\w+|extra-device-vectorization)", word):
        return "--" + word.lstrip("-")
    standard = re.fullmatch(r"--?std=c\+\+(\d+)", word)
    if standard:
        # The tuner's own is C++17.
        later = int(standard[1]) > 17 and standard[1] not in ("98", "03")
        return "--" + word.lstrip("-") if later else ""
    return "--" + word.lstrip("-") if re.fullmatch(r"--?maxrregcount=\d+", word) else None


def quoted(text: str) -> str:
    """Formats a text for YAML: JSON's quotes and breaks, with YAML's escapes of other characters."""
    # JSON writes a character beyond U+FFFF as two escapes, which YAML does not join.
    return "".join(
        character if character.isascii() and character.isprintable() else escaped(character)
        for character in json.dumps(text, ensure_ascii=False)
    )


def scalar(value: Any) -> str:
    """Formats a parameter's value for YAML."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return quoted(value)
    raise TypeError(f"the value {value!r} of a parameter is neither a number nor a text; use one of these")


def scalar_value(value: Any, where: str, kind: str = "") -> str:
    """Formats the value of a scalar argument: of a struct by its fields, of a vector by its elements.

    :param kind: its element type
    """
    if isinstance(value, np.void):
        # Fields whose name begins with `_` only pad.
        names = [name for name in value.dtype.names or () if not name.startswith("_")]
        for name in value.dtype.names or ():
            if name.startswith("_") and any(value[name].tobytes()):
                raise ValueError(f"`{name}` of {where} is padding by its name, and has contents; rename it")
        fields = [scalar_value(value[name], f"{name} of {where}") for name in names]
        if kind.startswith("{"):
            return f"{{ {', '.join(map('{}: {}'.format, names, fields))} }}"
        return f"[{', '.join(fields)}]"
    if isinstance(value, np.ndarray):
        # The elements of vectors follow each other.
        texts = [scalar_value(each, where) for each in value.ravel()]
        return f"[{', '.join(text.strip('[]') for text in texts)}]"
    item = value.item()
    if isinstance(item, complex):
        return f"[{item.real!r}, {item.imag!r}]"
    if isinstance(item, float) and math.isinf(item) and value.dtype.itemsize < 8:
        # The nearest number of a smaller type is infinite.
        return "1.0e+300" if item > 0 else "-1.0e+300"
    if isinstance(item, float) and not math.isfinite(item):
        raise ValueError(f"{where} is {item}; pass it in an array")
    return scalar(item)


def save_array(path: Path, value: Any) -> None:
    """Writes an array as it is in memory: `.npy`, or its bytes where `.npy` has no element type of CUDA."""
    value = value if value.size else np.zeros(1, dtype=value.dtype)
    if path.suffix == ".npy":
        np.save(path, value.ravel(order="K"), allow_pickle=False)
    else:
        value.ravel(order="K").tofile(path)


def ending_of(value: Any) -> str:
    """Returns the ending of an array's file."""
    return ".bin" if value.dtype.kind in "cV" else ".npy"


def argument_file(place: int, argument: Any) -> str:
    return f"argument_{place}{ending_of(argument)}"
