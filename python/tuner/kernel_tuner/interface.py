"""`tune_kernel`, `run_kernel` and `tune_cache` with the arguments of Kernel Tuner 1.x."""

from __future__ import annotations

import inspect
import logging
import os
import shutil
import tempfile
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import numpy as np

from .. import check, load_results, tune
from .._errors import TunerError
from . import cache as cache_files
from . import limits, observers as known_observers, restrictions, searches, util
from .arguments import check_answer, from_bytes, to_host
from .expressions import Params
from .signature import base_name
from .space import PROBLEM, Export, Problem, Reference, read_source
from .verification import call_verify

Row = Dict[str, Any]

_LANGUAGES = ("CUDA", "CUPY", "NVCUDA", "PYCUDA")
_FIRST_TRIED = 16
_FIRST_REFERENCE = "first configuration"
_told: Set[str] = set()


class PredictedTimeWarning(UserWarning):
    """Times are predicted, because there is no GPU."""


class FirstConfigurationWarning(UserWarning):
    """Without `answer` the outputs of the first configuration are the expected values."""


class IgnoredArgumentWarning(UserWarning):
    """An argument that has no effect here."""


@dataclass
class _Session:
    """One call of `tune_kernel`."""

    problem: Problem
    export: Export
    device: str
    answer: List[Any]
    atol: float
    verify: Optional[Callable[..., Any]]
    metrics: Optional[Mapping[str, Any]]
    registers: bool
    quiet: bool
    verbose: bool
    db: str
    search: searches.Search
    cache: Optional[cache_files.CacheFile] = None
    results: List[Row] = field(default_factory=list)
    reference: str = "answer"
    device_name: str = ""
    started: float = field(default_factory=time.perf_counter)
    reported: float = field(default_factory=time.perf_counter)


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
    iterations: int = 7,
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
    `timestamp`; a configuration that failed has `__error__`. In addition each has `verdict`,
    `timing` (`measured`, `predicted` or `recorded`) and `reference` (`answer`, `verify` or
    `first configuration`).

    :param device: number of a GPU; 0 is the first one, or a virtual GPU where there is none. A text is
        a device of `tuner run`, such as `vgpu:a100`
    :param export_space: folder for the search space with its data; nothing is run then
    :param db: database of results; by default `tuner/kernel_tuner.db` in the user's data folder
    """
    for name in unknown:
        _tell(IgnoredArgumentWarning, f"the argument {name} is not one of Kernel Tuner's and has no effect; remove it")
    _refuse(lang, kernel_source, texmem_args)
    aims = _objectives(objective, objective_higher_is_better, objectives)
    if log:
        logging.basicConfig(filename=f"{kernel_name}{datetime.now():%Y%m%d-%H:%M:%S}.log", level=log)
    values = {name: _plain(listed) for name, listed in tune_params.items()}
    util.check_tune_params_list(values, observers, simulation_mode)
    registers = known_observers.measures_registers(observers or ())
    if parallel:
        _tell(IgnoredArgumentWarning, "parallel has no effect: configurations are always compiled concurrently")
    search = searches.choose(strategy, strategy_options, seed)
    search = limits.apply(search)
    chosen = limits.device() or _device(device)
    if simulation_mode:
        return _simulate(kernel_name, values, restrictions, cache, search, metrics, aims, quiet)
    rules = _rules(restrictions, values)
    host = to_host(arguments)
    problem = Problem(
        kernel_name, kernel_source, problem_size, host, values, rules,
        (grid_div_x, grid_div_y, grid_div_z), _block_names(block_size_names, values),
        smem_args, _constants(cmem_args), list(compiler_options or ()), defines,
    )  # fmt: skip
    expected = check_answer(answer, host, verify is not None)
    with _folder(export_space) as folder:
        session = _Session(
            problem, Export(problem, folder), chosen, expected, atol, util.normalize_verify_function(verify),
            metrics, registers, quiet, verbose, _database(db), search,
        )  # fmt: skip
        if export_space is not None:
            _write_reference(session, checked=True)
            return [], {"export_space": str(export_space)}
        if cache is not None:
            header = cache_files.header(kernel_name, problem_size, values, aims)
            session.cache = cache_files.CacheFile(cache, header)
        try:
            _run(session)
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
    """Runs a kernel once and returns its arguments after the run, as Kernel Tuner's function does.

    :raises RuntimeError: the kernel does not compile, or has a hazard; the message names the line
    """
    _refuse(lang, kernel_source, texmem_args)
    tune_params = {name: _plain([value]) for name, value in params.items()}
    host = to_host(arguments)
    problem = Problem(
        kernel_name, kernel_source, problem_size, host, tune_params, [],
        (grid_div_x, grid_div_y, grid_div_z), _block_names(block_size_names, tune_params),
        smem_args, _constants(cmem_args), list(compiler_options or ()), defines,
    )  # fmt: skip
    with _folder(None) as folder:
        export = Export(problem, folder)
        outputs, row = _outputs(export, problem.first, limits.device() or _device(device))
        if outputs is None:
            raise RuntimeError(f"{kernel_name}: {row['verdict']}: {row['detail']}")
    return [value if place not in outputs else outputs[place] for place, value in enumerate(host)]


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
    return tune_kernel(**given, cache=cache_path, restrictions=restrictions, simulation_mode=True)


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
                "the source has no `__global__` function: OpenCL, HIP without it, C and Fortran are not supported"
            )


def _plain(values: Sequence[Any]) -> List[Any]:
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _rules(given: Any, tune_params: Mapping[str, Sequence[Any]]) -> List[restrictions.Restriction]:
    return restrictions.read(given, tune_params)


def _block_names(names: Optional[List[str]], tune_params: Mapping[str, Any]) -> List[str]:
    util.check_block_size_names(names)
    chosen = util.check_block_size_params_names_list(None if names is None else list(names), tune_params)
    chosen = list(chosen or [])
    util.append_default_block_size_names(chosen)
    return chosen[:3]


def _constants(cmem_args: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    given = cmem_args or {}
    return dict(zip(given, to_host(list(given.values()), "cmem_args")))


def _device(device: Union[int, str]) -> str:
    """Returns the tuner's name of a device: a GPU where there is one, else a virtual one."""
    if isinstance(device, str) and not device.isdigit():
        return device
    number = int(device)
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg"):
        return f"cuda:{number}"
    if number > 0:
        raise ValueError(f"device={number}: there is no GPU; leave it out, or pass 'vgpu:h100'")
    return "vgpu:h100"


