"""Base classes of observers."""

from __future__ import annotations

from typing import Any, Dict


class BenchmarkObserver:
    """Base class of a script's observers. Hooks during a measurement are not called: the tuner measures in
    another process."""

    #: Device of the configuration; its `func.num_regs` has the registers of a thread.
    dev: Any = None

    def register_device(self, dev: Any) -> None:
        """Keeps the device."""
        self.dev = dev

    def register_configuration(self, params: Any) -> None:
        """Has no effect."""

    def before_start(self) -> None:
        """Has no effect."""

    def after_start(self) -> None:
        """Has no effect."""

    def during(self) -> None:
        """Has no effect."""

    def after_finish(self) -> None:
        """Has no effect."""

    def get_results(self) -> Dict[str, Any]:
        """Returns nothing."""
        return {}


class IterationObserver(BenchmarkObserver):
    """Base class of observers of each iteration."""


class ContinuousObserver(BenchmarkObserver):
    """Base class of observers of a longer time."""


class OutputObserver(BenchmarkObserver):
    """Base class of observers of outputs."""


class PrologueObserver(BenchmarkObserver):
    """Base class of observers before the measurement."""
