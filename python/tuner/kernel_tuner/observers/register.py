"""Observer of registers."""

from __future__ import annotations

from typing import Any, Dict

from .observer import BenchmarkObserver


class RegisterObserver(BenchmarkObserver):
    """Adds `num_regs`, the registers of a thread, to each result."""

    def get_results(self) -> Dict[str, Any]:
        """Returns the registers of the compiled kernel."""
        return {"num_regs": self.dev.func.num_regs}