def _database(db: Optional[Union[str, Path]]) -> str:
    path = Path(limits.database() if db is None else db)
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path.resolve())


@contextmanager
def _folder(export_space: Optional[Union[str, Path]]) -> Iterator[Path]:
    """Gives the folder of a search space: the exported one, or one that is removed at the end."""
    if export_space is not None:
        yield Path(export_space)
        return
    folder = Path(tempfile.mkdtemp(prefix="tuner-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _objectives(
    objective: Optional[Union[str, List[str]]],
    higher: Optional[Union[bool, List[bool]]],
    objectives: Optional[Mapping[str, bool]],
) -> List[Tuple[str, bool]]:
    if objectives is not None:
        if not isinstance(objectives, dict):
            raise ValueError("objectives is not a dict of objective: higher_is_better; pass one")
        return list(objectives.items())
    if isinstance(objective, list):
        directions = higher if isinstance(higher, list) else [bool(higher)] * len(objective)
        return list(zip(objective, directions))
    name, is_higher = util.get_objective_defaults(objective, higher)
    return [(name, bool(is_higher))]


def _tell(kind: type, message: str) -> None:
    """Warns once in a process."""
    if message not in _told:
        _told.add(message)
        warnings.warn(message, kind, stacklevel=_script_level())


def _script_level() -> int:
    """Returns the stack level of the caller outside of this package, for a warning."""
    level, frame = 2, inspect.currentframe()
    frame = frame.f_back if frame else None
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tuner."):
        level, frame = level + 1, frame.f_back
    return level - 1


# Reference


def _write_reference(session: _Session, checked: bool) -> Path:
    """Writes the search space with its expected values and returns its path. With `checked` the first
    configuration is known to have no hazard where its outputs are the expected values."""
    problem, export = session.problem, session.export
    outputs = problem.outputs()
    given = {place: value for place, value in enumerate(session.answer) if value is not None}
    if session.verify is None and given:
        missing = [place for place in outputs if place not in given]
        if missing:
            # What the answer leaves out is compared with the first configuration.
            first, _, found = _first(session, needs_outputs=True)
            same = [place for place in missing if found[place].tobytes() == problem.arguments[place].tobytes()]
            problem.unchanged.update(same)
            given.update({place: found[place] for place in missing if place not in same})
        return export.write(Reference(values=given, atol=session.atol))
    if not outputs:
        return export.write()
    first = _first(session, needs_outputs=False)[0] if checked else problem.first
    session.reference = _FIRST_REFERENCE
    _tell(
        FirstConfigurationWarning,
        "there is no answer: the outputs of the first configuration that has no hazard are the expected values; "
        "pass answer=[...] to compare with values that you know",
    )
    return export.write(Reference(configuration=first))


def _first(session: _Session, needs_outputs: bool) -> Tuple[Params, Row, Dict[int, Any]]:
    """Returns the first configuration without a hazard, its row and its outputs."""
    problem, export = session.problem, session.export
    last: Row = {}
    valid = restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names)
    for number, params in enumerate(valid):
        if number == _FIRST_TRIED:
            break
        if needs_outputs:
            outputs, last = _outputs(export, params, session.device)
            if outputs is not None:
                return params, last, outputs
            continue
        path = export.write(name="first.yaml", configuration=params)
        last = check(path, problem=PROBLEM, device=session.device, configs=[{}], cwd=str(export.folder))[0]
        path.unlink()
        if last["verdict"] in ("ok", "unchecked"):
            problem.first = params
            return params, last, {}
    raise TunerError(
        f"none of the first configurations of {problem.kernel_name} runs without a hazard: {last.get('verdict')}: "
        f"{last.get('detail')}; correct the kernel, or pass answer=[...]"
    )


