"""Observers of Kernel Tuner. Registers and times are measured; other quantities are refused by name."""

from __future__ import annotations

import warnings
from typing import Any, Dict, Sequence

from .observer import BenchmarkObserver, ContinuousObserver, IterationObserver, OutputObserver, PrologueObserver
from .register import RegisterObserver

__all__ = [
    "BenchmarkObserver",
    "ContinuousObserver",
    "IterationObserver",
    "OutputObserver",
    "PrologueObserver",
    "RegisterObserver",
    "measures_registers",
]


class ObserverWarning(UserWarning):
    """An observer that has no effect."""


def measures_registers(observers: Sequence[Any]) -> bool:
    """Reports whether an observer measures registers, and warns of those that have no effect."""
    for observer in observers:
        if not isinstance(observer, (RegisterObserver, BenchmarkObserver)):
            raise TypeError(f"an observer of type {type(observer).__name__} is not known; derive it from BenchmarkObserver")
        if not isinstance(observer, RegisterObserver):
            warnings.warn(
                f"the observer {type(observer).__name__} has no effect: the tuner measures in a process of its own",
                ObserverWarning,
                stacklevel=4,
            )
    return any(isinstance(observer, RegisterObserver) for observer in observers)


def refuse(name: str, quantity: str, instead: str) -> Any:
    """Returns a class that raises NotImplementedError when it is used."""

    def __init__(self: Any, *_: Any, **__: Any) -> None:
        raise NotImplementedError(f"{name} ({quantity}) is not supported; {instead}")

    body: Dict[str, Any] = {"__init__": __init__, "__doc__": f"{quantity}: not supported."}
    return type(name, (BenchmarkObserver,), body)
