"""Simulated searches of cache files."""

import json
import warnings
from pathlib import Path

import pytest

from tuner.kernel_tuner import simulation, tune_cache, tune_kernel

PARAMS = {"a": list(range(8)), "b": list(range(8))}


@pytest.fixture
def file(place):
    rows = {f"{a},{b}": {"a": a, "b": b, "time": 1.0 + (a * 13 + b * 7) % 31, "times": [1.0]} for a in range(8) for b in range(8)}
    head = {"device_name": "D", "kernel_name": "k", "problem_size": 1, "tune_params_keys": ["a", "b"], "tune_params": PARAMS}
    (place / "c.json").write_text(json.dumps({**head, "cache": rows}))
    return "c.json"


def order(results):
    return [(row["a"], row["b"]) for row in results]


def search(file, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return tune_cache(file, quiet=True, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel_name": "other"}, "different kernel"),
        ({"problem_size": 2}, "different problem_size"),
        ({"tune_params": {"b": [1], "a": [1]}}, "another order"),
    ],
)
def test_a_file_of_another_kernel_size_or_space_is_refused(file, options, said):
    given = {"kernel_name": "k", "kernel_source": "", "problem_size": 1, "arguments": [], "tune_params": PARAMS, **options}
    with pytest.raises(ValueError, match=said):
        tune_kernel(**given, lang="CUDA", cache=file, simulation_mode=True, quiet=True)


def test_a_search_of_a_file_leaves_out_configurations_with_an_error(file):
    data = json.loads(Path(file).read_text())
    for a, error in enumerate(("CompilationFailedConfig", "InvalidConfig", "RuntimeFailedConfig")):
        data["cache"][f"{a},0"]["time"] = error
    Path(file).write_text(json.dumps(data))
    results, _ = search(file)
    assert len(results) == 61 and not any("__error__" in row for row in results)
    given = {"kernel_source": "", "arguments": [], "tune_params": PARAMS, "lang": "CUDA", "quiet": True}
    results, _ = tune_kernel("k", problem_size=1, cache=file, simulation_mode=True, **given)
    assert len(results) == 64 and sum("__error__" in row for row in results) == 3


def test_the_time_of_a_simulated_search_is_in_its_results(file):
    results, env = search(file, strategy="genetic_algorithm", strategy_options={"max_fevals": 20})
    assert all(row["strategy_time"] > 0 and row["framework_time"] > 0 for row in results)
    assert env["total_framework_time"] > 0


def test_a_complete_search_is_in_the_order_of_the_enumeration(file):
    every = [(a, b) for a in range(8) for b in range(8)]
    results, env = search(file)
    assert order(results) == every and env["simulation"] is True and env["interrupted"] is False
    results, _ = search(file, strategy_options={"max_fevals": 5}, restrictions=["a > 0"])
    assert order(results) == [(1, b) for b in range(5)]
    results, _ = search(file, strategy="brute_force", tune_params={"a": [3, 1], "b": [2]})
    assert order(results) == [(3, 2), (1, 2)]


def test_searches_differ_but_with_a_seed(file):
    limits = {"strategy": "random_sample", "strategy_options": {"max_fevals": 8}}
    assert len({tuple(order(search(file, **limits)[0])) for _ in range(4)}) > 1
    assert order(search(file, seed=7, **limits)[0]) == order(search(file, seed=7, **limits)[0])


def test_a_configuration_that_the_file_lacks_ends_a_complete_search_and_others_with_a_warning(file, place):
    data = json.loads((place / "c.json").read_text())
    del data["cache"]["2,3"]
    (place / "c.json").write_text(json.dumps(data))
    given = {"arguments": [], "cache": file, "simulation_mode": True, "quiet": True, "tune_params": PARAMS}
    with pytest.raises(ValueError, match="kernel configuration 2,3 not in cache.*must be present"):
        tune_kernel("k", "", 1, **given)
    assert len(tune_kernel("k", "", 1, **given, restrictions=["a != 2"])[0]) == 56
    with pytest.warns(simulation.IncompleteCacheWarning, match="c.json lacks 1 configurations"):
        results, _ = tune_kernel("k", "", 1, **given, strategy="random_sample", strategy_options={"max_fevals": 63})
    assert len(results) == 63
    # A search of the file has its configurations.
    with warnings.catch_warnings():
        warnings.simplefilter("error", simulation.IncompleteCacheWarning)
        assert len(search(file)[0]) == len(search(file, strategy="random_sample", strategy_options={"max_fevals": 64})[0]) == 63


def test_a_search_of_a_file_enumerates_its_configurations_and_not_their_product(place):
    params = {name: list(range(64)) for name in "abcdefgh"}
    rows = [[(at * factor) % 64 for factor in (1, 3, 5, 7, 9, 11, 13, 15)] for at in (5, 2, 9)]
    cache = {",".join(map(str, row)): {**dict(zip(params, row)), "time": 1.0} for row in rows}
    head = {"device_name": "D", "kernel_name": "k", "problem_size": 1, "tune_params_keys": list(params), "tune_params": params}
    (place / "c.json").write_text(json.dumps({**head, "cache": cache}))
    assert [row["a"] for row in search("c.json")[0]] == [2, 5, 9]


def test_a_parameter_with_the_name_of_a_key_keeps_its_value(place):
    rows = {str(value): {"timing": value, "time": 1.0 + value} for value in (1, 2)}
    head = {"device_name": "D", "kernel_name": "k", "tune_params_keys": ["timing"], "tune_params": {"timing": [1, 2]}}
    (place / "c.json").write_text(json.dumps({**head, "cache": rows}))
    for options in ({}, {"strategy": "mls"}):
        assert sorted(row["timing"] for row in search("c", **options)[0]) == [1, 2]
