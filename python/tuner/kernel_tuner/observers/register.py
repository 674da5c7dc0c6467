"""Observer of registers."""

from .observer import BenchmarkObserver


class RegisterObserver(BenchmarkObserver):
    """Adds `num_regs`, the registers of a thread, to each result."""
