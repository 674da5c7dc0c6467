"""The interface of Kernel Tuner 1.x over `tuner`.

    from tuner.kernel_tuner import tune_kernel

replaces `from kernel_tuner import tune_kernel`, and `python -m tuner.kernel_tuner script.py`
runs an unmodified script that imports `kernel_tuner`. See docs/how-to/from-kernel-tuner.md.
"""

from __future__ import annotations

from .. import __version__

try:
    import numpy as _numpy  # noqa: F401
except ImportError as error:
    raise ImportError("tuner.kernel_tuner needs NumPy; type `pip install numpy`") from error

from . import accuracy, file_utils, kernelbuilder, observers, searchspace, strategies, util
from .integration import create_device_targets, store_results
from .interface import run_kernel, tune_cache, tune_kernel, tune_kernel_T1

__all__ = [
    "__version__",
    "accuracy",
    "create_device_targets",
    "file_utils",
    "kernelbuilder",
    "observers",
    "run_kernel",
    "searchspace",
    "store_results",
    "strategies",
    "tune_cache",
    "tune_kernel",
    "tune_kernel_T1",
    "util",
]
