"""One call of `tune_kernel`: its arguments, its results, and runs of the program that add to these."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

from .. import tune
from . import cache as cache_files
from . import observers as known_observers
from . import searches, util
from .notices import IgnoredArgumentWarning, tell_once, warn
from .problem import Problem
from .rows import Row, add_metrics, check_objectives, reason
from .space import Export
from .stored import Figures, read_figures
from .tables import Params

_REASONS_SHOWN = 3


class PredictedTimeWarning(UserWarning):
    """Times are predicted, because there is no GPU."""


class FirstConfigurationWarning(UserWarning):
    """Without `answer` the outputs of the first configuration are the expected values."""


class FailedConfigurationsWarning(UserWarning):
    """No configuration passed."""


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
    #: The script gave an answer: its elements may all be None.
    has_answer: bool = False
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
    #: Time of `verify` for the configuration that is tried, milliseconds.
    verified_ms: float = 0.0
    interrupted: bool = False
    #: Time of the search strategies, and of the start and end of runs, milliseconds.
    strategy_ms: float = 0.0
    framework_ms: float = 0.0
    started: float = field(default_factory=time.perf_counter)
    reported: float = field(default_factory=time.perf_counter)

    @property
    def given_answer(self) -> Optional[List[Any]]:
        """The answer as the script gave it, for `verify`; None without one."""
        return self.answer if self.has_answer else None

    def open_cache(self, device_name: str) -> None:
        """Names the device of the results, and opens the cache file for it."""
        self.device_name = device_name
        if self.cache is not None:
            self.cache.open(device_name)

    def flush(self) -> None:
        """Adds the results that waited."""
        waiting = list(self.pending)
        self.pending.clear()
        for row in waiting:
            self.add(row)

    def interrupt(self) -> None:
        """Ends the search: the results until now are those of the call."""
        self.interrupted = self.proven = True
        tell_once(IgnoredArgumentWarning, "interrupted: these are the results until now")
        self.flush()

    def tune(
        self, path: Path, search: searches.Search, evals: Optional[int], doubts: Callable[[Row], bool] = lambda row: False
    ) -> None:
        """Runs the tuner on a search space and adds its results.

        :param doubts: returns True for a result that waits for another one
        """

        def receive(event: Row) -> None:
            if event["event"] == "run_started":
                self.framework_ms += self.lap_ms()
                self.run_id = event["run_id"]
                self.open_cache(event["device"])
                if event["device_kind"] == "vgpu":
                    tell_once(PredictedTimeWarning, f"there is no GPU: times are predicted for {event['device']}")
            elif event["event"] == "trial":
                row = self.row_of(event, read_figures(self.db, self.run_id, event))
                if not doubts(row):
                    self.add(row)
            elif event["event"] == "run_finished":
                self.strategy_ms += event.get("search_us", 0) / 1000

        try:
            results = tune(
                path, device=self.device, evals=evals, budget=search.budget, strategy=search.strategy, seed=search.seed,
                db=self.db, options=search.options, on_event=receive, progress=False, cwd=str(self.export.folder),
            )  # fmt: skip
        except KeyboardInterrupt:
            # The second one.
            self.interrupted = True
            raise
        if results.interrupted:
            self.interrupt()

    def store(self, path: Path, search: searches.Search) -> None:
        """Runs the tuner on one configuration of a search space for the database: it adds no result."""
        done = tune(
            path, device=self.device, evals=1, strategy=search.strategy, seed=search.seed, db=self.db,
            options=search.options, progress=False, cwd=str(self.export.folder),
        )  # fmt: skip
        if done.interrupted and not self.interrupted:
            self.interrupt()

    def define_space(self) -> None:
        """Stores the whole search space, with a configuration whose result is known: a ranking has the parameters and
        constraints of its newest run, and the runs before had one configuration, or left out those of a cache file."""
        self.export.excluded = None
        if self.export.reference is not None:
            self.store(self.export.write(self.export.reference), self.search.alone())

    def row_of(self, event: Mapping[str, Any], figures: Figures = Figures()) -> Row:
        """Converts a trial to a result of Kernel Tuner."""
        back = {text: name for name, text in self.problem.names.items()}
        row: Row = {back.get(name, name): value for name, value in event["config"].items()}
        row = {name: row[name] for name in self.problem.tune_params}
        verdict = event["verdict"]
        passed = event.get("time_us") is not None
        if passed:
            row["time"] = event["time_us"] / 1000
            row["times"] = figures.times_ms or [row["time"]]
        else:
            row["__error__"] = util.error_of(verdict)
        row.update(verdict=verdict, timing=event.get("timing") or "predicted", reference=self.reference)
        row["compared"] = event.get("compared")
        if event.get("detail"):
            row["detail"] = event["detail"]
        row.update({name: 0.0 for name in util.TIMINGS})
        row.update(compile_time=figures.compile_ms, verification_time=self.verified_ms)
        self.verified_ms = 0.0
        if passed:
            row.update(known_observers.measure(self.observers, figures.registers))
        return row

    def add(self, row: Row) -> None:
        """Adds a result with its metrics, prints it and writes it to the cache."""
        # What remains of the time since the result before; code is compiled concurrently.
        row["benchmark_time"] = max(0.0, self.lap_ms() - row["compile_time"])
        if "__error__" not in row:
            add_metrics(row, self.metrics)
            check_objectives(row, self.objectives)
        row["timestamp"] = str(datetime.now(timezone.utc))
        self.results.append(row)
        if self.cache is not None:
            self.cache.store(row, self.problem.tune_params)
        if self.quiet:
            return
        if "__error__" not in row:
            keys = [*self.problem.tune_params, "time", *(self.metrics or ())]
            print(util.get_config_string(row, keys, {"time": "ms"}), flush=True)
        elif self.verbose or reason(row) not in self.reasons:
            # The first configuration with a reason stands for the others.
            self.reasons.add(reason(row))
            print(f"{util.get_config_string(row, list(self.problem.tune_params))}: {reason(row)}", flush=True)

    def lap_ms(self) -> float:
        """Returns the milliseconds since it was called last, or since the session began."""
        now = time.perf_counter()
        spent, self.reported = 1000 * (now - self.reported), now
        return spent

    def sort_results(self) -> None:
        """Sorts the results of a complete search in the order of the enumeration, as Kernel Tuner returns them."""
        values = self.problem.tune_params
        if self.search.strategy == "exhaustive":
            self.results.sort(key=lambda row: [values[name].index(row[name]) for name in values])

    def share_times(self) -> None:
        """Divides the times of the search strategies and of the framework among the results, as Kernel Tuner does."""
        # The search is part of the time of the runs.
        framework_ms = max(0.0, self.framework_ms + self.lap_ms() - self.strategy_ms)
        count = len(self.results)
        for row in self.results:
            row.update(strategy_time=self.strategy_ms / count, framework_time=framework_ms / count)

    def warn_of_failures(self) -> None:
        """Warns with the reasons if no configuration passed."""
        rows = self.results
        if not rows or any("__error__" not in row for row in rows):
            return
        reasons = list(dict.fromkeys(reason(row) for row in rows))
        shown = "; ".join(reasons[:_REASONS_SHOWN])
        shown += f"; {len(reasons) - _REASONS_SHOWN} more" if reasons[_REASONS_SHOWN:] else ""
        if "compile_failed" in shown and "<<<" in self.problem.source:
            shown += "; host code that launches kernels is not compiled: write it between `#ifndef kernel_tuner` and `#endif`"
        warn(
            FailedConfigurationsWarning,
            f"none of {len(rows)} configurations of {self.problem.kernel_name} passed: {shown}",
        )
