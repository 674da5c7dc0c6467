"""Runs of a search space that a script describes: expected values, trials and their results."""

from __future__ import annotations

import inspect
import shutil
import time
import warnings
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from .. import check, load_results, tune
from .._errors import TunerError
from . import cache as cache_files
from . import restrictions, searches, util
from .arguments import from_bytes
from .problem import Problem
from .signature import base_name
from .space import PROBLEM, Export, Reference
from .tables import Params
from .verification import call_verify

Row = Dict[str, Any]

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
class Session:
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


def tell_once(kind: type, message: str) -> None:
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


def write_reference(session: Session, checked: bool) -> Path:
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
    tell_once(
        FirstConfigurationWarning,
        "there is no answer: the outputs of the first configuration that has no hazard are the expected values; "
        "pass answer=[...] to compare with values that you know",
    )
    return export.write(Reference(configuration=first))


def _first(session: Session, needs_outputs: bool) -> Tuple[Params, Row, Dict[int, Any]]:
    """Returns the first configuration without a hazard, its row and its outputs."""
    problem, export = session.problem, session.export
    last: Row = {}
    valid = restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names)
    for number, params in enumerate(valid):
        if number == _FIRST_TRIED:
            break
        if needs_outputs:
            outputs, last = run_whole(export, params, session.device)
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


def run_whole(export: Export, params: Params, device: str) -> Tuple[Optional[Dict[int, Any]], Row]:
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


def run_session(session: Session) -> None:
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
    path = write_reference(session, checked=False)
    try:
        _tune(session, path, session.search, evals)
    except TunerError:
        if session.reference != _FIRST_REFERENCE or any("time" in row for row in session.results[len(known) :]):
            raise
        # The first configuration has a hazard and is no reference; another one may be.
        before = session.problem.first
        del session.results[len(known) :]
        path = write_reference(session, checked=True)
        if session.problem.first == before:
            raise
        _tune(session, path, session.search, evals)


def _leave_out(session: Session, known: Mapping[str, Row]) -> bool:
    """Leaves the configurations of the cache out of the space; returns False if none is left."""
    problem = session.problem
    for params in restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names):
        if cache_files.key(params) not in known:
            problem.first = params
            session.export.excluded = cache_files.exclusion(known.values(), problem.tune_params, problem.names)
            return True
    return False


def _tune(session: Session, path: Path, search: searches.Search, evals: Optional[int]) -> None:
    """Runs the tuner on a search space and adds its results."""

    def receive(event: Row) -> None:
        if event["event"] == "run_started":
            session.device_name = event["device"]
            if event["device_kind"] == "vgpu":
                tell_once(PredictedTimeWarning, f"there is no GPU: times are predicted for {event['device']}")
            if session.cache is not None:
                session.cache.open(session.device_name)
        elif event["event"] == "trial":
            _add(session, _row_of(session, event))

    results = tune(
        path, device=session.device, evals=evals, budget=search.budget, strategy=search.strategy, seed=search.seed,
        db=session.db, options=search.options, on_event=receive, progress=False, cwd=str(session.export.folder),
    )  # fmt: skip
    if results.interrupted:
        tell_once(IgnoredArgumentWarning, "interrupted: these are the results until now")
    if session.registers:
        _add_registers(session)


def _row_of(session: Session, event: Mapping[str, Any]) -> Row:
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


def _add(session: Session, row: Row) -> None:
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


def _add_registers(session: Session) -> None:
    rows = load_results(session.db, kernel=base_name(session.problem.kernel_name), device=session.device_name)
    by_config = {cache_files.key(row["config"]): row.get("registers") for row in reversed(list(rows))}
    for row in session.results:
        names = session.problem.names
        config = {names[name]: row[name] for name in session.problem.tune_params}
        registers = by_config.get(cache_files.key(config))
        if registers is not None:
            row["num_regs"] = registers


def _run_verified(session: Session, known: Mapping[str, Row]) -> None:
    """Tries configurations one by one: each is run whole, `verify` judges its outputs, and the gate
    judges it again with these as expected values."""
    problem, export, search = session.problem, session.export, session.search
    session.reference = "verify"
    if search.strategy not in ("exhaustive", "random"):
        tell_once(IgnoredArgumentWarning, f"verify is given: configurations are tried at random, not by {search.strategy}")
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
        outputs, row = run_whole(export, params, session.device)
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
