"""Functions of `kernel_tuner.util` that scripts use."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from functools import wraps
from inspect import signature as _signature
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from .._text import visible
from .expressions import evaluate, replace_params as replace_param_occurrences
from .notices import warn

default_block_size_names = ["block_size_x", "block_size_y", "block_size_z"]
#: Keys of a result with the milliseconds of its parts.
TIMINGS = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
#: Keys of a result besides the parameters and metrics.
RESULT_KEYS = (
    "time", "times", *TIMINGS, "timestamp", "verdict", "timing", "reference", "compared", "detail", "__error__",
)  # fmt: skip
_MAXIMIZED = ("fitness", "GFLOP/s", "TFLOP/s", "GB/s", "TB/s", "GFLOPS/W", "TFLOPS/W", "GFLOP/J", "TFLOP/J")
_MINIMIZED = ("time", "energy", "cost", "loss")


class ErrorConfig(str):
    """A configuration without a time."""

    def __new__(cls) -> "ErrorConfig":
        return super().__new__(cls, cls.__name__)

    def __reduce__(self) -> Any:
        # Texts are copied by their contents, which the class has.
        return type(self), ()


class InvalidConfig(ErrorConfig):
    """A configuration that a restriction or the device excludes."""


class CompilationFailedConfig(ErrorConfig):
    """A configuration that does not compile."""


class RuntimeFailedConfig(ErrorConfig):
    """A configuration that fails when it runs, or whose results are wrong."""


class SkippableFailure(Exception):
    """A failure of one configuration."""


class StopCriterionReached(Exception):
    """The end of a budget."""


class NpEncoder(json.JSONEncoder):
    """Writes scalars and arrays of NumPy as JSON."""

    def default(self, o: Any) -> Any:
        if isinstance(o, np.generic):
            return o.item()
        if isinstance(o, np.ndarray):
            return o.tolist()
        return super().default(o)


_ERRORS = {kind.__name__: kind for kind in (ErrorConfig, InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig)}


def error_named(name: Any) -> Optional[ErrorConfig]:
    """Returns the error of a name in a cache file."""
    return _ERRORS[name]() if isinstance(name, str) and name in _ERRORS else None


def error_of(verdict: str) -> ErrorConfig:
    """Returns Kernel Tuner's error of a verdict."""
    if verdict == "compile_failed":
        return CompilationFailedConfig()
    return InvalidConfig() if verdict == "rejected" else RuntimeFailedConfig()


def verdict_of(error: Any) -> str:
    """Returns the verdict of an error of Kernel Tuner, or of a configuration without one (None)."""
    if error is None:
        return "ok"
    # A configuration outside the restrictions has no result: `InvalidConfig` is a limit of the device.
    return {"CompilationFailedConfig": "compile_failed", "InvalidConfig": "launch_failed"}.get(str(error), "crashed")


def check_tune_params_list(
    tune_params: Mapping[str, Any], observers: Optional[Sequence[Any]], simulation_mode: Optional[bool] = False
) -> None:
    """Raises ValueError if a parameter has a reserved name."""
    for name, param in tune_params.items():
        if name in ("grid_size_x", "grid_size_y", "grid_size_z", "time"):
            raise ValueError(f"Tune parameter {name} with value {param} has a forbidden name!")
    if any("nvml_" in name for name in tune_params) and not simulation_mode:
        raise ValueError("Tune parameters starting with nvml_ require an NVMLObserver!")


def check_block_size_names(block_size_names: Any) -> None:
    """Raises ValueError if the names of the block's dimensions are not up to three texts."""
    if block_size_names is None:
        return
    if not isinstance(block_size_names, list):
        raise ValueError("block_size_names should be a list of strings!")
    if len(block_size_names) > 3:
        raise ValueError("block_size_names should not contain more than 3 names!")
    if not all(isinstance(name, str) for name in block_size_names):
        raise ValueError("block_size_names should contain only strings!")


def append_default_block_size_names(block_size_names: Optional[List[str]]) -> None:
    """Adds the default names of dimensions that the list lacks."""
    if block_size_names is not None:
        block_size_names.extend(default_block_size_names[len(block_size_names) :])


def check_block_size_params_names_list(
    block_size_names: Optional[List[str]], tune_params: Mapping[str, Any]
) -> Optional[List[str]]:
    """Returns the names of the block's dimensions, and warns of those that are no parameters."""
    if block_size_names is not None:
        for name in block_size_names:
            if name not in tune_params:
                warn(UserWarning, f"Block size name {name} is not specified in the tunable parameters list!")
        return block_size_names
    if not any(name.lower() in default_block_size_names for name in tune_params):
        warn(UserWarning, "None of the tunable parameters specify thread block dimensions!")
        return None
    spelled = [name for name in tune_params if name.lower() in default_block_size_names and name not in default_block_size_names]
    return sorted(spelled, key=str.casefold)


def check_restriction(restrict: Any, params: Mapping[str, Any]) -> bool:
    """Reports whether a configuration satisfies a restriction."""
    from .restrictions import read

    return all(bool(rule.function(dict(params))) for rule in read([restrict], {name: [value] for name, value in params.items()}))


