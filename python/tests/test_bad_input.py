"""Arguments of another kind than their names have: each message says what to give."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import SOURCE

import tuner
from tuner._errors import error_from
from tuner.kernel_tuner import limits, run_kernel, tune_kernel
from tuner.kernel_tuner.verification import VerifyError

PARAMS = {"block_size_x": [64]}


def tune(arguments, **options):
    given = {
        "kernel_name": "vector_add", "kernel_source": SOURCE, "problem_size": 1000, "arguments": arguments,
        "tune_params": PARAMS, "device": "vgpu:a100", "quiet": True, **options,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel(**given)


def raising(params):
    raise OSError("disk")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"kernel_name": 3}, TypeError, "kernel_name is of type int; give the name"),
        ({"kernel_name": None}, TypeError, "kernel_name is of type NoneType"),
        ({"lang": 3}, TypeError, "lang is of type int; give a text"),
        ({"compiler": ["nvcc"]}, TypeError, "compiler is of type list; give a text"),
        ({"compiler_options": "-O3"}, TypeError, r"compiler_options is the text '-O3'; give a list, such as \['-O3'\]"),
        ({"compiler_options": [3]}, TypeError, "3 in compiler_options is of type int; give a text"),
        ({"seed": "7"}, TypeError, "seed is '7'; give a whole number"),
        ({"seed": 1.5}, TypeError, "seed is 1.5; give a whole number"),
        ({"device": None}, TypeError, "device is None; give the number of a GPU"),
        ({"device": -1}, ValueError, "device is -1; give the number of a GPU from 0"),
        ({"objective": []}, ValueError, "objective is an empty list; name an objective"),
        ({"smem_args": 1024}, TypeError, "smem_args is of type int; give a dict"),
        ({"cmem_args": [1]}, TypeError, "cmem_args is of type list; give a dict"),
        ({"defines": ["A"]}, TypeError, "defines is of type list; give a dict"),
        ({"strategy_options": [1]}, TypeError, "strategy_options is of type list; give a dict"),
        ({"strategy_options": {"max_fevals": "x"}}, ValueError, "max_fevals is 'x'; give a whole number"),
        ({"strategy_options": {"max_fevals": math.inf}}, ValueError, "max_fevals is inf; give a whole number"),
        ({"strategy_options": {"time_limit": "1 h"}}, ValueError, "time_limit is '1 h'; give a number of seconds"),
        ({"strategy": "random_sample", "strategy_options": {"fraction": "x"}}, ValueError, "fraction is 'x'; give a number"),
        ({"tune_params": [1]}, TypeError, "tune_params is of type list; give a dict of lists"),
        ({"tune_params": {3: [1]}}, TypeError, "the name 3 of a parameter is of type int; give a text"),
        ({"cache": 3}, TypeError, "cache is of type int; give the name of a file"),
        ({"observers": 3}, TypeError, "observers is of type int; give a list"),
        ({"restrictions": 3}, TypeError, "restrictions is 3; give a list"),
        ({"verify": True}, TypeError, "verify is of type bool; give a function"),
        ({"kernel_source": []}, ValueError, "kernel_source is an empty list; give the files"),
        ({"kernel_source": raising, "lang": "CUDA"}, ValueError, r"the source function raises OSError \(disk\).*correct it"),
        ({"atol": math.nan}, ValueError, "atol is nan; give the largest allowed difference"),
        ({"atol": -1.0}, ValueError, "atol is -1.0; give the largest allowed difference"),
        ({"atol": "x"}, ValueError, "atol is 'x'; give the largest allowed difference"),
    ],
)  # fmt: skip
def test_arguments_of_another_kind_are_refused(vectors, options, error, match):
    with pytest.raises(error, match=match):
        tune(vectors, **options)


def test_the_list_of_arguments_is_checked(vectors):
    c, a, b, n = vectors
    with pytest.raises(TypeError, match="arguments is of type ndarray; give a list"):
        tune(a)
    assert tune(value for value in vectors)[0][0]["verdict"] == "ok"
    with pytest.raises(TypeError, match="argument 3 is an array and `int n` is a scalar; pass one"):
        tune([c, a, b, np.array([1000], np.int32)])
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="argument 1 is of type Series; pass an array of NumPy"):
        tune([c, pandas.Series(a), b, n])


def test_an_infinite_tolerance_and_limit_are_taken(vectors):
    c, a, b, n = vectors
    results, _ = tune(vectors, answer=[a, None, None, None], atol=math.inf, strategy_options={"time_limit": math.inf})
    assert [row["verdict"] for row in results] == ["ok"]


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        ((False, "why"), r"verify returned \(False, 'why'\)"), (math.nan, "verify returned NaN"), ("no", "verify returned 'no'"),
        (np.float32("nan"), "verify returned NaN"), ({}, r"verify returned \{\}"), (np.ones(2, bool), "verify returned an array"),
    ],
)  # fmt: skip
def test_an_answer_of_verify_that_is_no_truth_value_is_refused(vectors, returned, match):
    with pytest.raises(VerifyError, match=match + ".*return True or False"):
        tune(vectors, verify=lambda answer, outputs, atol: returned)


@pytest.mark.parametrize("returned", [True, np.bool_(True), 1, np.array(True), np.array([1.0]), 0, np.False_])
def test_truth_values_and_numbers_are_answers_of_verify(vectors, returned):
    results, _ = tune(vectors, verify=lambda answer, outputs, atol: returned)
    assert results[0]["verdict"] == ("ok" if returned else "incorrect")


@pytest.mark.parametrize(("name", "text"), [(limits.EVALS, "x"), (limits.EVALS, "0"), (limits.BUDGET, "1h"), (limits.BUDGET, "nan")])
def test_limits_of_the_environment_are_numbers(vectors, monkeypatch, name, text):
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=f"{name} is '{text}'; give a positive number"):
        tune(vectors)


def test_texts_are_evaluated_with_the_functions_of_kernel_tuner(vectors):
    results, _ = tune(
        vectors, problem_size="ceil(1000 / 2) * 2", grid_div_x=["floor(block_size_x)"], restrictions=["ceil(block_size_x / 3) < 30"],
        smem_args={"size": "ceil(block_size_x / 3)"}, metrics={"m": "ceil(time) + floor(time)"},
    )  # fmt: skip
    assert [row["verdict"] for row in results] == ["ok"] and isinstance(results[0]["m"], int)


class Tensor:
    """An array of a device, as PyTorch has it."""

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.array

    def new_tensor(self, value):
        return Tensor(value.copy())


def test_arguments_after_a_run_are_new_and_of_the_kind_that_was_given(vectors):
    c, a, b, n = vectors
    outputs = run_kernel("vector_add", SOURCE, 1000, [Tensor(c), a, b, n], {"block_size_x": 64}, device="vgpu:a100")
    assert isinstance(outputs[0], Tensor) and np.array_equal(outputs[0].array, a + b)
    assert outputs[1] is not a and not np.shares_memory(outputs[1], a) and np.array_equal(outputs[1], a)


def test_a_result_is_the_configuration_of_a_run(vectors):
    _, env = tune(vectors, metrics={"GB/s": "1 / time"})
    outputs = run_kernel("vector_add", SOURCE, 1000, vectors, env["best_config"], device="vgpu:a100")
    assert np.array_equal(outputs[0], vectors[1] + vectors[2])


def test_the_interface_of_the_program_takes_lists_and_positive_budgets(space):
    for budget in (math.nan, math.inf, -1, 0):
        with pytest.raises(tuner.InputError, match=f"budget is {budget}; give a positive number"):
            tuner.tune(space, budget=budget)
    for call in (tuner.tune, tuner.check, tuner.predict):
        with pytest.raises(tuner.InputError, match="options is the text '--fresh'; give a list"):
            call(space, options="--fresh")
        with pytest.raises(tuner.TunerError, match="wrote no JSON but.*remove options such as --help"):
            call(space, device="vgpu:a100", options=["--help"])
    for call in (tuner.check, tuner.predict):
        with pytest.raises(tuner.InputError, match=r"configs is a dict; give a list of configurations, such as \[config\]"):
            call(space, configs={"block_size_x": 64})
        with pytest.raises(tuner.InputError, match="configs has a int; each configuration is a dict"):
            call(space, configs=[64])
    with pytest.raises(tuner.InputError, match="empty; leave configs out"):
        tuner.predict(space, configs=[{}])
    with pytest.raises(tuner.InputError, match="the kernel is of type int; give its name"):
        tuner.check(3)
    with pytest.raises(tuner.InputError, match="no kernel is named; pass its name"):
        tuner.tune(device="vgpu:a100")


def test_a_message_begins_with_the_error_and_names_paths_with_colons():
    error = error_from("problem ragged: 144 of 144\nwarning: a.yaml:1:2: odd\nerror: the device is busy; wait\n", 1)
    assert error.message == "error: the device is busy; wait" and error.file is None
    error = error_from("problem p: 3 of 3\na: b/space.yaml:7:19: error: unknown key\n", 2)
    assert (error.file, error.line, error.column) == ("a: b/space.yaml", 7, 19) and error.message.startswith("a: b/space.yaml:7")
    error = error_from("error: a: b/space.yaml:7:19: unknown key\n", 2)
    assert (error.file, error.line, error.column) == ("a: b/space.yaml", 7, 19)


def test_a_path_with_a_colon_is_the_place_of_an_error(space):
    folder = space.parent / "a: b"
    folder.mkdir()
    (folder / "space.yaml").write_text(space.read_text().replace("values:", "valuess:"))
    with pytest.raises(tuner.InputError) as caught:
        tuner.check(folder / "space.yaml")
    assert caught.value.file.endswith("a: b/space.yaml") and caught.value.line == 7


def test_a_missing_program_is_installed_from_a_checkout(monkeypatch, space):
    monkeypatch.delenv("TUNER", raising=False)
    monkeypatch.setattr(tuner._program.os, "access", lambda *_: False)
    monkeypatch.setattr(tuner._program.shutil, "which", lambda _: None)
    with pytest.raises(tuner.TunerError, match="pip install ./python"):
        tuner.check(space)


def test_processes_that_a_script_starts_have_this_package_as_kernel_tuner(place):
    (place / "script.py").write_text(
        "import multiprocessing\nimport kernel_tuner\nfrom kernel_tuner.util import get_best_config\n"
        "def work(_):\n    import kernel_tuner.observers\n    return [kernel_tuner.__name__, get_best_config.__module__]\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(*pool.map(work, [0]))\n"
    )
    import os

    environment = {**os.environ, "PYTHONPATH": str(__import__("pathlib").Path(tuner.__file__).parents[1])}
    words = [sys.executable, "-m", "tuner.kernel_tuner", "script.py"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "['tuner.kernel_tuner', 'tuner.kernel_tuner.util']", done.stderr
