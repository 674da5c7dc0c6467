"""Runs of a search space that a script describes: expected values, trials and their results."""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

from .. import tune
from .._errors import TunerError
from . import cache as cache_files
from . import observers as known_observers
from . import references, restrictions, searches, util
from .problem import Problem
from .rows import Row, add_metrics, check_objectives, incorrect, passed, reason
from .space import PROBLEM, Export, Reference
from .tables import Params
from .verification import PartialResultsWarning, are_partial_results, call_verify, sums_agree

_FIRST_REFERENCE = "first configuration"
_SUM_REFERENCE = "sums of the first configuration"
_NO_REFERENCE = "none"
# Failures without a success after which the reference is doubted, and references that are tried.
_DOUBTFUL = 8
_ATTEMPTS = 6
# References with which no other configuration agrees, until the first one of them is kept.
_LONELY = 3
_RACES_EXAMINED = 4
_DIFFERENCES_EXAMINED = 4
_REASONS_SHOWN = 3
# The program's words for expected values of which none is a number.
_UNDEFINED = "every expected value of"
# Its words for a reference with a hazard.
_REFUSED = "the reference kernel"
_told: Set[str] = set()


class PredictedTimeWarning(UserWarning):
    """Times are predicted, because there is no GPU."""


class FirstConfigurationWarning(UserWarning):
    """Without `answer` the outputs of the first configuration are the expected values."""


class IgnoredArgumentWarning(UserWarning):
    """An argument that has no effect here."""


class FailedConfigurationsWarning(UserWarning):
    """No configuration passed."""


class _Restart(Exception):
    """The search begins again with other expected values."""


class _PartialResults(Exception):
    """The outputs are partial results, of which only sums are comparable."""


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
    observers: Sequence[Any]
    quiet: bool
    verbose: bool
    db: str
    search: searches.Search
    objectives: Sequence[str] = ()
    cache: Optional[cache_files.CacheFile] = None
    results: List[Row] = field(default_factory=list)
    reference: str = "answer"
    #: Results whose reference has not been seen to work, and configurations that are no reference.
    pending: List[Row] = field(default_factory=list)
    proven: bool = False
    failed: Set[str] = field(default_factory=set)
    attempts: int = 0
    #: References with which no other configuration agreed.
    lonely: List[Params] = field(default_factory=list)
    #: Outputs that the answer leaves out begin without contents.
    scratch: bool = True
    #: Races that were examined: whether threads write equal values.
    races: int = 0
    #: Wrong results that were examined: whether they are partial results.
    differences: int = 0
    #: Outputs of the first configuration, by its key.
    outputs: Dict[str, Optional[Dict[int, Any]]] = field(default_factory=dict)
    device_name: str = ""
    run_id: str = ""
    reasons: Set[str] = field(default_factory=set)
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
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tuner":
        level, frame = level + 1, frame.f_back
    return level - 1


def write_reference(session: Session) -> Path:
    """Writes the search space with its expected values and returns its path."""
    problem, export = session.problem, session.export
    if session.verify is None and any(value is not None for value in session.answer):
        found = references.answered(export, session.answer, session.atol, session.device, session.scratch)
        return export.write(found)
    if not problem.outputs() or session.reference == _NO_REFERENCE:
        session.reference = _NO_REFERENCE
        return export.write()
    session.reference = _FIRST_REFERENCE
    tell_once(
        FirstConfigurationWarning,
        "there is no answer: the outputs of the first configuration that has no hazard are the expected values; "
        "pass answer=[...] to compare with values that you know",
    )
    return export.write(Reference(configuration=problem.first))


def write_checked_reference(session: Session) -> Path:
    """Writes the search space as `write_reference` does. A configuration whose outputs are the expected values
    is known to have no hazard."""
    path = write_reference(session)
    if session.reference != _FIRST_REFERENCE:
        return path
    first = references.find_first(session.export, session.device, session.failed)
    if first is None:
        raise TunerError(
            f"none of the configurations of {session.problem.kernel_name} that were tried runs without a hazard; correct "
            "the kernel, or pass answer=[...]"
        )
    session.problem.first = first
    return write_reference(session)