def check_restrictions(restrictions: Any, params: Mapping[str, Any], verbose: bool) -> bool:
    """Reports whether a configuration satisfies all restrictions."""
    if callable(restrictions):
        return bool(restrictions(params))
    for restrict in restrictions:
        try:
            valid = check_restriction(restrict, params)
        except ZeroDivisionError:
            continue
        if not valid:
            if verbose:
                print(f"skipping config {visible(get_instance_string(params))}, reason: config fails restriction {visible(restrict)}")
            return False
    return True


def check_matching_problem_size(cached_problem_size: Any, problem_size: Any) -> None:
    """Raises ValueError if a cache is that of another problem size."""
    from .cache import check_matching_problem_size as check

    check(cached_problem_size, problem_size)


def read_cache(cachefile: str, open_cache: bool = True) -> Dict[str, Any]:
    """Reads a cache file; see :func:`tuner.kernel_tuner.cache.read_cache`."""
    from .cache import read_cache as read

    return read(cachefile, open_cache)


def close_cache(cachefile: str) -> None:
    """Makes a cache file that was appended to valid JSON."""
    from .cache import close_cache as close

    close(cachefile)


def store_cache(key: str, params: Mapping[str, Any], cachefile: Optional[str], cache: Dict[str, Any]) -> None:
    """Adds a configuration to a cache and to its open file."""
    from .cache import store_cache as store

    store(key, params, cachefile, cache)


def process_cache(cachefile: str, kernel_options: Any, tuning_options: Any, runner: Any) -> Dict[str, Any]:
    """Opens a cache file for a device, or makes it, and returns its results."""
    from .cache import CacheFile, header

    tune_params = tuning_options.tune_params
    objective = getattr(tuning_options, "objective", "time")
    aims = [(name, False) for name in ([objective] if isinstance(objective, str) else objective)]
    cache = CacheFile(cachefile, header(kernel_options.kernel_name, kernel_options.problem_size, tune_params, aims))
    cache.open(runner.get_device_info().name)
    return cache.known()


def get_temp_filename(suffix: Optional[str] = None) -> str:
    """Makes an empty file in the working folder and returns its name."""
    handle, name = tempfile.mkstemp(suffix=suffix or "", prefix="temp_", dir=os.getcwd())
    os.close(handle)
    return name


def get_best_config(
    results: Sequence[Mapping[str, Any]], objective: str, objective_higher_is_better: bool = False
) -> Any:
    """Returns the best result by an objective."""
    worst = -sys.float_info.max if objective_higher_is_better else sys.float_info.max

    def value(row: Mapping[str, Any]) -> float:
        has = "__error__" not in row and isinstance(row.get(objective), (float, int))
        return float(row[objective]) if has else worst

    return (max if objective_higher_is_better else min)(results, key=value)


def get_pareto_results(
    results: Sequence[Dict[str, Any]],
    objectives: Sequence[str],
    objective_higher_is_better: Sequence[bool],
    mark_optima: bool = True,
) -> List[Dict[str, Any]]:
    """Returns the results that no other one beats in all objectives, marked with the key `optimal`."""
    signs = [-1.0 if higher else 1.0 for higher in objective_higher_is_better]
    rows = [row for row in results if "__error__" not in row and all(name in row for name in objectives)]
    costs = [[sign * row[name] for sign, name in zip(signs, objectives)] for row in rows]

    def beaten(cost: List[float]) -> bool:
        return any(
            all(a <= b for a, b in zip(other, cost)) and any(a < b for a, b in zip(other, cost)) for other in costs
        )

    front = [row for row, cost in zip(rows, costs) if not beaten(cost)]
    for row in front if mark_optima else ():
        row["optimal"] = True
    return front


def get_objective_defaults(objective: Any, objective_higher_is_better: Any) -> Any:
    """Returns the objective, `time` by default, and its direction."""
    objective = objective or "time"
    if objective_higher_is_better is None:
        if objective in _MINIMIZED or (isinstance(objective, str) and objective.endswith("_energy")):
            objective_higher_is_better = False
        elif objective in _MAXIMIZED:
            objective_higher_is_better = True
        else:
            raise ValueError(f"Please specify objective_higher_is_better for objective {objective}")
    return objective, objective_higher_is_better


def get_config_string(
    params: Mapping[str, Any], keys: Optional[Sequence[str]] = None, units: Optional[Mapping[str, str]] = None
) -> str:
    """Formats a result in one line."""
    parts = []
    for name, value in params.items():
        if not keys or name in keys:
            text = f"{round(value, 3):.3f}" if isinstance(value, float) else visible(value)
            unit = units.get(name, "") if isinstance(units, dict) and not isinstance(value, ErrorConfig) else ""
            parts.append(f"{visible(name)}={text}{visible(unit)}")
    return ", ".join(parts)


