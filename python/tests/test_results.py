"""`Results`: several problems, their display, and parameters with the names of keys."""

import copy
import pickle

import pytest

import tuner
from tuner.kernel_tuner import tune_kernel, util

ROWS = [
    {"kernel": "k", "problem": problem, "config": {"x": x}, "verdict": "ok", "time_us": time, "timing": "predicted"}
    for problem, x, time in [("large", 1, 90.0), ("small", 1, 2.0), ("large", 2, 80.0), ("small", 2, 1.0)]
]


def test_each_problem_has_its_best_row():
    results = tuner.Results(ROWS, device="d")
    assert [(row["problem"], row["time_us"]) for row in results.bests] == [("large", 80.0), ("small", 1.0)]
    assert results.best == results.bests[0]
    assert "80.000 us predicted (k large), 1.000 us predicted (k small)" in repr(results)
    assert [row["time_us"] for row in results.passed] == [80.0, 90.0, 1.0, 2.0]
    assert repr(tuner.Results(ROWS[:1])) == "<Results: 1 configurations, best 90.000 us predicted>"
    assert tuner.Results([]).bests == [] and tuner.Results([]).best is None


def test_measured_and_predicted_times_are_not_compared():
    rows = [ROWS[0], {**ROWS[0], "timing": "measured", "time_us": 100.0}]
    assert [row["time_us"] for row in tuner.Results(rows).bests] == [90.0, 100.0]


def test_a_page_has_a_line_for_each_problem_and_none_for_a_ranking():
    page = tuner.Results(ROWS)._repr_html_()
    assert page.count("<polyline") == 2 and "k large: best time: 90.000 to 80.000 us in 2 configurations" in page
    assert "<th>kernel</th><th>problem</th>" in page and page.count("<td>small</td>") == 2
    assert "<polyline" not in tuner.Results(ROWS, ranked=True)._repr_html_()
    assert tuner.Results(ROWS[:1])._repr_html_().count("<polyline") == 0


def test_loaded_results_are_a_ranking(space):
    tuner.tune(space, device="vgpu:a100", evals=3, db="r.db")
    assert "<polyline" not in tuner.load_results("r.db")._repr_html_()


def test_a_parameter_with_the_name_of_a_key_has_a_column_of_its_own():
    pytest.importorskip("pandas")
    rows = [{**ROWS[0], "config": {"problem": 7, "detail": 8, "x": 9}}, {**ROWS[1], "config": {"detail": 6}, "detail": "why"}]
    frame = tuner.Results(rows).to_frame()
    assert list(frame["problem"]) == ["large", "small"] and frame["config.problem"][0] == 7
    assert list(frame["config.detail"]) == [8, 6] and "config.x" not in frame and frame["x"][0] == 9


@pytest.mark.parametrize("kind", [util.ErrorConfig, util.InvalidConfig, util.CompilationFailedConfig, util.RuntimeFailedConfig])
def test_errors_are_copied_and_pickled(kind):
    rows = [{"x": 1, "__error__": kind()}]
    for copied in (copy.deepcopy(rows), copy.copy(rows), pickle.loads(pickle.dumps(rows)), [dict(rows[0])]):
        assert copied == rows and type(copied[0]["__error__"]) is kind


@pytest.mark.parametrize("name", ["time", "times", "timestamp", "benchmark_time", "verdict", "timing", "reference", "compared", "detail", "__error__"])
def test_a_parameter_with_the_name_of_a_key_of_results_is_refused(vectors, name):
    with pytest.raises(ValueError, match="forbidden name"):
        tune_kernel("k", "", 1, vectors, {"block_size_x": [64], name: [1, 2]}, lang="CUDA")


def test_known_objectives_have_a_direction():
    directions = {"time": False, "energy": False, "cost": False, "loss": False, "fitness": True, "GB/s": True}
    assert {name: util.get_objective_defaults(name, None)[1] for name in directions} == directions


def test_results_of_the_front_are_marked():
    rows = [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 3, "b": 3}]
    front = util.get_pareto_results(rows, ["a", "b"], [False, False])
    assert front == rows[:2] and [row.get("optimal") for row in rows] == [True, True, None]
    assert "optimal" not in util.get_pareto_results([{"a": 1}], ["a"], [False], mark_optima=False)[0]
