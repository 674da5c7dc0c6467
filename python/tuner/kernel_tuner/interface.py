"""`tune_kernel`, `run_kernel` and `tune_cache` with the arguments of Kernel Tuner 1.x."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .._text import visible
from . import cache as cache_files
from . import limits, observers as known_observers, searches, strategies, util
from .arguments import check_answer, named_to_host, scalars_at, to_host, to_origin
from .checks import check_kinds, choose_objectives, params_of
from .problem import Problem, read_source
from .published import publish
from .references import run_whole
from .restrictions import count_configurations, read as read_restrictions
from .rows import Row, show_best
from .notices import IgnoredArgumentWarning, tell_once
from .runs import run_session, write_checked_reference
from .session import Session
from .simulation import simulate
from .space import Export

#: Strategies by name.
strategy_map = {name: strategies.Strategy(name) for name in (*searches.STRATEGIES, *searches.OTHERS)}
_ITERATIONS = 7
_LANGUAGES = ("CUDA", "CUPY", "NVCUDA", "PYCUDA")


def tune_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    restrictions: Any = None,
    answer: Optional[Sequence[Any]] = None,
    atol: float = 1e-6,
    verify: Optional[Callable[..., Any]] = None,
    verbose: bool = False,
    lang: Optional[str] = None,
    device: Union[int, str] = 0,
    platform: int = 0,
    smem_args: Optional[Mapping[str, Any]] = None,
    cmem_args: Optional[Mapping[str, Any]] = None,
    texmem_args: Optional[Mapping[str, Any]] = None,
    compiler: Optional[str] = None,
    compiler_options: Optional[Sequence[str]] = None,
    defines: Optional[Mapping[str, Any]] = None,
    log: Optional[int] = None,
    iterations: int = _ITERATIONS,
    block_size_names: Optional[List[str]] = None,
    quiet: bool = False,
    strategy: Any = None,
    strategy_options: Optional[Mapping[str, Any]] = None,
    cache: Optional[Union[str, Path]] = None,
    metrics: Optional[Mapping[str, Any]] = None,
    simulation_mode: Optional[bool] = None,
    parallel: Any = None,
    observers: Optional[Sequence[Any]] = None,
    objective: Optional[Union[str, List[str]]] = None,
    objective_higher_is_better: Optional[Union[bool, List[bool]]] = None,
    objectives: Optional[Mapping[str, bool]] = None,
    seed: Optional[int] = None,
    *,
    export_space: Optional[Union[str, Path]] = None,
    db: Optional[Union[str, Path]] = None,
    **unknown: Any,
) -> Tuple[List[Row], Dict[str, Any]]:
    """Tunes a kernel and returns its results and the environment, as Kernel Tuner's function does.

    Each result is a dict of the parameters, `time` and `times` in milliseconds, the metrics,
    `compile_time`, `verification_time`, `benchmark_time`, `strategy_time`, `framework_time` and
    `timestamp`; a configuration that failed has `__error__`, and its reason in `detail`. In addition
    each has `verdict`, `timing` (`measured`, `predicted` or `recorded`) and `reference` (`answer`,
    `verify`, `first configuration`, `sums of the first configuration`, `none`, or `cache file` for a
    result of Kernel Tuner's cache file). Ctrl-C ends the search: the environment has `interrupted`, and the
    results are those until then.

    :param device: number of a GPU; 0 is the first one, or a virtual GPU where there is none. A text is
        a device of `tuner run`, such as `vgpu:a100`
    :param export_space: folder for the search space with its data; nothing is run then. Files that are there
        stay, but those of an earlier search space
    :param db: database of results; by default `tuner/kernel_tuner.db` in the user's data folder
    """
    check_kinds(locals())
    for name in unknown:
        tell_once(IgnoredArgumentWarning, f"the argument {name} is not one of Kernel Tuner's and has no effect; remove it")
    _refuse(lang, kernel_source, texmem_args)
    aims = choose_objectives(objective, objective_higher_is_better, objectives)
    util.check_metrics(metrics)
    if log:
        logging.basicConfig(filename=f"{kernel_name}{datetime.now():%Y%m%d-%H:%M:%S}.log", level=log)
    values = _values(tune_params, with_macros=not simulation_mode)
    util.check_tune_params_list(values, observers, simulation_mode)
    settings = {"device": device, "platform": platform, "compiler": compiler, "lang": lang or "CUDA"}
    honoured = known_observers.honoured(observers or (), settings)
    if iterations != _ITERATIONS:
        tell_once(IgnoredArgumentWarning, "iterations has no effect: the number of samples follows from their spread")
    if parallel:
        tell_once(IgnoredArgumentWarning, "parallel has no effect: configurations are always compiled concurrently")
    search = searches.choose(strategy, strategy_options, seed)
    chosen = limits.device() or device_name(device)
    rules = read_restrictions(restrictions, values)
    names = _block_names(block_size_names, values)
    search = limits.apply(search.sized(lambda: count_configurations(values, rules, names)))
    header = cache_files.header(kernel_name, problem_size, values, aims)
    if simulation_mode:
        return simulate(header, rules, names, cache, search, metrics, aims, quiet)
    host = to_host(arguments)
    problem = Problem(
        kernel_name, kernel_source, problem_size, host, values, rules,
        (grid_div_x, grid_div_y, grid_div_z), names, smem_args,
        _constants(cmem_args), list(compiler_options or ()), defines,
    )  # fmt: skip
    constant = [parameter.pointer and parameter.constant for parameter in problem.parameters]
    expected = check_answer(answer, problem.arguments, verify is not None, constant)
    with _folder() as folder:
        session = Session(
            problem, Export(problem, folder), chosen, expected, atol, util.normalize_verify_function(verify),
            metrics, honoured, quiet, verbose, _database(db), search, [name for name, _ in aims],
            has_answer=answer is not None and len(answer) > 0,
        )  # fmt: skip
        if export_space is not None:
            write_checked_reference(session)
            publish(folder, export_space, problem)
            return [], {"export_space": str(export_space)}
        if cache is not None:
            session.cache = cache_files.CacheFile(cache, header)
        try:
            run_session(session)
        finally:
            if session.cache is not None:
                session.cache.close()
        return _finish(session, aims, iterations, compiler_options)


def run_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    params: Mapping[str, Any],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    lang: Optional[str] = None,
    device: Union[int, str] = 0,
    platform: int = 0,
    smem_args: Optional[Mapping[str, Any]] = None,
    cmem_args: Optional[Mapping[str, Any]] = None,
    texmem_args: Optional[Mapping[str, Any]] = None,
    compiler: Optional[str] = None,
    compiler_options: Optional[Sequence[str]] = None,
    defines: Optional[Mapping[str, Any]] = None,
    block_size_names: Optional[List[str]] = None,
    quiet: bool = False,
    log: Optional[int] = None,
) -> List[Any]:
    """Runs a kernel once and returns its arguments after the run, as Kernel Tuner's function does: new arrays of the
    kind that was given.

    :param params: values of the parameters, or a result of `tune_kernel`
    :raises RuntimeError: the kernel does not compile, or has a hazard; the message names the line
    """
    call = dict(locals())
    check_kinds(call)
    given = list(arguments)
    results = run_on_host(to_host(given), call)
    return [to_origin(value, origin) for value, origin in zip(results, given)]


def run_on_host(arguments: Sequence[Any], call: Mapping[str, Any]) -> List[Any]:
    """Runs a kernel as `run_kernel` does, on arrays and scalars of NumPy, and returns such; inputs are those that were
    given.

    :param call: the other arguments of `run_kernel`, by name
    """
    check_kinds({**call, "arguments": arguments})
    _refuse(call.get("lang"), call["kernel_source"], call.get("texmem_args"))
    tune_params = _values({name: [value] for name, value in params_of(call["params"]).items()})
    problem = Problem(
        call["kernel_name"], call["kernel_source"], call["problem_size"], list(arguments), tune_params, [],
        [call.get(f"grid_div_{axis}") for axis in "xyz"], _block_names(call.get("block_size_names"), tune_params),
        call.get("smem_args"), _constants(call.get("cmem_args")), list(call.get("compiler_options") or ()), call.get("defines"),
    )  # fmt: skip
    with _folder() as folder:
        export = Export(problem, folder)
        outputs, row = run_whole(export, problem.first, limits.device() or device_name(call["device"]))
        if outputs is None:
            raise RuntimeError(f"{problem.kernel_name}: {row['verdict']}: {row['detail']}")
    return [value if place not in outputs else outputs[place] for place, value in enumerate(problem.arguments)]


def tune_kernel_T1(*_: Any, **__: Any) -> Any:
    """Raises NotImplementedError: `tuner import` reads files of the format T1."""
    raise NotImplementedError("tune_kernel_T1 is not offered; `tuner import FILE` writes the search space of a T1 file")


def tune_cache(
    cache_path: Union[str, Path], restrictions: Optional[List[Any]] = None, **kwargs: Any
) -> Tuple[List[Row], Dict[str, Any]]:
    """Searches a cache file as if its kernel was tuned, as Kernel Tuner's function does."""
    data = cache_files.read_cache(cache_path, open_cache=False)
    if restrictions is not None and not isinstance(restrictions, list):
        raise ValueError("restrictions is not a list; pass a list")
    size = data.get("problem_size", 1)
    given = {
        "kernel_name": data["kernel_name"], "kernel_source": "", "problem_size": size, "arguments": [],
        "tune_params": data["tune_params"], **kwargs,
    }  # fmt: skip
    inside = cache_files.restrictions_of(data, list(given["tune_params"]))
    return tune_kernel(**given, cache=cache_path, restrictions=[*(restrictions or ()), *inside], simulation_mode=True)


# Set-up


def _refuse(lang: Optional[str], kernel_source: Any, texmem_args: Any) -> None:
    """Raises NotImplementedError for what cannot be honoured."""
    if texmem_args:
        raise NotImplementedError("texture memory (texmem_args) is not supported; pass the data as an array")
    if lang is not None and lang.upper() not in _LANGUAGES:
        host = " (host code is not tuned here)" if lang.upper() == "C" else ""
        raise NotImplementedError(f"lang={lang!r} is not supported{host}; this tuner takes CUDA kernels")
    if lang is None and callable(kernel_source):
        raise TypeError("a source function needs lang; pass lang='CUDA'")
    if lang is None and not callable(kernel_source):
        source = read_source(kernel_source, {})
        if source and "__global__" not in source:
            raise NotImplementedError(
                "the source has no `__global__` function: OpenCL, HIP without it, C and Fortran are not supported; pass "
                "lang='CUDA' if an included file has the kernel"
            )


def _values(tune_params: Mapping[str, Sequence[Any]], with_macros: bool = True) -> Dict[str, List[Any]]:
    """Returns the different values of each parameter as Python's; raises TypeError or ValueError.

    :param with_macros: values become macros, so that 1 and True are the same
    """
    found: Dict[str, List[Any]] = {}
    for name, listed in tune_params.items():
        if with_macros and name in util.RESULT_KEYS:
            raise ValueError(f"a parameter {name} has the forbidden name of a key of each result; rename it")
        if isinstance(listed, (str, bytes)) or not hasattr(listed, "__iter__"):
            raise TypeError(f"the values of {name} are {listed!r}; give a list, such as [{listed!r}]")
        texts: Dict[Any, Any] = {}
        for value in [value.item() if isinstance(value, np.generic) else value for value in listed]:
            if not isinstance(value, (bool, int, float, str)):
                raise TypeError(f"the value {value!r} of {name} is neither a number nor a text; use one of these")
            macro = str(int(value)) if isinstance(value, bool) else str(value)
            same = texts.setdefault(macro if with_macros else (macro, type(value)), value)
            if type(same) is not type(value):
                raise ValueError(f"the values {same!r} and {value!r} of {name} are the same macro; remove one")
        if not texts:
            raise ValueError(f"the parameter {name} has no values; give at least one")
        found[name] = list(texts.values())
    return found


def _block_names(names: Optional[List[str]], tune_params: Mapping[str, Any]) -> List[str]:
    util.check_block_size_names(names)
    chosen = util.check_block_size_params_names_list(None if names is None else list(names), tune_params)
    chosen = list(chosen or [])
    util.append_default_block_size_names(chosen)
    return chosen[:3]


def _constants(cmem_args: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    given = cmem_args or {}
    host = named_to_host(given, "cmem_args")
    return dict(zip(given, scalars_at(host, [False] * len(host))))


def device_name(device: Union[int, str]) -> str:
    """Returns the tuner's name of a device: a GPU where there is one, else a virtual one."""
    if isinstance(device, str) and not device.isdigit():
        return device
    number = int(device)
    # The program asks the driver: files of devices are there without one.
    return f"cuda:{number}" if number else "auto"


def _database(db: Optional[Union[str, Path]]) -> str:
    path = Path(limits.database() if db is None else db)
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path.resolve())


@contextmanager
def _folder() -> Iterator[Path]:
    """Gives a folder for a search space, which is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="tuner-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _finish(
    session: Session, aims: List[Tuple[str, bool]], iterations: int, compiler_options: Optional[Sequence[str]]
) -> Tuple[List[Row], Dict[str, Any]]:
    env: Dict[str, Any] = {
        "device_name": session.device_name or session.device,
        "iterations": iterations,
        "compiler_options": list(compiler_options or ()),
        "device_properties": {},
        "timing": session.results[-1].get("timing") if session.results else None,
        "interrupted": session.interrupted,
    }
    show_best(session.results, aims, session.problem.tune_params, session.metrics, env, session.quiet)
    seconds = time.perf_counter() - session.started
    name = session.problem.kernel_name
    limits.summarize(name, env["device_name"], session.results, env.get("best_config"), seconds)
    return session.results, util.get_total_timings(session.results, env, 1000 * seconds)