def run_session(session: Session) -> None:
    """Runs a search and adds its results to those of the cache file; raises ValueError if there is nothing to
    compare."""
    if not session.problem.outputs() and all(value is None for value in session.answer):
        raise ValueError(
            f"{session.problem.kernel_name} writes to none of its arguments, so no result can be checked, and none has a "
            "time; write a result to an array, or pass answer=[...]"
        )
    known = _take_known(session)
    evals = session.search.evals
    left = None if evals is None else evals - len(session.results)
    if session.verify is not None:
        _run_verified(session, known, left)
    elif (left is None or left > 0) and (not known or _leave_out(session, known)):
        begin = len(session.results)
        try:
            _run_compared(session, left)
        except _PartialResults:
            del session.results[begin:]
            _run_verified(session, known, left)
    elif session.cache is not None:
        session.device_name = session.cache.device_name
    _warn_of_failures(session)


def _take_known(session: Session) -> Dict[str, Row]:
    """Adds the results of the cache file that are in the space, up to the limit, and returns all of these."""
    if session.cache is None:
        return {}
    known = session.cache.known(session.problem.tune_params, session.problem.rules)
    for row in list(known.values())[: session.search.evals]:
        row = dict(row)
        if "__error__" not in row:
            add_metrics(row, session.metrics)
            check_objectives(row, session.objectives)
        session.results.append(row)
    return known


def _leave_out(session: Session, known: Mapping[str, Row]) -> bool:
    """Leaves the configurations of the cache out of the space; returns False if none is left."""
    problem = session.problem
    for params in restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names):
        if cache_files.key(params) not in known:
            problem.first = params
            session.export.excluded = cache_files.exclusion(known.values(), problem.tune_params, problem.names)
            return True
    return False


def _run_compared(session: Session, evals: Optional[int]) -> None:
    """Runs a search whose results are compared. Where the first configuration turns out to be no reference,
    another one is, and the search begins again."""
    begin = len(session.results)
    while True:
        del session.results[begin:]
        session.pending.clear()
        session.attempts += 1
        path = write_reference(session)
        try:
            if session.reference == _NO_REFERENCE and session.problem.outputs():
                _check_each(session, evals)
            else:
                _tune(session, path, session.search, evals)
            if not session.pending:
                return
            if not passed(session.pending, session.problem.first):
                _replace_reference(session)
            elif len(incorrect(session.pending)) < 2:
                session.proven = True
                _flush(session)
            else:
                _replace_lonely(session)
            return
        except _Restart:
            continue
        except TunerError as error:
            doubted = session.reference == _FIRST_REFERENCE and not session.proven and _REFUSED in error.message
            if not doubted or session.attempts >= _ATTEMPTS:
                raise
            # It has a hazard.
            first = session.problem.first
            if "race" not in error.message or not references.allow_same_values(
                session.export, first, session.device, error.message.splitlines()[-1]
            ):
                with_other_reference(session)


def with_other_reference(session: Session) -> None:
    """Chooses another configuration as the reference, or none if none works."""
    session.failed.add(cache_files.key(session.problem.first))
    first = references.find_first(session.export, session.device, session.failed)
    if first is None:
        session.reference = _NO_REFERENCE
    else:
        session.problem.first = first


def _replace_reference(session: Session) -> None:
    """Begins again with another reference; after some attempts keeps the results as they are."""
    if session.attempts >= _ATTEMPTS:
        session.proven = True
        _flush(session)
        return
    with_other_reference(session)
    raise _Restart


def _replace_lonely(session: Session) -> None:
    """Begins again with another reference where no other configuration agrees with this one; after some, with the
    first of them."""
    session.lonely.append(session.problem.first)
    if len(session.lonely) < _LONELY:
        with_other_reference(session)
        if session.reference == _FIRST_REFERENCE:
            raise _Restart
    session.reference, session.problem.first, session.proven = _FIRST_REFERENCE, session.lonely[0], True
    raise _Restart


