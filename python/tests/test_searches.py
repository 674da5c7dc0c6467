"""Strategies of Kernel Tuner with their limits."""

import warnings

import pytest
from conftest import SOURCE

from tuner.kernel_tuner import searches, tune_kernel

PARAMS = {"block_size_x": [32 * count for count in range(1, 33)]}


def tune(arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel("vector_add", SOURCE, 1000, arguments, PARAMS, device="vgpu:a100", quiet=True, **options)[0]


def choose(strategy, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return searches.choose(strategy, options, None)


def test_results_of_a_complete_search_are_in_the_order_of_the_enumeration(vectors, place):
    answer = [vectors[1] + vectors[2], None, None, None]
    sizes = PARAMS["block_size_x"]
    tune(vectors, answer=answer, cache="c", strategy="random_sample", strategy_options={"max_fevals": 5})
    for strategy in (None, "brute_force"):
        assert [row["block_size_x"] for row in tune(vectors, answer=answer, cache="c", strategy=strategy)] == sizes


@pytest.mark.parametrize("strategy", [*searches.STRATEGIES, *searches.OTHERS, "", None])
def test_each_strategy_ends_without_limits(vectors, strategy):
    results = tune(vectors, strategy=strategy)
    assert len(results) == (4 if strategy == "random_sample" else 32)


@pytest.mark.parametrize(
    ("strategy", "options", "evals"),
    [
        ("mls", {}, 100),
        ("genetic_algorithm", {"popsize": 4, "maxiter": 2}, 8),
        ("genetic_algorithm", {"popsize": 4, "maxiter": 2, "max_fevals": 5}, 5),
        ("diff_evo", {"popsize": 3, "maxiter": 2}, 6),
        ("simulated_annealing", {}, 3680),
        ("random_sample", {"max_fevals": 7}, 7),
        ("brute_force", {}, None),
        ("mls", {"time_limit": 9}, None),
    ],
)
def test_options_limit_the_number_of_configurations(strategy, options, evals):
    assert choose(strategy, **options).sized(lambda: 32).evals == evals


@pytest.mark.parametrize(("fraction", "evals"), [(None, 4), (0.5, 16), (0, 1), (1, 32)])
def test_a_random_sample_is_a_share_of_the_space(fraction, evals):
    options = {} if fraction is None else {"fraction": fraction}
    assert choose("random_sample", **options).sized(lambda: 32).evals == evals


def test_an_option_without_effect_is_warned_of():
    with pytest.warns(searches.StrategyWarning, match="of mls without effect: neighbor, restart; remove them"):
        searches.choose("mls", {"neighbor": "adjacent", "restart": True, "max_fevals": 3}, None)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_fevals": 0}, "max_fevals is 0; give a whole number from 1"),
        ({"max_fevals": 2.5}, "max_fevals is 2.5"),
        ({"popsize": -1}, "popsize is -1"),
        ({"time_limit": -3}, "time_limit is -3;"),
    ],
)
def test_a_bad_limit_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        searches.choose("genetic_algorithm", options, None)
    with pytest.raises(ValueError, match="fraction is 2"):
        searches.choose("random_sample", {"fraction": 2}, None)


def test_a_seed_is_one_of_those_that_numpy_takes(vectors):
    for seed in (-3, 1 << 32):
        with pytest.raises(ValueError, match=f"seed is {seed}; give a whole number from 0"):
            tune(vectors, strategy="random_sample", seed=seed)
