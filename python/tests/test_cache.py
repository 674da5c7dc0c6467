"""Cache files of Kernel Tuner: continued in both directions, and searched in simulation."""

import json
import warnings

import numpy as np
import pytest
from conftest import SOURCE

import tuner
from tuner.kernel_tuner import cache, limits, tune_cache, tune_kernel

PARAMS = {"block_size_x": [64, 128, 256]}


def tune(arguments, params=PARAMS, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel(
            "vector_add", SOURCE, 1000, arguments, params, device="vgpu:a100", quiet=True, cache="cache", **options
        )


def test_a_cache_file_is_written_and_continued(vectors, place):
    first, _ = tune(vectors, strategy="random_sample", strategy_options={"max_fevals": 2})
    data = json.loads((place / "cache.json").read_text())
    assert data["device_name"] == "vgpu:a100" and len(data["cache"]) == 2
    assert data["tune_params_keys"] == ["block_size_x"]
    results, _ = tune(vectors)
    assert sorted(row["block_size_x"] for row in results) == [64, 128, 256]
    again = {row["block_size_x"]: row["timestamp"] for row in results}
    # What the file held was not judged again.
    assert all(again[row["block_size_x"]] == row["timestamp"] for row in first)
    assert len(json.loads((place / "cache.json").read_text())["cache"]) == 3
    # And a complete file needs no run.
    results, env = tune(vectors)
    assert len(results) == 3 and env["device_name"] == "vgpu:a100"


def test_results_of_before_rank_with_those_of_a_continued_file(vectors):
    answer = [vectors[1] + vectors[2], None, None, None]
    tune(vectors, answer=answer, strategy="random_sample", strategy_options={"max_fevals": 2})
    tune(vectors, answer=answer)
    rows = tuner.load_results(limits.database())
    assert {row["config"]["block_size_x"] for row in rows} == {64, 128, 256}


def test_results_of_a_cache_are_those_of_the_space_with_its_metrics_and_limits(vectors, place):
    first, _ = tune(vectors, metrics={"rate": lambda p: 1 / p["time"]})
    results, _ = tune(vectors, metrics={"rate": lambda p: 2 / p["time"], "more": lambda p: p["rate"] + 1})
    rates = {row["block_size_x"]: row["rate"] for row in first}
    assert all(row["rate"] == 2 * rates[row["block_size_x"]] and row["more"] == row["rate"] + 1 for row in results)
    results, _ = tune(vectors, restrictions=["block_size_x <= 128"])
    assert sorted(row["block_size_x"] for row in results) == [64, 128]
    more = {"block_size_x": [64, 512]}
    results, _ = tune(vectors, more)
    assert sorted(row["block_size_x"] for row in results) == [64, 512]
    limit = {"strategy": "random_sample", "strategy_options": {"max_fevals": 2}}
    results, _ = tune(vectors, {"block_size_x": [64, 128, 512, 1024]}, **limit)
    assert len(results) == 2
    results, _ = tune(vectors, {"block_size_x": [64, 96, 1024]}, **limit)
    assert len(results) == 2 and any(row["block_size_x"] == 64 for row in results)
    # The values of the file's head are those of the first run.
    simulated, _ = tune(vectors, {"block_size_x": [64, 128, 512]}, simulation_mode=True)
    assert sorted(row["block_size_x"] for row in simulated) == [64, 128, 512]


def test_the_cache_of_a_verified_run_has_the_name_of_the_device(vectors, place, monkeypatch):
    from tuner.kernel_tuner import references

    plain = references.inspect_configuration

    def on_gpu(*words, **options):
        row, outputs = plain(*words, **options)
        return {**row, "device": "NVIDIA Some GPU"}, outputs

    monkeypatch.setattr(references, "inspect_configuration", on_gpu)
    tune(vectors, verify=lambda answer, outputs, atol: False)
    assert json.loads((place / "cache.json").read_text())["device_name"] == "NVIDIA Some GPU"


def test_a_cache_file_that_a_run_left_open_is_continued(vectors, place):
    tune(vectors, strategy="random_sample", strategy_options={"max_fevals": 1})
    path = place / "cache.json"
    text = path.read_text()
    path.write_text(text[: -len("}\n}")] + ",")
    results, _ = tune(vectors)
    assert len(results) == 3
    json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kernel_name": "other"}, "different kernel.*use another file"),
        ({"device_name": "NVIDIA A100"}, "different device"),
        ({"problem_size": 7}, "different problem_size"),
        ({"tune_params_keys": ["block_size_y"]}, "different tunable parameters"),
    ],
)
def test_a_cache_file_of_something_else_is_refused(vectors, place, change, match):
    tune(vectors, strategy="random_sample", strategy_options={"max_fevals": 1})
    path = place / "cache.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=match):
        tune(vectors)


