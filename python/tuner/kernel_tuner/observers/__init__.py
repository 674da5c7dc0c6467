"""Observers of Kernel Tuner. Registers and times are measured; other quantities are refused by name."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..notices import tell_once
from .observer import BenchmarkObserver, ContinuousObserver, IterationObserver, OutputObserver, PrologueObserver
from .register import RegisterObserver

__all__ = [
    "BenchmarkObserver",
    "ContinuousObserver",
    "IterationObserver",
    "OutputObserver",
    "PrologueObserver",
    "RegisterObserver",
    "honoured",
    "measure",
]


class ObserverWarning(UserWarning):
    """An observer that has no effect."""


_HOOKS = ("before_start", "after_start", "during", "after_finish")


class _Function:
    """The compiled kernel of a result, as observers see it."""

    def __init__(self, num_regs: int) -> None:
        self.num_regs = num_regs


class _Device:
    """The device of a result, as observers see it."""

    def __init__(self, num_regs: int) -> None:
        self.func = _Function(num_regs)


def honoured(observers: Sequence[Any], settings: Optional[Mapping[str, Any]] = None) -> List[Any]:
    """Returns the observers that have an effect, and warns of the others: those that only read the compiled
    kernel have one.

    :param settings: what Kernel Tuner passes to a function that makes an observer
    """
    kept = []
    for observer in [_made(each, settings or {}) for each in observers]:
        if not isinstance(observer, BenchmarkObserver):
            raise TypeError(f"an observer of type {type(observer).__name__} is not known; derive it from BenchmarkObserver")
        measures = any(getattr(type(observer), name) is not getattr(BenchmarkObserver, name) for name in _HOOKS)
        if measures or type(observer).get_results is BenchmarkObserver.get_results:
            _warn(observer, "the tuner measures in a process of its own")
        else:
            kept.append(observer)
    return kept


def _made(observer: Any, settings: Mapping[str, Any]) -> Any:
    """Returns an observer, or what a class or function makes from the settings of a device."""
    if isinstance(observer, BenchmarkObserver) or not callable(observer):
        return observer
    return _made(observer(dict(settings)), settings)


def measure(observers: Sequence[Any], registers: int) -> Dict[str, Any]:
    """Returns what observers read of a trial.

    :param registers: of a thread
    """
    results: Dict[str, Any] = {}
    for observer in observers:
        observer.dev = _Device(registers)
        try:
            results.update(observer.get_results() or {})
        except AttributeError as error:
            _warn(observer, f"it reads what is not known here ({error})")
    return results


def _warn(observer: Any, why: str) -> None:
    tell_once(ObserverWarning, f"the observer {type(observer).__name__} has no effect: {why}")


def refuse(name: str, quantity: str, instead: str) -> Any:
    """Returns a class that raises NotImplementedError when it is used."""

    def __init__(self: Any, *_: Any, **__: Any) -> None:
        raise NotImplementedError(f"{name} ({quantity}) is not supported; {instead}")

    body: Dict[str, Any] = {"__init__": __init__, "__doc__": f"{quantity}: not supported."}
    return type(name, (BenchmarkObserver,), body)