def _outputs(export: Export, params: Params, device: str) -> Tuple[Optional[Dict[int, Any]], Row]:
    """Runs a configuration whole and returns the contents of the arguments that it may change, or None
    if it has a hazard; and its row of `tuner check`."""
    problem = export.problem
    path = export.write(name="one.yaml", configuration=params)
    folder = export.folder / "outputs"
    shutil.rmtree(folder, ignore_errors=True)
    row = check(
        path, problem=PROBLEM, device=device, configs=[{}], options=["--outputs", str(folder)], cwd=str(export.folder)
    )[0]
    path.unlink()
    if row["verdict"] not in ("ok", "unchecked"):
        return None, row
    outputs = {}
    for place in problem.outputs():
        file = folder / f"{place}.bin"
        if not file.is_file():
            raise TunerError(
                f"{problem.kernel_name} is too large to be run whole on {device}: {row['detail']}; use a GPU or a "
                "smaller problem"
            )
        outputs[place] = from_bytes(file.read_bytes(), problem.arguments[place])
    return outputs, row


# Runs


def _run(session: _Session) -> None:
    known = session.cache.known() if session.cache is not None else {}
    for row in known.values():
        session.results.append(dict(row))
    if session.verify is not None:
        _run_verified(session, known)
        return
    if known and not _leave_out(session, known):
        session.device_name = session.cache.device_name if session.cache else ""
        return
    evals = session.search.evals
    path = _write_reference(session, checked=False)
    try:
        _tune(session, path, session.search, evals)
    except TunerError:
        if session.reference != _FIRST_REFERENCE or any("time" in row for row in session.results[len(known) :]):
            raise
        # The first configuration has a hazard and is no reference; another one may be.
        before = session.problem.first
        del session.results[len(known) :]
        path = _write_reference(session, checked=True)
        if session.problem.first == before:
            raise
        _tune(session, path, session.search, evals)


