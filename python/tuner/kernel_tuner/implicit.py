"""Names that nvcc knows in every source, as it includes the runtime's header by itself; NVRTC does not."""

from __future__ import annotations

import re

_NAMES = re.compile(
    r"\b(u?int(_fast)?(8|16|32|64)_t|u?int(ptr|max)_t|INFINITY|NAN|HUGE_VALF?|M_(E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|"
    r"2_SQRTPI|SQRT2|SQRT1_2)|(S?CHAR|SHRT|INT|LONG|LLONG)_(MIN|MAX)|U(CHAR|SHRT|INT|LONG|LLONG)_MAX|CHAR_BIT|RAND_MAX|"
    r"uint|ushort|ulong|u_char|ssize_t|std(?=\s*::))\b"
)
_DEFINED = (r"#[ \t]*define[ \t]+{}\b", r"\btypedef\b[^;{{}}]*\b{}\s*;", r"\busing\s+{}\s*=")


def include_of(source: str) -> str:
    """Returns the directive that nvcc has in front of a source, where the source uses a name of that header which it
    does not define itself."""
    names = {found[0] for found in _NAMES.finditer(source)}
    missing = [name for name in names if not any(re.search(pattern.format(name), source) for pattern in _DEFINED)]
    return "#include <cuda_runtime.h>\n" if missing else ""


def defines_macro(source: str, name: str) -> bool:
    """Reports whether a source defines a macro whatever is defined before."""
    guarded = re.search(rf"(?m)^[ \t]*#[ \t]*(ifndef[ \t]+|if[^\n]*defined[ (]*){name}\b", source)
    return guarded is None and re.search(rf"(?m)^[ \t]*#[ \t]*define[ \t]+{name}\b", source) is not None
