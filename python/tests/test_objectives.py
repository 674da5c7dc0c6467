"""Objectives, metrics and observers of a script."""

import warnings

import pytest
from conftest import SOURCE

from tuner.kernel_tuner import observers, tune_kernel

PARAMS = {"block_size_x": [32, 64]}
RATE = {"GFLOP/s": lambda p: 1000 / p["time"], "x": "block_size_x * 1.0"}


def tune(vectors, quiet=True, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel("vector_add", SOURCE, 1000, vectors, PARAMS, device="vgpu:a100", quiet=quiet, **options)


def test_each_of_several_objectives_has_its_direction(vectors, capsys):
    results, env = tune(vectors, metrics=RATE, objective=["time", "GFLOP/s"], quiet=False)
    best = min(results, key=lambda row: row["time"])
    assert env["best_config"] == [best]
    shown = capsys.readouterr().out.split("OBJECTIVES: time, GFLOP/s:")[1]
    assert f"block_size_x={best['block_size_x']}" in shown and "predicted" in shown
    _, env = tune(vectors, metrics=RATE, objective=["x", "GFLOP/s"], objective_higher_is_better=(False, True))
    assert {row["block_size_x"] for row in env["best_config"]} >= {32}
    with pytest.raises(ValueError, match="specify objective_higher_is_better for objective x"):
        tune(vectors, metrics=RATE, objective=["time", "x"])
    with pytest.raises(ValueError, match="objective_higher_is_better has 1 elements and objective 2"):
        tune(vectors, metrics=RATE, objective=["time", "x"], objective_higher_is_better=[True])


def test_an_objective_that_no_result_has_is_refused(vectors):
    with pytest.raises(ValueError, match="the objective rate is in no result, which has block_size_x, time.*add a metric"):
        tune(vectors, objective="rate", objective_higher_is_better=True)
    tune(vectors, cache="c")
    with pytest.raises(ValueError, match="the objective rate is in no result"):
        tune(vectors, objectives={"time": False, "rate": True}, cache="c", simulation_mode=True)
    with pytest.raises(ValueError, match="the objective rate is in no result"):
        tune(vectors, objective="rate", objective_higher_is_better=True, cache="c")


@pytest.mark.parametrize(("metrics", "said"), [([("m", "time")], "metrics should be a dictionary"), ({"m": 3}, "strings or callable")])
def test_metrics_are_texts_or_functions_by_name(vectors, metrics, said):
    with pytest.raises(ValueError, match=said):
        tune(vectors, metrics=metrics, cache="c")


def test_an_observer_may_be_a_class_or_a_function_that_makes_one(vectors):
    class Registers(observers.BenchmarkObserver):
        def __init__(self, settings):
            assert settings["lang"] == "CUDA"

        def get_results(self):
            return {"registers": self.dev.func.num_regs}

    for observer in (Registers, lambda settings: Registers(settings), Registers({"lang": "CUDA"})):
        results, _ = tune(vectors, observers=[observer])
        assert all(row["registers"] > 0 for row in results)
    with pytest.raises(TypeError, match="an observer of type int is not known"):
        tune(vectors, observers=[lambda settings: 1])