def _leave_out(session: _Session, known: Mapping[str, Row]) -> bool:
    """Leaves the configurations of the cache out of the space; returns False if none is left."""
    problem = session.problem
    for params in restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names):
        if cache_files.key(params) not in known:
            problem.first = params
            session.export.excluded = cache_files.exclusion(known.values(), problem.tune_params, problem.names)
            return True
    return False


def _tune(session: _Session, path: Path, search: searches.Search, evals: Optional[int]) -> None:
    """Runs the tuner on a search space and adds its results."""

    def receive(event: Row) -> None:
        if event["event"] == "run_started":
            session.device_name = event["device"]
            if event["device_kind"] == "vgpu":
                _tell(PredictedTimeWarning, f"there is no GPU: times are predicted for {event['device']}")
            if session.cache is not None:
                session.cache.open(session.device_name)
        elif event["event"] == "trial":
            _add(session, _row_of(session, event))

    results = tune(
        path, device=session.device, evals=evals, budget=search.budget, strategy=search.strategy, seed=search.seed,
        db=session.db, options=search.options, on_event=receive, progress=False, cwd=str(session.export.folder),
    )  # fmt: skip
    if results.interrupted:
        _tell(IgnoredArgumentWarning, "interrupted: these are the results until now")
    if session.registers:
        _add_registers(session)


def _row_of(session: _Session, event: Mapping[str, Any]) -> Row:
    """Converts a trial to a result of Kernel Tuner."""
    back = {text: name for name, text in session.problem.names.items()}
    row: Row = {back.get(name, name): value for name, value in event["config"].items()}
    row = {name: row[name] for name in session.problem.tune_params}
    verdict = event["verdict"]
    if event.get("time_us") is None:
        row["__error__"] = util.error_of(verdict)
    else:
        row["time"] = event["time_us"] / 1000
        row["times"] = [row["time"]]
    row.update(verdict=verdict, timing=event.get("timing") or "predicted", reference=session.reference)
    row["compared"] = event.get("compared")
    row.update({name: 0.0 for name in util.TIMINGS})
    return row


def _add(session: _Session, row: Row) -> None:
    """Adds a result with its metrics, prints it and writes it to the cache."""
    now = time.perf_counter()
    row["benchmark_time"] = 1000 * (now - session.reported)
    session.reported = now
    if session.metrics is not None and "__error__" not in row:
        util.process_metrics(row, session.metrics)
    row["timestamp"] = str(datetime.now(timezone.utc))
    session.results.append(row)
    if session.cache is not None:
        session.cache.store(row, session.problem.tune_params)
    if not session.quiet and ("__error__" not in row or session.verbose):
        keys = [*session.problem.tune_params, "time", *(session.metrics or ())]
        print(util.get_config_string(row, keys, {"time": "ms"}), flush=True)


def _add_registers(session: _Session) -> None:
    rows = load_results(session.db, kernel=base_name(session.problem.kernel_name), device=session.device_name)
    by_config = {cache_files.key(row["config"]): row.get("registers") for row in reversed(list(rows))}
    for row in session.results:
        names = session.problem.names
        config = {names[name]: row[name] for name in session.problem.tune_params}
        registers = by_config.get(cache_files.key(config))
        if registers is not None:
            row["num_regs"] = registers


def _run_verified(session: _Session, known: Mapping[str, Row]) -> None:
    """Tries configurations one by one: each is run whole, `verify` judges its outputs, and the gate
    judges it again with these as expected values."""
    problem, export, search = session.problem, session.export, session.search
    session.reference = "verify"
    if search.strategy not in ("exhaustive", "random"):
        _tell(IgnoredArgumentWarning, f"verify is given: configurations are tried at random, not by {search.strategy}")
    configs = restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names)
    started = time.monotonic()
    number = 0
    for params in search.ordered(configs):
        spent = time.monotonic() - started
        if (search.evals is not None and number >= search.evals) or (search.budget is not None and spent > search.budget):
            break
        if cache_files.key(params) in known:
            continue
        number += 1
        outputs, row = _outputs(export, params, session.device)
        verdict = str(row["verdict"])
        if outputs is not None:
            host = [outputs.get(place, value) for place, value in enumerate(problem.arguments)]
            verdict = "ok" if call_verify(session.verify, session.answer, host, session.atol, params) else "incorrect"
        if verdict != "ok":
            names = problem.names
            event = {"config": {names[name]: value for name, value in params.items()}, "verdict": verdict}
            if session.cache is not None:
                session.cache.open(session.device)
            _add(session, _row_of(session, event))
            continue
        values = {place: outputs[place] for place in problem.outputs()} if outputs else {}
        path = export.write(Reference(values=values), configuration=params, problem_name=f"{PROBLEM}_{number}")
        _tune(session, path, search.alone(), 1)


