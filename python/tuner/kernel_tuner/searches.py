"""Strategies of Kernel Tuner as strategies of the tuner."""

from __future__ import annotations

import math
import numbers
import random
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Optional, Sequence

from .notices import tell_once
from .tables import Params

#: Strategies that have a counterpart. Others become `evolve`.
STRATEGIES: Dict[str, str] = {
    "brute_force": "exhaustive",
    "random_sample": "random",
    "mls": "local",
    "greedy_mls": "local",
    "ordered_greedy_mls": "local",
    "greedy_ils": "local",
    "simulated_annealing": "annealing",
    "dual_annealing": "annealing",
    "basinhopping": "annealing",
    "diff_evo": "differential",
    "genetic_algorithm": "genetic",
}
#: Strategies without a counterpart.
OTHERS = (
    "minimize", "pso", "skopt", "firefly_algorithm", "bayes_opt", "pyatf_strategies", "hybrid_vndx",
    "adaptive_tabu_greywolf", "nsga2", "nsga3",
)  # fmt: skip
_HILL_CLIMBING_FEVALS = 100
# Logarithms of the end temperature and of the cooling factor of Kernel Tuner's annealing.
_ANNEALING_STEPS = math.ceil(math.log(0.0001) / math.log(0.9975))
#: Configurations after which the strategies of Kernel Tuner end by themselves.
DEFAULT_FEVALS: Dict[str, Callable[[Mapping[str, Any]], int]] = {
    **dict.fromkeys(("mls", "greedy_mls", "ordered_greedy_mls", "greedy_ils"), lambda options: _HILL_CLIMBING_FEVALS),
    **dict.fromkeys(
        ("simulated_annealing", "dual_annealing", "basinhopping"),
        lambda options: _ANNEALING_STEPS * _whole(options, "maxiter", 1),
    ),
    "genetic_algorithm": lambda options: _whole(options, "popsize", 26) * _whole(options, "maxiter", 90),
    "diff_evo": lambda options: _whole(options, "popsize", 16) * _whole(options, "maxiter", 90),
}
_SAMPLE_FRACTION = 0.1
# Options that are honoured; the construction of the space has no choices here.
_OPTIONS = {"max_fevals", "time_limit", "searchspace_construction_options"}
_OWN_OPTIONS = {
    "random_sample": {"fraction"},
    "genetic_algorithm": {"popsize", "maxiter"},
    "diff_evo": {"popsize", "maxiter"},
    **dict.fromkeys(("simulated_annealing", "dual_annealing", "basinhopping"), {"maxiter"}),
}
_ORDER_SEED = 1


class StrategyWarning(UserWarning):
    """A strategy that was replaced, or an option of it without effect."""


@dataclass(frozen=True)
class Search:
    """A strategy with its limits."""

    #: Strategy of `tuner run`.
    strategy: str
    #: Largest number of configurations.
    evals: Optional[int]
    #: Wall time, seconds.
    budget: Optional[float]
    #: Random seed.
    seed: Optional[int]
    #: Further options of `tuner run`.
    options: Sequence[str] = ("--no-baseline",)
    #: Share of the space that is judged where `evals` is not given.
    fraction: Optional[float] = None

    def sized(self, count: Callable[[], int]) -> "Search":
        """Returns the search with the number of configurations of its share of a space."""
        if self.fraction is None or self.evals is not None:
            return self
        return replace(self, evals=max(1, math.ceil(count() * self.fraction)))

    def alone(self) -> "Search":
        """Returns the search of a space with one configuration."""
        return replace(self, strategy="exhaustive", budget=None)

    def anew(self) -> "Search":
        """Returns the search without the results of earlier runs."""
        return replace(self, options=[*self.options, "--fresh"])

    def ordered(self, configs: Iterable[Params]) -> Iterator[Params]:
        """Returns configurations in order, or shuffled for a strategy that does not enumerate them."""
        if self.strategy == "exhaustive":
            return iter(configs)
        listed = list(configs)
        random.Random(_ORDER_SEED if self.seed is None else self.seed).shuffle(listed)
        return iter(listed)


def choose(strategy: Any, options: Optional[Mapping[str, Any]], seed: Optional[int]) -> Search:
    """Returns the search of a strategy's name (or module) and options."""
    options = options or {}
    # The seeds that NumPy takes.
    if seed is not None and not 0 <= seed < 1 << 32:
        raise ValueError(f"seed is {seed}; give a whole number from 0 to 2**32 - 1")
    name = _name(strategy)
    ours = STRATEGIES.get(name, "evolve")
    if name not in STRATEGIES:
        tell_once(StrategyWarning, f"the strategy {name} is replaced by evolve")
    ignored = [option for option in options if option not in _OPTIONS | _OWN_OPTIONS.get(name, set())]
    if ignored:
        tell_once(StrategyWarning, f"strategy_options of {name} without effect: {', '.join(ignored)}; remove them")
    evals = _whole(options, "max_fevals", 0) or None
    limit = _seconds(options.get("time_limit"))
    extra = ["--no-baseline"]
    if evals is None and limit is None:
        if name in DEFAULT_FEVALS:
            evals = DEFAULT_FEVALS[name](options)
        elif ours == "evolve":
            extra.append("--until-converged")
    return Search(ours, evals, limit, seed, extra, _fraction(options) if name == "random_sample" else None)


def _name(strategy: Any) -> str:
    """Returns the name of a strategy; raises NotImplementedError or ValueError if it is not known."""
    name = strategy or "brute_force"
    if not isinstance(name, str):
        name = str(getattr(name, "__name__", type(name).__name__)).rsplit(".", 1)[-1]
        if name not in STRATEGIES and name not in OTHERS:
            raise NotImplementedError(f"the strategy {name} is a class of the script; name one of {', '.join(STRATEGIES)}")
    if name not in STRATEGIES and name not in OTHERS:
        raise ValueError(f"unknown strategy {name}; use one of {', '.join([*STRATEGIES, *OTHERS])}")
    return name


def _whole(options: Mapping[str, Any], name: str, default: int) -> int:
    """Returns a positive whole number of the options, or the default."""
    value = options.get(name)
    if value is None:
        return default
    whole = isinstance(value, numbers.Real) and not isinstance(value, bool) and float(value).is_integer()
    if not whole or value < 1:
        raise ValueError(f"{name} is {value!r}; give a whole number from 1")
    return int(value)


def _seconds(limit: Any) -> Optional[float]:
    """Returns a limit of time; None where it is none or infinite."""
    if limit is None or limit == math.inf:
        return None
    if isinstance(limit, bool) or not isinstance(limit, numbers.Real) or not float(limit) >= 0:
        raise ValueError(f"time_limit is {limit!r}; give a number of seconds")
    return float(limit)


def _fraction(options: Mapping[str, Any]) -> float:
    fraction = options.get("fraction", _SAMPLE_FRACTION)
    if not isinstance(fraction, numbers.Real) or not 0 <= float(fraction) <= 1:
        raise ValueError(f"fraction is {fraction!r}; give a number from 0 to 1")
    return float(fraction)
