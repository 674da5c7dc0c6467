"""Warnings that name the line of the script, whatever calls lie between."""

from __future__ import annotations

import sys
import warnings
from typing import Optional, Set, Type

_told: Set[str] = set()


class IgnoredArgumentWarning(UserWarning):
    """An argument that has no effect here."""


def warn(kind: Type[Warning], message: str) -> None:
    """Warns at the line outside of this package that called it."""
    warnings.warn(message, kind, stacklevel=_script_level())


def tell_once(kind: Type[Warning], message: str) -> None:
    """Warns once in a process."""
    if message not in _told:
        _told.add(message)
        warn(kind, message)


def _script_level() -> int:
    """Returns the stack level of the caller outside of this package, for `warnings.warn` in the caller."""
    level, frame = 0, sys._getframe().f_back
    while frame is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    return level + 1


def _is_ours(name: Optional[str]) -> bool:
    return (name or "").partition(".")[0] == "tuner"