def _doubt(session: Session, row: Row) -> bool:
    """Judges the reference by a result; returns True if the result waits for another one."""
    problem = session.problem
    params = {name: row[name] for name in problem.tune_params}
    failed = "__error__" in row
    if session.reference == "answer" and row["verdict"] == "uninitialized":
        names = [session.export.argument_name(place) for place in problem.scratch]
        if any(f"`{name}`" in row["detail"] for name in names):
            session.scratch, problem.scratch = False, set()
            raise _Restart
    if row["verdict"] == "race" and session.races < _RACES_EXAMINED:
        session.races += 1
        if references.allow_same_values(session.export, params, session.device, row["detail"]):
            raise _Restart
    if session.reference == _FIRST_REFERENCE and row["verdict"] == "incorrect" and params != problem.first:
        _examine_difference(session, params)
    if session.reference != _FIRST_REFERENCE or session.proven:
        return False
    undefined = str(row.get("detail", "")).startswith(_UNDEFINED)
    # That the reference agrees with itself proves nothing.
    if not failed and not undefined and params != problem.first:
        session.proven = True
        _flush(session)
        return False
    session.pending.append(row)
    alone = passed(session.pending, problem.first)
    if undefined or failed and params == problem.first or not alone and len(session.pending) >= _DOUBTFUL:
        _replace_reference(session)
    if alone and len(incorrect(session.pending)) >= _DOUBTFUL:
        _replace_lonely(session)
    return True


def _examine_difference(session: Session, params: Mapping[str, Any]) -> None:
    """Raises _PartialResults if a configuration differs from the first one by the number of partial results."""
    if session.differences >= _DIFFERENCES_EXAMINED:
        return
    session.differences += 1
    first = _outputs_of(session, session.problem.first)
    other = _outputs_of(session, dict(params))
    before = {place: session.problem.arguments[place] for place in session.problem.outputs()}
    if first is None or other is None or not are_partial_results(before, first, other):
        return
    tell_once(
        PartialResultsWarning,
        f"{session.problem.kernel_name} writes partial results, whose number depends on the configuration: their sums are "
        "compared with that of the first configuration; pass answer and verify to judge them otherwise",
    )
    expected = first

    def verify(_: Any, host: Sequence[Any], atol: float) -> bool:
        return sums_agree(before, expected, {place: host[place] for place in expected})

    session.verify = verify
    session.reference = _SUM_REFERENCE
    raise _PartialResults


def _outputs_of(session: Session, params: Dict[str, Any]) -> Optional[Dict[int, Any]]:
    """Returns the outputs of a configuration, or None where it is not run whole. Those of the first one are kept."""
    key = cache_files.key(params)
    if key not in session.outputs:
        _, outputs = references.inspect_configuration(session.export, params, session.device)
        if params != session.problem.first:
            return outputs
        session.outputs = {key: outputs}
    return session.outputs[key]


def _check_each(session: Session, evals: Optional[int]) -> None:
    """Checks configurations without a reference: the results have the reason of each. Where one has no hazard,
    it is the reference, and the search begins again."""
    problem = session.problem
    valid = restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names)
    started = time.monotonic()
    budget = session.search.budget
    for params in itertools.islice(session.search.ordered(valid), evals):
        if budget is not None and time.monotonic() - started > budget:
            break
        checked, outputs = references.inspect_configuration(session.export, params, session.device)
        verdict, detail = str(checked["verdict"]), str(checked.get("detail", ""))
        if verdict in ("ok", "unchecked"):
            if session.attempts < _ATTEMPTS and cache_files.key(params) not in session.failed:
                problem.first, session.reference = params, _FIRST_REFERENCE
                raise _Restart
            verdict, detail = "incorrect", "no element of its outputs is a finite number"
        _open_cache(session, str(checked.get("device") or session.device))
        config = {problem.names[name]: value for name, value in params.items()}
        _add(session, _row_of(session, {"config": config, "verdict": verdict, "detail": detail}))


def _open_cache(session: Session, device_name: str) -> None:
    session.device_name = device_name
    if session.cache is not None:
        session.cache.open(device_name)


def _flush(session: Session) -> None:
    """Adds the results that waited."""
    waiting = list(session.pending)
    session.pending.clear()
    for row in waiting:
        _add(session, row)


