"""Limits of `python -m tuner.kernel_tuner`, for scripts that are not touched: the largest number of
configurations, the time and the device of each `tune_kernel`, and the database."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Mapping, Optional, Sequence

from .searches import Search
from .util import NpEncoder

EVALS = "TUNER_KERNEL_TUNER_EVALS"
BUDGET = "TUNER_KERNEL_TUNER_BUDGET"
DEVICE = "TUNER_KERNEL_TUNER_DEVICE"
DATABASE = "TUNER_KERNEL_TUNER_DB"
SUMMARY = "TUNER_KERNEL_TUNER_SUMMARY"


def apply(search: Search) -> Search:
    """Lowers the limits of a search to those of the environment."""
    evals, budget = _number(EVALS, int), _number(BUDGET, float)
    if evals:
        search = replace(search, evals=int(min(evals, search.evals or evals)))
    if budget:
        search = replace(search, budget=min(budget, search.budget or budget))
    if (evals or budget) and search.strategy == "exhaustive":
        # The first configurations of an enumeration are all alike; this search begins with the first one.
        search = replace(search, strategy="evolve")
    return search


def _number(name: str, kind: Callable[[str], float]) -> Optional[float]:
    """Returns a positive number of the environment; raises ValueError if it is none."""
    text = os.environ.get(name)
    if not text:
        return None
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"{name} is {text!r}; give a positive number, or unset it")
    return number


def device() -> Optional[str]:
    """Returns the device of the environment."""
    return os.environ.get(DEVICE) or None


def database() -> str:
    """Returns the database of the environment, or `tuner/kernel_tuner.db` in the user's data folder."""
    home = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(home):
        # The XDG Base Directory Specification ignores a relative path.
        home = os.path.expanduser("~/.local/share")
    return os.environ.get(DATABASE) or os.path.join(home, "tuner", "kernel_tuner.db")


def summarize(kernel: str, device_name: str, results: Sequence[Mapping[str, Any]], best: Any, seconds: float) -> None:
    """Appends one JSON line about a `tune_kernel` to the file of the environment."""
    path = os.environ.get(SUMMARY)
    if not path:
        return
    line = {
        "kernel": kernel,
        "device": device_name,
        "trials": len(results),
        "verdicts": dict(Counter(str(row.get("verdict")) for row in results)),
        "best": best,
        "seconds": round(seconds, 1),
    }
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, cls=NpEncoder) + "\n")