def _simulate(
    kernel_name: str,
    tune_params: Mapping[str, List[Any]],
    given: Any,
    cache: Optional[Union[str, Path]],
    search: searches.Search,
    metrics: Optional[Mapping[str, Any]],
    aims: List[Tuple[str, bool]],
    quiet: bool,
) -> Tuple[List[Row], Dict[str, Any]]:
    """Searches the results of a cache file."""
    if cache is None:
        raise ValueError("simulation_mode needs cache; pass the name of a cache file")
    path = cache_files.with_ending(cache)
    if not os.path.isfile(path):
        raise ValueError(f"simulation_mode: the cache file {path} does not exist; correct cache")
    data = cache_files.read_cache(path, open_cache=False)
    rules = _rules(given, tune_params)
    results: List[Row] = []
    with tempfile.TemporaryDirectory(prefix="tuner-") as folder:
        kept = cache_files.filtered(data, tune_params, rules)
        file = cache_files.write_closed(Path(folder) / "cache.json", kept)

        def receive(event: Row) -> None:
            if event["event"] != "trial":
                return
            row = dict(kept["cache"][cache_files.key(event["config"])])
            row.update({name: row.get(name, 0.0) for name in util.TIMINGS}, timing="recorded")
            if metrics is not None and "__error__" not in row:
                util.process_metrics(row, metrics)
            results.append(row)

        run = tune(
            device=f"replay:{file}", evals=search.evals or len(kept["cache"]), budget=search.budget,
            strategy=search.strategy, seed=search.seed, db=Path(folder) / "simulated.db", on_event=receive,
            progress=False,
        )  # fmt: skip
    env = {"device_name": data["device_name"], "simulated_time": 0.0, "interrupted": run.interrupted}
    _show_best(results, aims, tune_params, metrics, env, quiet)
    return results, env


def _finish(
    session: _Session, aims: List[Tuple[str, bool]], iterations: int, compiler_options: Optional[Sequence[str]]
) -> Tuple[List[Row], Dict[str, Any]]:
    env: Dict[str, Any] = {
        "device_name": session.device_name or session.device,
        "iterations": iterations,
        "compiler_options": list(compiler_options or ()),
        "device_properties": {},
        "timing": session.results[-1].get("timing") if session.results else None,
    }
    _show_best(session.results, aims, session.problem.tune_params, session.metrics, env, session.quiet)
    seconds = time.perf_counter() - session.started
    name = session.problem.kernel_name
    limits.summarize(name, env["device_name"], session.results, env.get("best_config"), seconds)
    return session.results, util.get_total_timings(session.results, env, 0.0)


def _show_best(
    results: List[Row],
    aims: List[Tuple[str, bool]],
    tune_params: Mapping[str, Any],
    metrics: Optional[Mapping[str, Any]],
    env: Dict[str, Any],
    quiet: bool,
) -> None:
    """Adds the best configuration to the environment and prints it."""
    passed = [row for row in results if "__error__" not in row]
    if not passed:
        if not quiet:
            print("no results to report")
        return
    names = [name for name, _ in aims]
    if len(aims) > 1:
        env["best_config"] = util.get_pareto_results(passed, names, [higher for _, higher in aims])
        return
    best = util.get_best_config(passed, *aims[0])
    env["best_config"] = best
    if not quiet:
        print(f"\nBEST PERFORMING CONFIGURATION FOR OBJECTIVE {names[0]} ({best.get('timing')}):")
        print(util.get_config_string(best, [*tune_params, *names, *(metrics or ())], {"time": "ms"}))