def _tune(session: Session, path: Path, search: searches.Search, evals: Optional[int]) -> None:
    """Runs the tuner on a search space and adds its results."""

    def receive(event: Row) -> None:
        if event["event"] == "run_started":
            session.run_id = event["run_id"]
            _open_cache(session, event["device"])
            if event["device_kind"] == "vgpu":
                tell_once(PredictedTimeWarning, f"there is no GPU: times are predicted for {event['device']}")
        elif event["event"] == "trial":
            row = _row_of(session, event)
            if not _doubt(session, row):
                _add(session, row)

    results = tune(
        path, device=session.device, evals=evals, budget=search.budget, strategy=search.strategy, seed=search.seed,
        db=session.db, options=search.options, on_event=receive, progress=False, cwd=str(session.export.folder),
    )  # fmt: skip
    if results.interrupted:
        tell_once(IgnoredArgumentWarning, "interrupted: these are the results until now")
        session.proven = True
        _flush(session)


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
    if event.get("detail"):
        row["detail"] = event["detail"]
    row.update({name: 0.0 for name in util.TIMINGS})
    row.update(known_observers.measure(session.observers, session.db, session.run_id, event))
    return row


def _add(session: Session, row: Row) -> None:
    """Adds a result with its metrics, prints it and writes it to the cache."""
    now = time.perf_counter()
    row["benchmark_time"] = 1000 * (now - session.reported)
    session.reported = now
    if "__error__" not in row:
        add_metrics(row, session.metrics)
        check_objectives(row, session.objectives)
    row["timestamp"] = str(datetime.now(timezone.utc))
    session.results.append(row)
    if session.cache is not None:
        session.cache.store(row, session.problem.tune_params)
    if session.quiet:
        return
    if "__error__" not in row:
        keys = [*session.problem.tune_params, "time", *(session.metrics or ())]
        print(util.get_config_string(row, keys, {"time": "ms"}), flush=True)
    elif session.verbose or reason(row) not in session.reasons:
        # The first configuration with a reason stands for the others.
        session.reasons.add(reason(row))
        print(f"{util.get_config_string(row, list(session.problem.tune_params))}: {reason(row)}", flush=True)


def _warn_of_failures(session: Session) -> None:
    """Warns with the reasons if no configuration passed."""
    rows = session.results
    if not rows or any("__error__" not in row for row in rows):
        return
    reasons = list(dict.fromkeys(reason(row) for row in rows))
    shown = "; ".join(reasons[:_REASONS_SHOWN]) + (f"; {len(reasons) - _REASONS_SHOWN} more" if reasons[_REASONS_SHOWN:] else "")
    warnings.warn(
        f"none of {len(rows)} configurations of {session.problem.kernel_name} passed: {shown}",
        FailedConfigurationsWarning,
        stacklevel=_script_level(),
    )


def _run_verified(session: Session, known: Mapping[str, Row], evals: Optional[int]) -> None:
    """Tries configurations one by one: each is run whole, `verify` judges its outputs, and the gate
    judges it again with these as expected values."""
    problem, export, search = session.problem, session.export, session.search
    if session.reference != _SUM_REFERENCE:
        session.reference = "verify"
    if search.strategy not in ("exhaustive", "random"):
        tell_once(IgnoredArgumentWarning, f"outputs are verified in Python: configurations are tried at random, not by {search.strategy}")
    configs = restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names)
    answer = session.answer if any(value is not None for value in session.answer) else None
    started = time.monotonic()
    number = 0
    for params in search.ordered(configs):
        spent = time.monotonic() - started
        if (evals is not None and number >= evals) or (search.budget is not None and spent > search.budget):
            break
        if cache_files.key(params) in known:
            continue
        number += 1
        outputs, row = references.run_whole(export, params, session.device)
        verdict, detail = str(row["verdict"]), str(row.get("detail", ""))
        if outputs is not None:
            host = [outputs.get(place, value) for place, value in enumerate(problem.arguments)]
            verdict = "ok" if call_verify(session.verify, answer, host, session.atol, params) else "incorrect"
            detail = "verify returned False" if session.reference == "verify" else "the sums of its outputs differ"
        if verdict != "ok":
            config = {problem.names[name]: value for name, value in params.items()}
            _open_cache(session, str(row.get("device") or session.device))
            _add(session, _row_of(session, {"config": config, "verdict": verdict, "detail": detail}))
            continue
        values = {place: outputs[place] for place in problem.outputs()} if outputs else {}
        path = export.write(Reference(values=values), configuration=params, problem_name=f"{PROBLEM}_{number}")
        _tune(session, path, search.alone(), 1)
