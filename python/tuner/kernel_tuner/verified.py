"""Runs whose outputs are judged in Python: by `verify`, or by their sums."""

from __future__ import annotations

import copy
import time
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from . import cache as cache_files
from . import references, restrictions
from .notices import IgnoredArgumentWarning, tell_once
from .rows import Row
from .session import Session
from .space import Reference
from .tables import Params
from .verification import call_verify, identity_of

Outputs = Dict[int, Any]
VERIFY_REFERENCE = "verify"
# Outputs that differ by less are compared with one another: the gate allows rounding errors of 32 units.
_SAME_UNITS = 16


def run_verified(session: Session, known: Mapping[str, Row], evals: Optional[int], reference: str = VERIFY_REFERENCE) -> None:
    """Tries configurations one by one: each is run whole, `verify` judges its outputs, and the gate
    judges it again with accepted outputs as expected values."""
    problem, search = session.problem, session.search
    session.reference = reference
    if search.strategy not in ("exhaustive", "random"):
        tell_once(IgnoredArgumentWarning, f"outputs are verified in Python: configurations are tried at random, not by {search.strategy}")
    configs = restrictions.valid_configurations(problem.tune_params, problem.rules, problem.block_size_names)
    database = _Database(session)
    started = time.monotonic()
    number = 0
    for params in search.ordered(configs):
        spent = time.monotonic() - started
        ended = (evals is not None and number >= evals) or (search.budget is not None and spent > search.budget)
        if ended or session.interrupted:
            break
        if cache_files.key(params) in known:
            continue
        number += 1
        _try_one(session, database, params)
    if not session.interrupted:
        database.finish()


def _try_one(session: Session, database: "_Database", params: Params) -> None:
    """Judges a configuration and adds its result."""
    problem = session.problem
    session.framework_ms += session.lap_ms()
    outputs, row = references.run_whole(session.export, params, session.device)
    verdict, detail = str(row["verdict"]), str(row.get("detail", ""))
    if outputs is not None:
        accepted = _verify(session, outputs, params)
        verdict = "ok" if accepted else "incorrect"
        detail = "verify returned False" if session.reference == VERIFY_REFERENCE else "the sums of its outputs differ"
    session.verified_ms = session.lap_ms()
    if verdict == "ok":
        database.run_accepted(params, {place: outputs[place] for place in problem.outputs()} if outputs else {})
        return
    config = {problem.names[name]: value for name, value in params.items()}
    session.open_cache(str(row.get("device") or session.device))
    session.add(session.row_of({"config": config, "verdict": verdict, "detail": detail}))
    database.store_rejected(params, outputs)


def _verify(session: Session, outputs: Outputs, params: Params) -> bool:
    """Passes copies of the arguments to `verify`, which may change them, and returns its answer."""
    arguments = [outputs.get(place, value) for place, value in enumerate(session.problem.arguments)]
    host = [value.copy(order="K") if isinstance(value, np.ndarray) else copy.copy(value) for value in arguments]
    return call_verify(session.verify, session.given_answer, host, session.atol, params)


class _Database:
    """Runs of single configurations, whose trials rank together in the database: `verify` accepts the outputs of each,
    and its name stands for them in the identity of the results."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = f"{session.reference} {identity_of(session.verify, session.given_answer)}"
        #: Configuration that was accepted last, and its outputs.
        self._params: Optional[Params] = None
        self._accepted: Optional[Outputs] = None

    def run_accepted(self, params: Params, outputs: Outputs) -> None:
        """Runs a configuration whose outputs are accepted."""
        session, self._params, self._accepted = self._session, params, outputs
        path = session.export.write(self._reference(outputs), configuration=params)
        refuted: List[Row] = []

        def doubts(row: Row) -> bool:
            if row["verdict"] != "incorrect":
                return False
            refuted.append(row)
            return True

        session.tune(path, session.search.alone(), 1, doubts)
        if refuted and not session.interrupted:
            # It may have been rejected before, by a function that read other data.
            session.verified_ms = refuted[0]["verification_time"]
            session.tune(path, session.search.alone().anew(), 1)

    def store_rejected(self, params: Params, outputs: Optional[Outputs]) -> None:
        """Stores a configuration that was rejected, by a run with expected values that it misses."""
        session = self._session
        if session.interrupted:
            return
        values = self._accepted
        if outputs is None:
            values = values or {place: session.problem.arguments[place] for place in session.problem.outputs()}
        elif values is None or _agree(values, outputs):
            values = {place: _other(value) for place, value in outputs.items()}
        path = session.export.write(self._reference(values), configuration=params)
        session.store(path, session.search.alone().anew())

    def finish(self) -> None:
        """Stores the search space of the trials."""
        if self._params is not None and self._accepted is not None:
            self._session.problem.first = self._params
            self._session.export.reference = self._reference(self._accepted)
            self._session.define_space()

    def _reference(self, values: Outputs) -> Reference:
        return Reference(values=values, accepted_as=self._name)


def _agree(one: Outputs, other: Outputs) -> bool:
    """Reports whether outputs are equal, or differ by less than the gate allows."""
    return all(_is_close(value, other[place]) for place, value in one.items())


def _is_close(one: Any, other: Any) -> bool:
    if one.tobytes() == other.tobytes():
        return True
    if one.dtype.kind != "f":
        return False
    return bool(np.allclose(other, one, rtol=_SAME_UNITS * float(np.finfo(one.dtype).eps), atol=0, equal_nan=True))


def _other(value: Any) -> Any:
    """Returns values of which each differs by more than any tolerance."""
    if value.dtype.kind in "fc":
        return np.where(np.abs(value) < 1, 4, 0).astype(value.dtype)
    return (~np.frombuffer(value.tobytes(order="A"), np.uint8) & (1 if value.dtype.kind == "b" else 255)).view(value.dtype)
