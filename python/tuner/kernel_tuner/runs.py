"""Runs of a search space that a script describes: expected values, trials and their results."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from .._errors import TunerError
from . import cache as cache_files
from . import references, restrictions, util
from .notices import IgnoredArgumentWarning, tell_once
from .rows import Row, add_metrics, check_objectives, incorrect, passed
from .session import FailedConfigurationsWarning, FirstConfigurationWarning, PredictedTimeWarning, Session
from .space import Reference
from .verification import PartialResultsWarning, are_partial_results, sums_agree
from .verified import run_verified

__all__ = [
    "FailedConfigurationsWarning",
    "FirstConfigurationWarning",
    "IgnoredArgumentWarning",
    "PredictedTimeWarning",
    "Session",
    "run_session",
    "tell_once",
    "write_checked_reference",
]

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
# The program's words for expected values of which none is a number.
_UNDEFINED = "every expected value of"
# Its words for a reference with a hazard.
_REFUSED = "the reference kernel"
# Of results that a cache file of Kernel Tuner holds.
_CACHE_REFERENCE = "cache file"


class _Restart(Exception):
    """The search begins again with other expected values."""


class _PartialResults(Exception):
    """The outputs are partial results, of which only sums are comparable."""


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
    compare. Ctrl-C ends it, and a second one raises KeyboardInterrupt."""
    if not session.problem.outputs() and all(value is None for value in session.answer):
        raise ValueError(
            f"{session.problem.kernel_name} writes to none of its arguments, so no result can be checked, and none has a "
            "time; write a result to an array, or pass answer=[...]"
        )
    try:
        _search(session)
    except KeyboardInterrupt:
        if session.interrupted:
            raise
        session.interrupt()
    session.sort_results()
    session.share_times()
    session.warn_of_failures()


def _search(session: Session) -> None:
    known = _take_known(session)
    evals = session.search.evals
    left = None if evals is None else evals - len(session.results)
    if (left is not None and left <= 0) or (known and not _leave_out(session, known)):
        assert session.cache is not None
        session.device_name = references.find_device_name(session.device)
        session.cache.check_device(session.device_name)
        return
    if session.verify is not None:
        run_verified(session, known, left)
        return
    begin = len(session.results)
    try:
        _run_compared(session, left)
        if session.export.excluded is not None:
            session.define_space()
    except _PartialResults:
        del session.results[begin:]
        run_verified(session, known, left, _SUM_REFERENCE)


def _take_known(session: Session) -> Dict[str, Row]:
    """Adds the results of the cache file that are in the space, up to the limit, and returns all of these."""
    if session.cache is None:
        return {}
    known = session.cache.known(session.problem.tune_params, session.problem.rules)
    for row in list(known.values())[: session.search.evals]:
        row = with_kind(row)
        row.update(compile_time=0.0, verification_time=0.0, benchmark_time=0.0)
        if "__error__" not in row:
            add_metrics(row, session.metrics)
            check_objectives(row, session.objectives)
        session.results.append(row)
    return known


def with_kind(row: Mapping[str, Any]) -> Row:
    """Returns a copy of a result of a cache file with the keys that Kernel Tuner's results lack."""
    kind = {"verdict": util.verdict_of(row.get("__error__")), "timing": "recorded", "reference": _CACHE_REFERENCE, "compared": None}
    return {**row, **{name: value for name, value in kind.items() if name not in row}}


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
                session.tune(path, session.search, evals, lambda row: _doubt(session, row))
            if not session.pending:
                return
            if not passed(session.pending, session.problem.first):
                _replace_reference(session)
            elif len(incorrect(session.pending)) < 2:
                session.proven = True
                session.flush()
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
        session.flush()
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
        session.flush()
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
        session.open_cache(str(checked.get("device") or session.device))
        config = {problem.names[name]: value for name, value in params.items()}
        session.add(session.row_of({"config": config, "verdict": verdict, "detail": detail}))
