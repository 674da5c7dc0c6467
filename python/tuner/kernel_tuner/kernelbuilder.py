"""`PythonKernel`: a kernel as a function of Python."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence

import numpy as np

from . import limits
from .integration import TuneResults
from .arguments import to_host
from .interface import device_name, run_on_host
from .references import find_device_name


class PythonKernel:
    """Runs a kernel with one configuration each time it is called."""

    def __init__(
        self,
        kernel_name: str,
        kernel_string: Any,
        problem_size: Any,
        arguments: Sequence[Any],
        params: Optional[Mapping[str, Any]] = None,
        inputs: Optional[Sequence[bool]] = None,
        outputs: Optional[Sequence[bool]] = None,
        device: Any = 0,
        platform: int = 0,
        block_size_names: Optional[List[str]] = None,
        grid_div_x: Any = None,
        grid_div_y: Any = None,
        grid_div_z: Any = None,
        verbose: bool = True,
        lang: Optional[str] = None,
        results_file: Optional[str] = None,
    ) -> None:
        self.params = dict(params or {})
        if results_file:
            self.params.update(TuneResults(results_file).get_best_config(find_device_name(limits.device() or device_name(device)), problem_size))
        self._arguments = list(arguments)
        self.inputs = list(inputs) if inputs else [True] * len(self._arguments)
        self.outputs = list(outputs) if outputs else [True] * len(self._arguments)
        self._call = {
            "kernel_name": kernel_name, "kernel_source": kernel_string, "problem_size": problem_size, "device": device,
            "block_size_names": block_size_names, "grid_div_x": grid_div_x, "grid_div_y": grid_div_y,
            "grid_div_z": grid_div_z, "lang": lang,
        }  # fmt: skip

    def run_kernel(self, args: Sequence[Any]) -> List[Any]:
        """Runs the kernel and returns the arguments that are outputs."""
        given = [new if is_input else old for new, old, is_input in zip(args, self._arguments, self.inputs)]
        results = run_on_host(to_host(given), {**self._call, "params": self.params})
        if str(self._call["lang"]).lower() == "cupy":
            # Arrays of the device change in place.
            for array, value in zip(args, results):
                if hasattr(array, "set"):
                    array.set(value)
                elif isinstance(array, np.ndarray):
                    array[...] = value
        return [
            value for value, is_output in zip(results, self.outputs) if is_output and isinstance(value, np.ndarray)
        ]

    def __call__(self, *args: Any) -> List[Any]:
        """Runs the kernel and returns the arguments that are outputs."""
        return self.run_kernel(args)
