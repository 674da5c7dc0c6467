"""Strategies of Kernel Tuner by name: `strategy=kernel_tuner.strategies.minimize` is `strategy="minimize"`."""

from __future__ import annotations

from ..searches import OTHERS, STRATEGIES


class Strategy:
    """A strategy by its name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<strategy {self.__name__}>"


def __getattr__(name: str) -> Strategy:
    if name in STRATEGIES or name in OTHERS:
        return Strategy(name)
    raise AttributeError(f"there is no strategy {name}; use one of {', '.join([*STRATEGIES, *OTHERS])}")
