"""Names of this package as `kernel_tuner`, for scripts that are not touched."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings
from pathlib import Path
from typing import Any, Optional, Sequence

_NAME = "kernel_tuner"
_OURS = "tuner.kernel_tuner"
#: Folder with a package of that name, for processes that a script starts.
STAND_IN = Path(__file__).resolve().parent / "stand_in"
#: Why modules of Kernel Tuner have no counterpart.
_MISSING = {
    "backends": "the program drives the device",
    "core": "the program compiles, checks and times kernels",
    "energy": "power is measured by `tuner run --objective time,energy`",
    "hyper": "the strategies have no hyperparameters",
    "runners": "the program schedules the configurations",
    "strategies.common": "strategies of a script are not supported",
    "strategies.wrapper": "strategies of a script are not supported",
    "utils": "directives (OpenACC, OpenMP) are not supported, kernels of CUDA only",
}


class MissingPackageWarning(UserWarning):
    """A package that a script imports is replaced."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `kernel_tuner` and its modules in this package."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[types.ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname != _NAME and not fullname.startswith(_NAME + "."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        ours = _OURS + spec.name[len(_NAME) :]
        try:
            return importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name != ours:
                raise
            why = _MISSING.get(spec.name[len(_NAME) + 1 :])
            raise ModuleNotFoundError(
                f"`{spec.name}` is not offered by tuner.kernel_tuner{f': {why}' if why else ''}; "
                "docs/how-to/from-kernel-tuner.md lists what is",
                name=spec.name,
            ) from None

    def exec_module(self, module: types.ModuleType) -> None:
        # It was executed under its own name.
        return


def install() -> None:
    """Makes `import kernel_tuner` import this package, and `import cupy` NumPy where CuPy is missing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if importlib.util.find_spec("cupy") is None:
        sys.modules["cupy"] = _NumpyAsCupy("cupy")


class _NumpyAsCupy(types.ModuleType):
    """CuPy's place where it is not installed: its arrays are NumPy's, which the tuner copies to the
    device."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        import numpy

        warnings.warn("cupy is not installed: its arrays are arrays of NumPy", MissingPackageWarning, stacklevel=2)
        return numpy.asarray if name == "asnumpy" else getattr(numpy, name)