def test_a_file_that_is_no_cache_is_refused(vectors, place):
    (place / "cache.json").write_text("[1, 2")
    with pytest.raises(ValueError, match="not a cache file"):
        tune(vectors)


def test_a_cache_file_is_searched_in_simulation(vectors, place):
    results, _ = tune(vectors)
    times = {row["block_size_x"]: row["time"] for row in results}
    simulated, env = tune(vectors, simulation_mode=True, strategy="random_sample", strategy_options={"max_fevals": 2})
    assert len(simulated) == 2 and env["device_name"] == "vgpu:a100"
    assert all(times[row["block_size_x"]] == row["time"] and row["timing"] == "recorded" for row in simulated)
    simulated, _ = tune_cache("cache.json", restrictions=["block_size_x > 64"], quiet=True)
    assert sorted(row["block_size_x"] for row in simulated) == [128, 256]
    with pytest.raises(ValueError, match="does not exist; correct cache"):
        tune_cache_of_nothing(vectors)


def tune_cache_of_nothing(vectors):
    return tune_kernel("vector_add", SOURCE, 1000, vectors, PARAMS, simulation_mode=True, cache="none")


def test_the_real_kernel_tuner_reads_and_continues_our_file_and_we_its(vectors, place):
    util = pytest.importorskip("kernel_tuner.util", reason="Kernel Tuner is not installed", exc_type=ImportError)
    tune(vectors, strategy="random_sample", strategy_options={"max_fevals": 1})
    path = str(place / "cache.json")
    rows = util.read_cache(path)["cache"]
    missing = next(size for size in PARAMS["block_size_x"] if str(size) not in rows)
    row = {"block_size_x": missing, "time": 0.5, "times": [0.5], "compile_time": 1.0, "verification_time": 0,
           "benchmark_time": 1.0, "strategy_time": 0, "framework_time": 0, "timestamp": "2026-06-04"}  # fmt: skip
    util.store_cache(str(missing), row, path, rows)
    # Not closed, as a run that was cut short leaves it.
    results, _ = tune(vectors)
    assert {row["block_size_x"]: row["time"] for row in results}[missing] == 0.5
    assert len(results) == 3
    closed = util.read_cache(path, open_cache=False)
    assert len(closed["cache"]) == 3
    error = {**row, "block_size_x": 256, "__error__": util.CompilationFailedConfig()}
    assert cache.error_named(str(error["__error__"])) == "CompilationFailedConfig"


def test_configurations_of_a_cache_are_left_out_by_their_numbers():
    params = {"x": [1, 2, 4], "y": ["a", "b"], "z": [0.5, 1]}
    rows = [{"x": 2, "y": "b", "z": 0.5}, {"x": 9, "y": "a", "z": 1}, {"x": 4, "y": "a", "z": 1}]
    text = cache.exclusion(rows, params, {name: name for name in params})
    left = [
        (x, y, z) for x in params["x"] for y in params["y"] for z in params["z"]
        if eval(text, {}, {"x": x, "y": y, "z": z})
    ]  # fmt: skip
    assert len(left) == 10 and (2, "b", 0.5) not in left and (4, "a", 1) not in left


def test_an_array_and_a_scalar_of_numpy_are_written_as_numbers(place):
    cache.store_cache("1", {"x": np.int32(1), "times": np.ones(2)}, place / "c.json", {})
    assert '"x": 1, "times": [1.0, 1.0]' in (place / "c.json").read_text()


