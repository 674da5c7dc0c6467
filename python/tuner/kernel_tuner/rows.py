"""Results of configurations: their metrics, objectives and reasons."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._text import visible
from . import util
from .tables import Params

Row = Dict[str, Any]


def add_metrics(row: Row, metrics: Optional[Mapping[str, Any]]) -> None:
    """Adds metrics to a result; raises ValueError if one raises."""
    for name, metric in (metrics or {}).items():
        try:
            util.process_metrics(row, {name: metric})
        except Exception as error:
            raise ValueError(
                f"the metric {name} raises {type(error).__name__} ({error}); the result has {', '.join(row)}; correct it"
            ) from error


def check_objectives(row: Mapping[str, Any], objectives: Sequence[str]) -> None:
    """Raises ValueError if a result lacks an objective."""
    missing = [name for name in objectives if name not in row]
    if missing:
        raise ValueError(
            f"the objective {', '.join(missing)} is in no result, which has {', '.join(row)}; correct it, or add a metric "
            "of this name"
        )


def reason(row: Mapping[str, Any]) -> str:
    """Returns the verdict of a failed configuration with its detail."""
    return visible(": ".join(str(row[name]) for name in ("verdict", "detail") if row.get(name)))


def passed(rows: Sequence[Row], params: Params) -> bool:
    """Reports whether a configuration is among the results, and passed."""
    return any("__error__" not in row and all(row[name] == value for name, value in params.items()) for row in rows)


def incorrect(rows: Sequence[Row]) -> List[Row]:
    """Returns the results that differ from the expected values."""
    return [row for row in rows if row["verdict"] == "incorrect"]


def show_best(
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
    shown = [*tune_params, *names, *(metrics or ())]
    if len(aims) > 1:
        front = env["best_config"] = util.get_pareto_results(passed, names, [higher for _, higher in aims])
        if not quiet:
            print(f"\nBEST PERFORMING CONFIGURATIONS FOR OBJECTIVES: {visible(', '.join(names))}:")
            for row in front:
                print(f"{util.get_config_string(row, shown, {'time': 'ms'})} ({visible(row.get('timing'))})")
        return
    best = util.get_best_config(passed, *aims[0])
    env["best_config"] = best
    if not quiet:
        print(f"\nBEST PERFORMING CONFIGURATION FOR OBJECTIVE {visible(names[0])} ({visible(best.get('timing'))}):")
        print(util.get_config_string(best, shown, {"time": "ms"}))
