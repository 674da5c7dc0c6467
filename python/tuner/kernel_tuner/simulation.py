"""Searches of the results in a cache file, as if its kernel was tuned."""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .. import tune
from . import cache as cache_files
from . import util
from .notices import tell_once
from .restrictions import Restriction, valid_configurations
from .rows import Row, add_metrics, check_objectives, show_best
from .runs import with_kind
from .searches import Search

_MEASURED = ("compile_time", "verification_time", "benchmark_time")
_SEEDS = 1 << 32


class IncompleteCacheWarning(UserWarning):
    """A cache file that lacks configurations of the space."""


def simulate(
    header: Mapping[str, Any],
    rules: List[Restriction],
    block_size_names: Sequence[str],
    cache: Optional[Union[str, Path]],
    search: Search,
    metrics: Optional[Mapping[str, Any]],
    aims: List[Tuple[str, bool]],
    quiet: bool,
) -> Tuple[List[Row], Dict[str, Any]]:
    """Searches the results of a cache file.

    :param header: header of the file that is wanted
    """
    tune_params = header["tune_params"]
    if cache is None:
        raise ValueError("simulation_mode needs cache; pass the name of a cache file")
    path = cache_files.with_ending(cache)
    if not os.path.isfile(path):
        raise ValueError(f"simulation_mode: the cache file {path} does not exist; correct cache")
    data = cache_files.read_cache(path, open_cache=False)
    cache_files.check_header(path, data, header)
    started = time.perf_counter()
    kept = cache_files.filtered(data, tune_params, rules)
    rows = {entry: _recorded(row, tune_params, metrics, [name for name, _ in aims]) for entry, row in kept["cache"].items()}
    keys = (cache_files.key(params) for params in valid_configurations(tune_params, rules, block_size_names))
    interrupted, strategy_ms = False, 0.0
    if search.strategy == "exhaustive":
        results = _enumerate(keys, rows, search)
    else:
        missing = sum(1 for key in keys if key not in rows)
        if missing:
            tell_once(
                IncompleteCacheWarning,
                f"{path} lacks {missing} configurations of the space, which the search leaves out; Kernel Tuner's ends at one",
            )
        results, interrupted, strategy_ms = _search(kept, rows, search)
    framework_ms = max(0.0, 1000 * (time.perf_counter() - started) - strategy_ms)
    for row in results:
        shares = {"strategy_time": strategy_ms / len(results), "framework_time": framework_ms / len(results)}
        row.update({name: share for name, share in shares.items() if name not in tune_params})
    simulated = sum(row[name] for row in results for name in _MEASURED)
    env = {
        "device_name": data["device_name"], "simulation": True, "simulated_time": simulated, "interrupted": interrupted,
    }  # fmt: skip
    show_best(results, aims, tune_params, metrics, env, quiet)
    return results, util.get_total_timings(results, env, 1000 * (time.perf_counter() - started))


def _recorded(row: Row, tune_params: Mapping[str, Any], metrics: Optional[Mapping[str, Any]], objectives: Sequence[str]) -> Row:
    """Returns a result of a cache file as one of a run."""
    row = with_kind(row)
    row.update({name: row.get(name, 0.0) for name in util.TIMINGS if name not in tune_params})
    # A parameter of Kernel Tuner may have this name.
    if "timing" not in tune_params:
        row["timing"] = "recorded"
    if "__error__" not in row:
        add_metrics(row, metrics)
        check_objectives(row, objectives)
    return row


def _enumerate(keys: Iterator[str], rows: Mapping[str, Row], search: Search) -> List[Row]:
    """Returns the results of a complete search in its order; raises ValueError where the file lacks one."""
    results: List[Row] = []
    spent = 0.0
    for key in keys:
        if search.evals is not None and len(results) >= search.evals or search.budget is not None and spent > search.budget:
            break
        if key not in rows:
            raise ValueError(
                f"kernel configuration {key} not in cache: in simulation mode, all configurations must be present in the "
                "cache; remove its values from tune_params, or add a restriction"
            )
        results.append(dict(rows[key]))
        spent += sum(rows[key][name] for name in _MEASURED) / 1000
    return results


def _search(kept: Mapping[str, Any], rows: Mapping[str, Row], search: Search) -> Tuple[List[Row], bool, float]:
    """Returns the results that a strategy chooses, whether it was interrupted, and its time in milliseconds."""
    results: List[Row] = []
    strategy_ms = 0.0

    def receive(event: Row) -> None:
        nonlocal strategy_ms
        if event["event"] == "trial":
            results.append(dict(rows[cache_files.key(event["config"])]))
        elif event["event"] == "run_finished":
            strategy_ms = event.get("search_us", 0) / 1000

    with tempfile.TemporaryDirectory(prefix="tuner-") as folder:
        file = cache_files.write_closed(Path(folder) / "cache.json", kept)
        run = tune(
            device=f"replay:{file}", evals=search.evals or len(rows), budget=search.budget, strategy=search.strategy,
            # As in Kernel Tuner each search without a seed is another one.
            seed=random.randrange(_SEEDS) if search.seed is None else search.seed,
            db=Path(folder) / "simulated.db", on_event=receive, progress=False,
        )  # fmt: skip
    return results, run.interrupted, strategy_ms
