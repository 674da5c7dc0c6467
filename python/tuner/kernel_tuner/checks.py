"""Kinds of the arguments of `tune_kernel` and `run_kernel`."""

from __future__ import annotations

import math
import numbers
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from . import util

_DICTS = ("smem_args", "cmem_args", "texmem_args", "defines", "strategy_options")
_TEXTS = ("lang", "compiler")


def check_kinds(given: Mapping[str, Any]) -> None:
    """Raises TypeError or ValueError for an argument of another kind than its name has.

    :param given: arguments by name, as far as a function has them
    """
    name = given["kernel_name"]
    if not isinstance(name, str):
        raise TypeError(f"kernel_name is of type {type(name).__name__}; give the name of a `__global__` function")
    for key in _TEXTS:
        if not isinstance(given.get(key), (str, type(None))):
            raise TypeError(f"{key} is of type {type(given[key]).__name__}; give a text, or leave it out")
    for key in _DICTS:
        if not isinstance(given.get(key), (Mapping, type(None))):
            raise TypeError(f"{key} is of type {type(given[key]).__name__}; give a dict")
    if not isinstance(given.get("tune_params", {}), Mapping):
        raise TypeError(f"tune_params is of type {type(given['tune_params']).__name__}; give a dict of lists")
    for parameter in given.get("tune_params", {}):
        if not isinstance(parameter, str):
            raise TypeError(f"the name {parameter!r} of a parameter is of type {type(parameter).__name__}; give a text")
    if not isinstance(given.get("cache"), (str, Path, type(None))):
        raise TypeError(f"cache is of type {type(given['cache']).__name__}; give the name of a file")
    _check_listed(given)
    _check_numbers(given)
    if given.get("verify") is not None and not callable(given["verify"]):
        raise TypeError(f"verify is of type {type(given['verify']).__name__}; give a function of the answer and the outputs")


def _check_listed(given: Mapping[str, Any]) -> None:
    options = given.get("compiler_options")
    if isinstance(options, (str, bytes)):
        raise TypeError(f"compiler_options is the text {options!r}; give a list, such as [{options!r}]")
    for option in options or ():
        if not isinstance(option, str):
            raise TypeError(f"{option!r} in compiler_options is of type {type(option).__name__}; give a text")
    source = given["kernel_source"]
    if isinstance(source, (list, tuple)) and not source:
        raise ValueError("kernel_source is an empty list; give the files of the source, that of the kernel first")
    arguments = given["arguments"]
    if isinstance(arguments, (np.ndarray, str, bytes, Mapping)) or not np.iterable(arguments):
        raise TypeError(f"arguments is of type {type(arguments).__name__}; give a list of arrays and scalars")
    observers = given.get("observers")
    if not isinstance(observers, (list, tuple, type(None))):
        raise TypeError(f"observers is of type {type(observers).__name__}; give a list of observers")
    restrictions = given.get("restrictions")
    if isinstance(restrictions, (bool, int, float)):
        raise TypeError(f"restrictions is {restrictions!r}; give a list of texts, functions or constraints")
    objective = given.get("objective")
    if isinstance(objective, (list, tuple)) and not objective:
        raise ValueError("objective is an empty list; name an objective, or leave it out for the time")


def _check_numbers(given: Mapping[str, Any]) -> None:
    device, seed, atol = given.get("device"), given.get("seed"), given.get("atol", 0)
    if not isinstance(device, (int, str, np.integer)) or isinstance(device, bool):
        raise TypeError(f"device is {device!r}; give the number of a GPU, or a device such as 'vgpu:h100'")
    if isinstance(device, (int, np.integer)) and device < 0:
        raise ValueError(f"device is {device}; give the number of a GPU from 0")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer))):
        raise TypeError(f"seed is {seed!r}; give a whole number from 0 to 2**32 - 1")
    # Any difference is allowed by an infinite tolerance.
    if not is_number(atol) or math.isnan(atol) or atol < 0:
        raise ValueError(f"atol is {atol!r}; give the largest allowed difference, a number from 0")


def is_number(value: Any) -> bool:
    """Reports whether a value is a number of Python or NumPy, and no truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def params_of(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the parameters of `run_kernel`, which may be a result of `tune_kernel`: its other keys are left out."""
    if not isinstance(given, Mapping):
        raise TypeError(f"params is of type {type(given).__name__}; give a dict of values")
    if "times" not in given and "timestamp" not in given:
        return dict(given)
    scalars = (bool, int, float, str, np.generic)
    return {
        name: value for name, value in given.items()
        if name not in util.RESULT_KEYS and name.isidentifier() and isinstance(value, scalars)
    }  # fmt: skip


def choose_objectives(
    objective: Any, higher: Any, objectives: Optional[Mapping[str, bool]]
) -> List[Tuple[str, bool]]:
    """Returns the objectives, each with its direction: True where higher is better."""
    if objectives:
        if not isinstance(objectives, dict):
            raise ValueError("objectives is not a dict of objective: higher_is_better; pass one")
        return list(objectives.items())
    names = list(objective) if isinstance(objective, (list, tuple)) else [objective]
    directions = list(higher) if isinstance(higher, (list, tuple)) else [higher] * len(names)
    if len(directions) != len(names):
        raise ValueError(
            f"objective_higher_is_better has {len(directions)} elements and objective {len(names)}; give one for each"
        )
    aims = [util.get_objective_defaults(*pair) for pair in zip(names, directions)]
    return [(name, bool(is_higher)) for name, is_higher in aims]
