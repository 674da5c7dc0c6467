"""Strategies of Kernel Tuner as strategies of the tuner."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Set

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
_ORDER_SEED = 1
_told: Set[str] = set()


class StrategyWarning(UserWarning):
    """A strategy that was replaced."""


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

    def alone(self) -> "Search":
        """Returns the search of a space with one configuration."""
        return replace(self, strategy="exhaustive", budget=None)

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
    name = "brute_force" if strategy is None else strategy
    if not isinstance(name, str):
        name = str(getattr(name, "__name__", type(name).__name__)).rsplit(".", 1)[-1]
        if name not in STRATEGIES and name not in OTHERS:
            raise NotImplementedError(f"the strategy {name} is a class of the script; name one of {', '.join(STRATEGIES)}")
    if name not in STRATEGIES and name not in OTHERS:
        raise ValueError(f"unknown strategy {name}; use one of {', '.join([*STRATEGIES, *OTHERS])}")
    ours = STRATEGIES.get(name, "evolve")
    if name not in STRATEGIES and name not in _told:
        _told.add(name)
        warnings.warn(f"the strategy {name} is replaced by evolve", StrategyWarning, stacklevel=4)
    evals = options.get("max_fevals")
    limit = options.get("time_limit")
    extra = ["--no-baseline"]
    if evals is None and limit is None and ours not in ("exhaustive", "random"):
        # Strategies of Kernel Tuner end by themselves.
        extra.append("--until-converged")
    return Search(ours, None if evals is None else int(evals), None if limit is None else float(limit), seed, extra)
