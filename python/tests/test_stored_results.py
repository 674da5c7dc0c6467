"""Files of `store_results`, their headers, and kernels with the parameters of such a file."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import SOURCE

from tuner.kernel_tuner import create_device_targets, store_results
from tuner.kernel_tuner.integration import TuneResults
from tuner.kernel_tuner.kernelbuilder import PythonKernel

RESULTS = [{"block_size_x": 32, "t": True, "time": 2.0}, {"block_size_x": 64, "t": False, "time": 1.0}]
PARAMS = {"block_size_x": [32, 64], "t": [True, False]}


def store(size=1000, device="vgpu:a100", results=RESULTS, source=SOURCE):
    store_results("r.json", "vector_add", source, PARAMS, size, results, {"device_name": device}, top=0)


def test_a_kernel_has_the_parameters_of_its_device_and_size(vectors):
    store()
    store(device="vgpu:h100", results=RESULTS[:1])
    store(size=(500, 2), results=RESULTS[:1])
    best = TuneResults("r.json").get_best_config
    assert best("vgpu:a100", 1000) == {"block_size_x": 64, "t": False}
    assert best("vgpu:a100", np.array([500, 2]))["block_size_x"] == best("vgpu:h100", 1000)["block_size_x"] == 32
    for device, block in (("vgpu:a100", 64), ("vgpu:h100", 32), (0, 32)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = PythonKernel("vector_add", SOURCE, 1000, vectors, device=device, results_file="r.json")
            assert kernel.params["block_size_x"] == block
            assert np.array_equal(kernel(*vectors)[0], vectors[1] + vectors[2])


@pytest.mark.parametrize("size", [1000, np.int64(1000), np.array([1000]), [1000], (1000,), "1000"])
def test_a_size_has_one_name_in_each_spelling(size):
    store(size)
    store()
    (record,) = json.loads(Path("r.json").read_text())["data"]
    assert record["problem_size"] == "1000"


def test_a_function_of_the_size_replaces_its_own_results(place):
    store(lambda p: 1000)
    (place / "k.cu").write_text(SOURCE)
    store(lambda p: 1000)
    assert [record["problem_size"] for record in json.loads(Path("r.json").read_text())["data"]] == ["callable"]
    Path("r.json").unlink()
    store(source=place / "k.cu")
    assert json.loads(Path("r.json").read_text())["kernel_string"] == SOURCE


def test_a_header_defines_truth_values_as_while_tuning():
    store(results=RESULTS[:1])
    create_device_targets("h.h", "r.json")
    text = Path("h.h").read_text()
    assert text.count("#define t 1\n") == 2 and "True" not in text
