"""`verify`: its arguments, the database, times and interruptions."""

import json
import os
import signal
import sqlite3
import warnings

import numpy as np
import pytest
from conftest import SOURCE

import tuner
from tuner.kernel_tuner import limits, references, session, tune_kernel

PARAMS = {"block_size_x": [64, 128, 256]}
PARTIAL = """__global__ void part(float *sums, const float *a, int n) {
    __shared__ float all[block_size_x];
    int i = blockIdx.x * block_size_x + threadIdx.x;
    all[threadIdx.x] = i < n ? a[i] : 0.0f;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int k = 0; k < block_size_x; k++) sum += all[k];
        sums[blockIdx.x] = sum;
    }
}"""


def tune(arguments, source=SOURCE, params=PARAMS, name="vector_add", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel(name, source, 1000, arguments, params, device="vgpu:a100", quiet=True, **options)


def stored():
    """The verdicts in the database by block size."""
    query = "SELECT c.config, v.verdict FROM verdicts v JOIN candidates c ON c.id = v.candidate"
    with sqlite3.connect(limits.database()) as connection:
        return {int(config.split(":")[-1].strip(" }")): verdict for config, verdict in connection.execute(query)}


def test_a_verify_may_change_what_it_is_given(vectors):
    def verify(answer, outputs, atol=None):
        correct = np.array_equal(outputs[0], vectors[1] + vectors[2])
        for array in outputs[:3]:
            array[:] = -1
        return correct

    results, _ = tune(vectors, verify=verify)
    assert {row["verdict"] for row in results} == {"ok"} and len(results) == 3
    assert not vectors[0].any() and vectors[1][1] == 1


@pytest.mark.parametrize(("answer", "seen"), [([None] * 4, [None] * 4), (None, None), ([], None)])
def test_a_verify_is_given_the_answer_of_the_script(vectors, answer, seen):
    given = []
    tune(vectors, answer=answer, params={"block_size_x": [64]}, verify=lambda answer, outputs, atol: given.append(answer) or True)
    assert given == [seen]


def test_configurations_with_the_same_outputs_are_ranked_together(vectors):
    tune(vectors, verify=lambda answer, outputs, atol: True)
    rows = tuner.load_results(limits.database())
    assert len(rows) == 3 and len({row["problem"] for row in rows}) == 1


def test_rejected_configurations_are_stored_and_hide_no_others(vectors):
    source = SOURCE.replace("if (i < n)", "if (i < n + 9 * (block_size_x == 64))").replace("a[i] +", "a[i] + (block_size_x == 128) +")
    expected = vectors[1] + vectors[2]
    results, _ = tune(vectors, source, verify=lambda answer, outputs, atol: np.array_equal(outputs[0], expected))
    verdicts = {64: "out_of_bounds", 128: "incorrect", 256: "ok"}
    assert {row["block_size_x"]: row["verdict"] for row in results} == stored() == verdicts
    assert [row["config"] for row in tuner.load_results(limits.database())] == [{"block_size_x": 256}]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_rejected_configurations_are_stored_where_none_is_accepted(dtype):
    kind = {np.float32: "float", np.int32: "int", bool: "bool"}[dtype]
    source = SOURCE.replace("float", kind)
    a = np.ones(1000, dtype)
    results, _ = tune([np.zeros_like(a), a, a, np.int32(1000)], source, verify=lambda answer, outputs, atol: False)
    assert stored() == dict.fromkeys(PARAMS["block_size_x"], "incorrect") and len(results) == 3


def test_the_time_of_verify_is_in_the_result(vectors):
    results, env = tune(vectors, verify=lambda answer, outputs, atol: True)
    assert all(row["verification_time"] > 0 for row in results) and env["total_verification_time"] > 0


def test_the_times_of_the_search_and_of_the_framework_are_in_the_results(vectors):
    results, env = tune(vectors, answer=[vectors[1] + vectors[2], None, None, None], strategy="pso")
    assert len({row["strategy_time"] for row in results}) == 1 and results[0]["strategy_time"] > 0
    assert results[0]["framework_time"] > 0 and env["total_framework_time"] > 0 and env["total_strategy_time"] > 0


def test_the_times_of_a_result_are_the_samples_of_the_database(vectors, monkeypatch):
    figures = session.Figures(registers=9, compile_ms=7.0, times_ms=[1.0, 2.0])
    monkeypatch.setattr(session, "read_figures", lambda *_: figures)
    results, env = tune(vectors)
    assert all(row["times"] == [1.0, 2.0] and row["compile_time"] == 7 for row in results)
    assert env["total_compile_time"] == 21


def interrupt():
    # A shell that starts the tests in the background ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_in_verify_returns_what_there_is(vectors):
    calls = []

    def verify(answer, outputs, atol=None):
        calls.append(1)
        if len(calls) == 2:
            interrupt()
        return True

    results, env = tune(vectors, verify=verify)
    assert len(results) == 1 and env["interrupted"] and env["best_config"] == results[0]
    _, env = tune(vectors, verify=lambda answer, outputs, atol: True)
    assert env["interrupted"] is False


def test_ctrl_c_in_a_run_of_one_configuration_ends_all(vectors, monkeypatch):
    plain = session.tune
    runs = []

    def interrupted(*words, **options):
        runs.append(1)
        done = plain(*words, **options)
        done.interrupted = True
        return done

    monkeypatch.setattr(session, "tune", interrupted)
    results, env = tune(vectors, verify=lambda answer, outputs, atol: True)
    assert len(runs) == len(results) == 1 and env["interrupted"]


def test_ctrl_c_while_configurations_are_checked_returns_what_there_is(vectors, monkeypatch):
    plain = references.inspect_configuration
    calls = []

    def inspect(*words):
        calls.append(1)
        # The first ones look for a reference.
        if len(calls) == 5:
            interrupt()
        return plain(*words)

    monkeypatch.setattr(references, "inspect_configuration", inspect)
    results, env = tune(vectors, SOURCE.replace("a[i] +", "nope +"))
    assert env["interrupted"] and 0 < len(results) < 3


def test_accepted_configurations_rank_together_whatever_their_outputs(vectors):
    _, a, _, n = vectors
    arguments = [np.zeros(16, np.float32), a, n]

    def verify(answer, outputs, atol=None):
        return np.isclose(outputs[0].sum(), expected)

    for expected, accepted in ((a.sum(), {64, 128, 256}), (-1.0, set()), (a.sum(), {64, 128, 256})):
        results, _ = tune(arguments, PARTIAL, name="part", verify=verify)
        assert {row["block_size_x"] for row in results if row["verdict"] == "ok"} == accepted
        # A function that compares with other data is another one.
        rows = tuner.load_results(limits.database())
        assert len({row["problem"] for row in rows}) <= 1 and {row["config"]["block_size_x"] for row in rows} == accepted


def test_a_configuration_that_was_rejected_before_may_be_accepted(vectors):
    answers = iter([True, False, True, True])
    for expected in (["ok", "incorrect"], ["ok", "ok"]):
        results, _ = tune(vectors, params={"block_size_x": [64, 128]}, verify=lambda answer, outputs, atol: next(answers))
        assert [row["verdict"] for row in results] == expected


def test_the_database_has_the_whole_space_of_verified_configurations(vectors):
    tune(vectors, verify=lambda answer, outputs, atol: True)
    query = "SELECT f.body FROM tasks t JOIN definitions f ON f.id = t.definition ORDER BY t.id DESC"
    with sqlite3.connect(limits.database()) as connection:
        (body,) = connection.execute(query).fetchone()
    assert json.loads(body)["parameters"][0]["values"] == PARAMS["block_size_x"]


def test_the_parts_of_the_time_are_apart(vectors):
    results, env = tune(vectors, verify=lambda answer, outputs, atol: True)
    assert all(row["benchmark_time"] > 0 for row in results) and env["overhead_time"] >= 0