def get_grid_dimensions(
    current_problem_size: Sequence[int], params: Mapping[str, Any], grid_div: Sequence[Any], block_size_names: Sequence[str]
) -> Any:
    """Returns the number of blocks in each dimension."""

    def divisor(given: Any, default: Union[str, int]) -> Any:
        if given is None:
            return params.get(str(default), 1)
        if isinstance(given, int):
            return given
        if callable(given):
            return given(params)
        if isinstance(given, str):
            return int(evaluate(given, params))
        if np.iterable(given):
            return int(np.prod([divisor(each, 1) for each in given]))
        raise ValueError("Error: unrecognized type in grid divisor list, should be any of int, str, callable, or iterable")

    divisors = [divisor(each, block_size_names[at]) for at, each in enumerate(grid_div)]
    return tuple(int(np.ceil(float(size) / float(by))) for size, by in zip(current_problem_size, divisors))


def get_instance_string(params: Mapping[str, Any]) -> str:
    """Joins the values of a configuration."""
    return "_".join(str(value) for value in params.values())


def get_kernel_string(kernel_source: Any, params: Optional[Mapping[str, Any]] = None) -> str:
    """Returns the source of a text, a file or a function."""
    from .problem import read_source

    if not callable(kernel_source) and not isinstance(kernel_source, (str, bytes)) and not hasattr(kernel_source, "read_text"):
        raise TypeError("Error kernel_source is not a string nor a callable function")
    return read_source(kernel_source, dict(params or {}))


def get_problem_size(problem_size: Any, params: Mapping[str, Any]) -> List[int]:
    """Returns the problem size of a configuration in three dimensions."""
    if callable(problem_size):
        problem_size = problem_size(params)
    if isinstance(problem_size, (str, int, np.integer)):
        problem_size = (problem_size,)
    sizes: List[int] = [1, 1, 1]
    for at, size in enumerate(problem_size):
        if isinstance(size, str):
            sizes[at] = int(evaluate(size, params))
        elif isinstance(size, (int, np.integer)):
            sizes[at] = int(size)
        else:
            raise TypeError("Error: problem_size should only contain strings or integers")
    return sizes


def get_smem_args(smem_args: Mapping[str, Any], params: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the shared memory of a configuration."""
    result = dict(smem_args)
    size = result.get("size")
    if callable(size):
        result["size"] = size(params)
    elif isinstance(size, str):
        result["size"] = int(evaluate(size, params))
    return result


def get_thread_block_dimensions(params: Mapping[str, Any], block_size_names: Optional[Sequence[str]] = None) -> Any:
    """Returns the threads of a block in each dimension."""
    names = block_size_names or default_block_size_names
    return tuple(int(params.get(name, 256 if at == 0 else 1)) for at, name in enumerate(names[:3]))


def get_total_timings(results: Sequence[Mapping[str, Any]], env: Dict[str, Any], overhead_time: float) -> Dict[str, Any]:
    """Adds the sums of the results' timings to the environment, and what remains of `overhead_time`; milliseconds."""
    for name in TIMINGS:
        if any(name not in row for row in results):
            return env
    for name in TIMINGS:
        env[f"total_{name}"] = sum(row[name] for row in results)
    remaining = overhead_time + env.get("simulated_time", 0.0)
    env["overhead_time"] = remaining - sum(env[f"total_{name}"] for name in TIMINGS)
    return env


def looks_like_a_filename(kernel_source: Any) -> bool:
    """Reports whether a text is the name of a source file."""
    from .problem import looks_like_a_filename as looks

    return looks(kernel_source)


def normalize_verify_function(v: Optional[Callable[..., Any]]) -> Optional[Callable[..., Any]]:
    """Returns a function that also takes `atol`."""
    if v is None or "atol" in _signature(v).parameters:
        return v
    function = v

    @wraps(v)
    def with_atol(answer: Any, result_host: Any, atol: float) -> Any:
        return function(answer, result_host)

    return with_atol


def process_metrics(params: Dict[str, Any], metrics: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Adds metrics to a result, in their order."""
    check_metrics(metrics)
    for name, metric in (metrics or {}).items():
        params[name] = evaluate(metric, params) if isinstance(metric, str) else metric(params)
    return params


def check_metrics(metrics: Optional[Mapping[str, Any]]) -> None:
    """Raises ValueError if metrics are not texts or functions by name."""
    if metrics is None:
        return
    if not isinstance(metrics, dict):
        raise ValueError("metrics should be a dictionary to preserve order and support composability")
    if not all(isinstance(metric, str) or callable(metric) for metric in metrics.values()):
        raise ValueError("metric dicts values should be strings or callable")


def read_file(filename: Any) -> Optional[str]:
    """Returns the text of a file, or None if there is none."""
    try:
        with open(filename, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def write_file(filename: Any, string: str) -> None:
    """Writes a text to a file."""
    with open(filename, "w", encoding="utf-8") as file:
        file.write(string)


def delete_temp_file(filename: Any) -> None:
    """Removes a file, if it is there."""
    with contextlib.suppress(OSError):
        os.remove(filename)


def detect_language(kernel_string: str) -> str:
    """Returns the language of a source."""
    if "__global__" in kernel_string:
        return "CUDA"
    return "OpenCL" if "__kernel" in kernel_string else "C"


__all__ = [name for name in dir() if not name.startswith("_")] + ["replace_param_occurrences"]