CLOSED = (
    json.dumps,
    lambda data: json.dumps(data, indent=""),
    lambda data: json.dumps(data, indent=2) + "\n",
    lambda data: json.dumps(data, separators=(",", ":")),
    lambda data: json.dumps(data, indent="").replace("\n", "\r\n"),
    lambda data: json.dumps({"cache": data["cache"], **data, "more": [1]}),
)
OPEN = (
    lambda data: json.dumps(data, indent="")[: -len("}\n}")] + ("," if data["cache"] else ""),
    lambda data: json.dumps(data, indent="")[: -len("}\n}")],
    lambda data: json.dumps(data, indent="")[: -len("}\n}")] + (",\n" if data["cache"] else "\n"),
)


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("spell", [*CLOSED, *OPEN])
def test_a_cache_file_in_any_spelling_is_continued(vectors, place, spell, empty):
    tune(vectors, {"block_size_x": [64]})
    path = place / "cache.json"
    data = json.loads(path.read_text())
    before = {} if empty else data["cache"]
    path.write_bytes(spell({**data, "cache": before}).encode())
    results, _ = tune(vectors)
    assert len(results) == 3
    after = json.loads(path.read_text())
    assert sorted(after["cache"]) == ["128", "256", "64"] and before.items() <= after["cache"].items()
    assert after["device_name"] == "vgpu:a100"


@pytest.mark.parametrize("spell", [*CLOSED, *OPEN])
def test_a_cache_file_is_opened_and_closed_in_any_spelling(place, spell):
    data = {"device_name": "d", "tune_params_keys": ["x"], "cache": {"1": {"x": 1, "time": 0.5}}}
    path = place / "c.json"
    for rows in (data["cache"], {}):
        path.write_text(spell({**data, "cache": rows}))
        read = cache.read_cache(path)
        cache.store_cache("2", {"x": 2, "time": 0.25}, path, read["cache"])
        cache.close_cache(path)
        assert json.loads(path.read_text())["cache"] == {**rows, "2": {"x": 2, "time": 0.25}}
        cache.close_cache(path)
        assert len(json.loads(path.read_text())["cache"]) == len(rows) + 1


def test_a_cache_file_without_a_device_is_not_overwritten(vectors, place):
    tune(vectors)
    path = place / "cache.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "device_name": ""}))
    text = path.read_text()
    with pytest.raises(ValueError, match="different device.*cache: none"):
        tune(vectors, {"block_size_x": [64, 512]})
    assert json.loads(path.read_text()) == json.loads(text)


@pytest.mark.parametrize("missing", ["device_name", "kernel_name", "tune_params_keys"])
def test_a_file_without_the_head_of_a_cache_is_refused(vectors, place, missing):
    tune(vectors, {"block_size_x": [64]})
    path = place / "cache.json"
    data = json.loads(path.read_text())
    del data[missing]
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=f"not a cache file of Kernel Tuner: it has no `{missing}`"):
        tune(vectors)


def test_a_complete_cache_file_is_closed_and_that_of_another_device_is_refused(vectors, place):
    tune(vectors)
    path = place / "cache.json"
    text = path.read_text()
    path.write_text(text[: -len("}\n}")] + ",")
    assert len(tune(vectors)[0]) == 3
    json.loads(path.read_text())
    other = text[: -len("}\n}")].replace("vgpu:a100", "NVIDIA A100") + ","
    path.write_text(other)
    with pytest.raises(ValueError, match="different device .cache: NVIDIA A100, actual: vgpu:a100"):
        tune(vectors)
    # Another process may write to it.
    assert path.read_text() == other


def test_results_of_kernel_tuner_have_the_keys_of_ours_and_no_time_is_spent_on_them(vectors, place):
    tune(vectors)
    path = place / "cache.json"
    data = json.loads(path.read_text())
    ours = ("verdict", "timing", "reference", "compared")
    data["cache"] = {entry: {name: row[name] for name in row if name not in ours} for entry, row in data["cache"].items()}
    data["cache"]["256"]["__error__"] = data["cache"]["256"]["time"] = "CompilationFailedConfig"
    path.write_text(json.dumps(data))
    for options in ({}, {"simulation_mode": True}):
        results, _ = tune(vectors, **options)
        found = {row["block_size_x"]: tuple(row[name] for name in ours) for row in results}
        assert found[64] == ("ok", "recorded", "cache file", None)
        assert found[256] == ("compile_failed", "recorded", "cache file", None)
        assert all((row["benchmark_time"] > 0) == bool(options) for row in results)
